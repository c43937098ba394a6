"""The options of `bertscore-onnx meta`: one record, which every task reads."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.cli.options import (
    ContextSentences,
    Matchings,
    Metrics,
    TableFormat,
    TextJsonOrTsv,
    chosen_model,
    matching_of,
    sentences_before,
)
from bertscore_onnx.cli.specs import ColumnNames, columns_of, columns_option, metrics_of

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings

Task = Literal["correlation", "darr", "hybrid", "auc", "phenomena"]

_ROLES = ("candidate", "reference", "id", "document", "system", "lang_pair", "human", "annotator", "label")

METRICS = ("bertscore", "bleu", "chrf", "ter")
"""The metrics that can be computed from texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaOptions:
    """The options of the command; those of a column or a task are None unless they are given."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="EVALSET|TABLE",
            help="A folder in the layout of mt-metrics-eval, or a table; - is standard input.",
        ),
    ]
    settings: "ScorerSettings"
    task: Annotated[Task, typer.Option("--task", help="What to measure.")] = "correlation"
    language_pair: Annotated[
        list[str] | None,
        typer.Option("--language-pair", metavar="LP...", help="Language pairs, such as he-en.  [default: all]"),
    ] = None
    gold: Annotated[
        str | None,
        typer.Option(
            "--gold",
            metavar="NAME",
            help="The judgements of a folder, such as mqm.  [default: the only ones]",
        ),
    ] = None
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="NAME",
            help="The reference that metrics use, such as refB; not scored as a system.  [default: the only one]",
        ),
    ] = None
    metric_scores: Annotated[
        list[str] | None,
        typer.Option(
            "--metric-scores",
            metavar="METRIC-REF...",
            help="Metric scores of an EvalSet, such as BLEU-refB.  [default: all of the reference]",
        ),
    ] = None
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="COLUMN...",
            help="Columns of a table with scores, higher is better; a system's score is the mean over its segments.",
        ),
    ] = None
    metric: Metrics = None
    matching: Matchings = None
    context_sentences: ContextSentences = None
    hold_out: Annotated[
        str | None,
        typer.Option(
            "--hold-out",
            metavar="NAME",
            help="Judge one annotator (column annotator), or other judgements of an EvalSet, as metrics are judged.",
        ),
    ] = None
    sentinels: Annotated[
        bool,
        typer.Option(
            "--sentinels/--no-sentinels",
            help="Judge scores that read no meaning too: random, constant, lengths, shared words.",
        ),
    ] = True
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="POINTS",
            help="For darr: minimum difference between two direct assessments.  [default: 25]",
        ),
    ] = None
    human_system: Annotated[
        list[str] | None,
        typer.Option(
            "--human-system",
            metavar="NAME...",
            help="For darr and hybrid: human systems, which are left out.  [default: for darr those called Human-A, "
            "ref, refB, translator-A and the like; for hybrid none]",
        ),
    ] = None
    num_hybrids: Annotated[
        int | None,
        typer.Option(
            "--num-hybrids", metavar="N", min=2, help="For hybrid: number of hybrid systems.  [default: 10000]"
        ),
    ] = None
    num_candidates: Annotated[
        int | None,
        typer.Option(
            "--num-candidates", metavar="N", min=2, help="For hybrid: number of systems to select from.  [default: 100]"
        ),
    ] = None
    num_trials: Annotated[
        int | None,
        typer.Option("--num-trials", metavar="N", min=1, help="For hybrid: number of selections.  [default: 100000]"),
    ] = None
    min_examples: Annotated[
        int | None,
        typer.Option(
            "--min-examples",
            metavar="N",
            min=1,
            help="For phenomena: minimum number of examples per category.  [default: 5]",
        ),
    ] = None
    missing: Annotated[
        Literal["raise", "drop"],
        typer.Option(
            "--missing", help="Refuse a judged output without a score, or leave its segment out for all systems."
        ),
    ] = "raise"
    columns: Annotated[
        list[str] | None,
        columns_option(
            *_ROLES,
            id="id (by default called segment, segment_id or seg_id; id or line if systems share it; else rows are "
            "whole systems)",
            document="document (which tests exchange, and intervals draw, as a whole)",
        ),
    ] = None
    input_format: TableFormat = None
    resamples: Annotated[
        int, typer.Option("--resamples", metavar="N", min=1, help="Number of permutations of each test.")
    ] = 1000
    test: Annotated[
        Literal["segments", "perm-both", "boot-both"],
        typer.Option(
            "--test",
            help="How metrics are compared and ranked: by exchanging whole segments (or documents), two-sided and "
            "corrected by Holm; by PERM-BOTH as in the WMT metrics tasks, one-sided and not corrected; or by "
            "BOOT-BOTH, which draws systems too, for claims about other systems.",
        ),
    ] = "segments"
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of all random draws.")] = 4
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Write the scores as files of mt-metrics-eval."),
    ] = None
    output_format: TextJsonOrTsv = "text"
    quiet: bool = False

    @property
    def named(self) -> ColumnNames:
        """The columns of a table that are named."""
        return columns_of(self.columns, *_ROLES)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to compute, those of the model first."""
        return (*self.scorers, *self.corpus_metrics)

    @property
    def corpus_metrics(self) -> Mapping[str, Mapping[str, Any]]:
        """The metrics of sacreBLEU with the arguments of its classes; raises typer.BadParameter for an unknown one."""
        named = metrics_of(self.metric or ())
        for name in named:
            if name not in METRICS:
                raise typer.BadParameter(f"{name!r} is none of {', '.join(METRICS)}.", param_hint="--metric")
        return {name: named[name] for name in METRICS[1:] if name in named}

    @property
    def model(self) -> str | None:
        """The model to score with: the given one, or with `--metric bertscore` the default one; None for none."""
        is_named = METRICS[0] in metrics_of(self.metric or ())
        given: str | None = self.settings["model_type"]  # type: ignore[assignment]  # an option is a text
        return chosen_model(given) if is_named else given

    @property
    def scorers(self) -> "Mapping[str, ScorerSettings]":
        """The settings of the scorer of each metric of the model, one for each matching."""
        if not self.model:
            return {}
        matchings = self.matching or ["bertscore"]
        return {
            str(matching): {**self.settings, "model_type": self.model, "matching": matching} for matching in matchings
        }

    def num_context(self, metric: str) -> int:
        """Return how many preceding sentences a metric gets as context: of several, only doc-bert-score gets any."""
        settings = self.scorers[metric]
        if len(self.scorers) > 1 and matching_of(settings).context == "excluded":
            return 0
        return sentences_before(settings, self.context_sentences)

    @property
    def given(self) -> Mapping[str, Any]:
        """The options that differ from their defaults, by name; of columns also each role, such as `columns label`."""
        optional = [field for field in fields(self) if field.default is not MISSING]
        values = {field.name: getattr(self, field.name) for field in optional}
        given = {field.name: values[field.name] for field in optional if values[field.name] not in (field.default, [])}
        return given | {f"columns {role}": names for role, names in self.named.names.items()}
