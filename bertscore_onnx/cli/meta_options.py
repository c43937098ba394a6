"""What `bertscore-onnx meta` was told; every task reads what it needs of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bertscore_onnx.cli.options import check_effects
from bertscore_onnx.errors import check_installed
from bertscore_onnx.tables.sources import InputFormat

Task = Literal["correlation", "darr", "hybrid", "auc", "phenomena"]

Metric = Literal["bertscore", "bleu", "chrf", "ter"]
"""The metrics that are computed here."""

ResultFormat = Literal["text", "json", "tsv"]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What columns are called; None for the name that each has by default."""

    language_pair: str | None = None
    system: str | None = None
    segment: str | None = None
    human: str | None = None
    candidate: str | None = None
    reference: tuple[str, ...] = ()
    label: str | None = None


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What only one task or another reads; None for its default."""

    threshold: float | None = None
    """For darr: points by which two assessments differ at least."""
    human_systems: tuple[str, ...] = ()
    """For darr and hybrid: the systems that are people."""
    num_hybrids: int | None = None
    num_candidates: int | None = None
    num_trials: int | None = None
    """For hybrid, likewise the two before it."""
    min_examples: int | None = None
    """For phenomena: examples of a category that is shown."""


@dataclass(frozen=True, slots=True)
class MetaOptions:
    """The options of the command, checked on their own but not against the data."""

    source: str
    """The folder of an EvalSet, or a table."""
    input_format: InputFormat | None
    columns: TableColumns

    language_pairs: tuple[str, ...]
    """None of them for all."""
    gold: str | None
    reference: str | None
    metric_scores: tuple[str, ...]
    """Scores of an EvalSet, METRIC-REFERENCE; none for all of the reference."""
    scores: tuple[str, ...]
    """Columns of a table that hold scores."""

    metrics: tuple[Metric, ...]
    """What to compute from the texts; bertscore is among them where there is a model."""
    model: str | None
    num_layers: int | None
    device: str | None
    num_threads: int | None
    bleu_smooth: str
    """As sacreBLEU names it: exp, floor, add-k or none."""
    chrf_word_order: int
    """0 for chrF, 2 for chrF++."""

    permutations: int
    seed: int
    output: str | None
    """The folder to write scores to."""
    result_format: ResultFormat
    quiet: bool
    """Whether standard error has errors alone."""
    of_task: TaskOptions = TaskOptions()


# Which options a task of `bertscore-onnx meta` reads; another one that is given has no effect, and is refused.


_OF_SYSTEMS: tuple[Task, ...] = ("correlation", "darr", "hybrid")

_READERS: Mapping[str, tuple[Task, ...]] = {
    "--language-pair": _OF_SYSTEMS,
    "--gold": _OF_SYSTEMS,
    "--reference": _OF_SYSTEMS,
    "--metric-scores": _OF_SYSTEMS,
    "--language-pair-column": _OF_SYSTEMS,
    "--system-column": _OF_SYSTEMS,
    "--segment-column": _OF_SYSTEMS,
    "--human-column": _OF_SYSTEMS,
    "--output": ("correlation",),
    "--threshold": ("darr",),
    "--human-system": ("darr", "hybrid"),
    "--num-hybrids": ("hybrid",),
    "--num-candidates": ("hybrid",),
    "--num-trials": ("hybrid",),
    "--label-column": ("auc",),
    "--score": (*_OF_SYSTEMS, "auc"),
    "--candidate-column": (*_OF_SYSTEMS, "auc"),
    "--min-examples": ("phenomena",),
}
"""The tasks that read an option; all read the others."""


def check_task(task: Task, options: MetaOptions) -> None:
    """Raise typer.BadParameter for an option that the task, or the metrics, have no use for."""
    columns, of_task = options.columns, options.of_task
    given = {
        "--language-pair": options.language_pairs,
        "--gold": options.gold,
        "--reference": options.reference,
        "--metric-scores": options.metric_scores,
        "--language-pair-column": columns.language_pair,
        "--system-column": columns.system,
        "--segment-column": columns.segment,
        "--human-column": columns.human,
        "--output": options.output,
        "--threshold": of_task.threshold is not None,
        "--human-system": of_task.human_systems,
        "--num-hybrids": of_task.num_hybrids,
        "--num-candidates": of_task.num_candidates,
        "--num-trials": of_task.num_trials,
        "--label-column": columns.label,
        "--score": options.scores,
        "--candidate-column": columns.candidate,
        "--min-examples": of_task.min_examples,
    }
    check_effects(
        *(
            (option, bool(given[option]) and task not in tasks, f"on --task {task}")
            for option, tasks in _READERS.items()
        ),
        ("--bleu-smooth", options.bleu_smooth != "exp" and "bleu" not in options.metrics, "without --metric bleu"),
        ("--chrf-word-order", options.chrf_word_order > 0 and "chrf" not in options.metrics, "without --metric chrf"),
    )


# What a task of `bertscore-onnx meta` needs beyond the core, looked for before anything is computed.


def check_extras(task: Task, options: MetaOptions) -> None:
    """Raise MissingExtraError for the first package that is needed and not installed."""
    needed = {
        "tabulate": options.result_format == "text",
        "sacrebleu": bool({"bleu", "chrf", "ter"} & {*options.metrics}),
        "scipy": task in ("correlation", "hybrid"),
    }
    check_installed((package for package, is_needed in needed.items() if is_needed), "evaluation", "This task")
