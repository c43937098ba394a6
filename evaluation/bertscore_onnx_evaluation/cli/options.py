"""The options that several commands of evaluation have.

Also the columns of references that these read.
"""

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.cli.options import matching_of, parse_matching
from bertscore_onnx.cli.specs import ColumnNames
from bertscore_onnx.cli.terminal import with_options
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import TextColumn
from bertscore_onnx.tables.roles import DOCUMENT_COLUMNS, ID_COLUMNS, USUAL_NAMES, first_usual

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx.tables.whole_table import WholeTable

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

HUMAN_COLUMNS = ("human", "human_score")
"""The usual names of a column of human scores."""


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


def column_of(
    table: "WholeTable",
    columns: ColumnNames,
    role: str,
    usual: Iterable[str] = (),
) -> str:
    """Return the column of a role.

    It is the named one, or else the one with a usual name, or with the role's name.
    """
    option = f"--columns {role}=NAME"
    if role in USUAL_NAMES and role not in columns:
        return TextColumn((), option, role=role).find(table.names, table.title)
    return table.find(columns.get(role) or usual or role, option)


def names_of(
    table: "WholeTable", columns: ColumnNames, role: Literal["segment", "document"]
) -> list[str] | None:
    """Return the ids of segments, or the documents, of the rows.

    They are in the column that is named, or in the first with a usual name that is not blank; None
    without any.
    """
    usual = {"segment": ID_COLUMNS, "document": DOCUMENT_COLUMNS}[role]
    named = columns(role)
    if named is not None:
        return table.keys(table.find(named, f"--columns {role}=NAME"))
    filled = [name for name in table.names if not table.is_blank(name)]
    for name in first_usual(usual, filled):
        return table.keys(name)
    return None


def references_of_table(table: "WholeTable", columns: ColumnNames) -> list[list[str]]:
    """Return the references of each row of a table that is held whole."""
    option = "--columns reference=NAME"
    names = columns.references or table.find_references(option)
    lists = []
    for number, name in enumerate(names):
        lists.append(table.lists(table.find(name, option), may_be_empty=number > 0))
    return [list(chain.from_iterable(row)) for row in zip(*lists, strict=True)]
