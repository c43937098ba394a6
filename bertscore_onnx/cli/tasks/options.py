"""What `bertscore-onnx meta` was told; every task reads what it needs of it."""

from dataclasses import dataclass
from typing import Literal

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
