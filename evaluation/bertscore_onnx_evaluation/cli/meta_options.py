"""The options of `bertscore-onnx meta`, as one record."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.cli.options import FilesFormat, chosen_model, matching_of
from bertscore_onnx.cli.specs import ColumnNames, columns_of, columns_option
from bertscore_onnx.tables.roles import roles_of_command
from bertscore_onnx_evaluation.cli.options import (
    ContextSentences,
    Figure,
    Matchings,
    Metrics,
    metrics_of,
    sentences_before,
    test_option,
)

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings

_ROLES = roles_of_command("meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaOptions:
    """The options of the command."""

    source: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Human judgements, a row for each output."),
    ]
    settings: "ScorerSettings"
    language_pair: Annotated[
        list[str] | None,
        typer.Option(
            "--language-pair", metavar="LP...", help="Pairs, such as he-en.  [default: all]"
        ),
    ] = None
    score: Annotated[
        list[str] | None, typer.Option("--score", metavar="COLUMN...", help="Columns of scores.")
    ] = None
    lower_better: Annotated[
        list[str] | None,
        typer.Option("--lower-better", metavar="NAME...", help="Scores of which less is better."),
    ] = None
    metric: Metrics = None
    matching: Matchings = None
    context_sentences: ContextSentences = None
    sentinels: Annotated[
        bool, test_option("--sentinels/--no-sentinels", help="Judge scores that read no meaning.")
    ] = True
    missing: Annotated[
        Literal["raise", "drop"], typer.Option("--missing", help="Segments without a score.")
    ] = "raise"
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None
    input_format: FilesFormat = None
    resamples: Annotated[
        int, test_option("--resamples", metavar="N", min=1, help="Permutations.")
    ] = 1000
    seed: Annotated[int, test_option("--seed", metavar="N", min=0, help="Seed of the draws.")] = 4
    output_format: Annotated[
        Literal["text", "json", "tsv", "latex", "markdown"],
        typer.Option("--format", metavar="FORMAT", help="text, json, tsv, latex or markdown."),
    ] = "text"
    figure: Figure = None
    quiet: bool = False

    @property
    def named(self) -> ColumnNames:
        """The columns of a table that are named."""
        return columns_of(self.columns, *_ROLES)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to compute, the model's first."""
        return (*self.scorers, *self.corpus_metrics)

    @property
    def corpus_metrics(self) -> Mapping[str, Mapping[str, Any]]:
        """The metrics of sacreBLEU with the arguments of its classes.

        typer.BadParameter is raised for an unknown one.
        """
        from bertscore_onnx_evaluation.metric_scores import METRICS, SACREBLEU

        named = metrics_of(self.metric or ())
        for name in named:
            if name not in METRICS:
                raise typer.BadParameter(
                    f"{name!r} is none of {', '.join(METRICS)}.", param_hint="--metric"
                )
        return {name: named[name] for name in SACREBLEU if name in named}

    @property
    def model(self) -> str | None:
        """The model that is given, or the default if `--metric bertscore` is; None for none."""
        from bertscore_onnx_evaluation.metric_scores import BERTSCORE

        is_named = BERTSCORE in metrics_of(self.metric or ())
        # An option is a text.
        model: str | None = self.settings["model_type"]  # type: ignore[assignment]
        if is_named:
            return chosen_model(model)
        return model

    @property
    def scorers(self) -> "Mapping[str, ScorerSettings]":
        """The settings of the scorer of each metric of the model, one for each matching."""
        if not self.model:
            return {}
        matchings = self.matching or ["bertscore"]
        return {
            str(matching): {**self.settings, "model_type": self.model, "matching": matching}
            for matching in matchings
        }

    def num_context(self, metric: str) -> int:
        """Return how many preceding sentences a metric gets as context.

        Of several, only doc-bert-score gets any.
        """
        settings = self.scorers[metric]
        if len(self.scorers) > 1 and matching_of(settings).context == "excluded":
            return 0
        return sentences_before(settings, self.context_sentences)
