"""The options that several commands of evaluation have."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertscore_onnx.cli.options import matching_of, parse_matching
from bertscore_onnx.cli.terminal import with_options
from bertscore_onnx.errors import InputError

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME...",
        help="bertscore, bleu, chrf or ter; bleu,tokenize=zh.",
    ),
]
Matchings = Annotated[
    list[str] | None,
    typer.Option(
        "--matching",
        metavar="SPEC...",
        parser=parse_matching,
        help="Variants, several compared: docs/variants.md.",
    ),
]
ContextSentences = Annotated[
    int | None,
    typer.Option(
        "--context-sentences",
        metavar="N",
        min=0,
        help="Preceding sentences as context.",
    ),
]
Html = Annotated[
    str | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write a report with charts for a browser.",
    ),
]
Figure = Annotated[
    str | None,
    typer.Option(
        "--figure",
        metavar="FILE",
        help="Draw it: .pdf, .svg or .png (extra `plot`).",
    ),
]

test_option = partial(typer.Option, rich_help_panel="Tests")
"""Declares an option in the part of the help on tests."""


def sentences_before(settings: "ScorerSettings", requested: int | None) -> int:
    """Return how many preceding sentences are the context of a segment."""
    if requested is not None:
        return requested
    return 2 if matching_of(settings).context == "weightless" else 0


def metrics_of(specs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the metrics, such as of `bleu,tokenize=zh chrf`.

    Each has the arguments of sacreBLEU's class.
    """
    from bertscore_onnx_evaluation.metric_scores import specified_metrics

    try:
        return specified_metrics(specs)
    except InputError as error:
        raise typer.BadParameter(with_options(error), param_hint="--metric") from error
