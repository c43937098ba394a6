"""What a comparison of systems found."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import __version__
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.tables import tabulated
from bertscore_onnx.similarity import TokenSimilarity

Test = Literal["bs", "ar"]
"""Paired bootstrap, or approximate randomization."""


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system under one metric."""

    name: str

    score: float
    """The score of the whole corpus."""

    mean: float
    """The mean of the resamples."""

    ci: float
    """Half the width of the 95 % interval about that mean."""

    delta: float | None
    """The score less the baseline's; None for the baseline itself, likewise what follows."""

    p: float | None
    """The p-value of the difference, two-sided."""

    wins: float | None
    """The share of resamples in which the system is better than the baseline."""

    won: int | None
    """Segments on which the system is better."""

    lost: int | None
    """Segments on which the baseline is better."""

    tied: int | None
    """Segments on which neither is."""

    percentile: float | None = None
    """How many percent of unrelated pairs score lower, where their scores are known with the same model."""


@dataclass(frozen=True, slots=True)
class PairResult:
    """Two systems under one metric; what `all_pairs` adds."""

    baseline: str
    system: str
    delta: float
    p: float

    p_holm: float
    """p, corrected for all pairs under this metric (Holm)."""

    wins: float


@dataclass(frozen=True, slots=True, eq=False)
class MetricResult:
    """All systems under one metric."""

    name: str
    """`bertscore`, `bleu`, `chrf` or `ter`."""

    signature: str
    """How its scores were made."""

    lower_is_better: bool

    systems: tuple[SystemResult, ...]
    """The baseline first."""

    pairs: tuple[PairResult, ...]
    """Every pair of systems where all were asked for; else none."""

    segment_scores: NDArray[np.float64]
    """(systems, segments)."""

    unrelated: NDArray[np.float64] | None = None
    """Scores of unrelated pairs with the same model in ascending order, as evenly spaced quantiles, where they are
    known."""


@dataclass(frozen=True, slots=True)
class Example:
    """A segment on which a system differs much from the baseline under the first metric."""

    segment: int
    """Counted from 0."""

    system: str
    """The system that differs from the baseline."""

    delta: float
    """The segment's score of the system less the baseline's."""

    matches: tuple[TokenSimilarity, TokenSimilarity] | None
    """Which tokens of the baseline's text, and of the system's, match the best reference; None where the first metric
    is not BERTScore."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What `compare` found."""

    test: Test
    num_resamples: int
    seed: int

    systems: tuple[str, ...]
    """Their names, the baseline first."""

    candidates: tuple[tuple[str, ...], ...]
    """The text of each segment by each system."""

    references: tuple[tuple[str, ...], ...]
    """The references of each segment."""

    metrics: tuple[MetricResult, ...]

    examples: tuple[Example, ...]
    """For each system but the baseline the segments with the largest gain, then those with the largest loss."""

    def __repr__(self) -> str:
        metrics = tuple(metric.name for metric in self.metrics)
        return f"Comparison(systems={self.systems}, metrics={metrics}, segments={len(self.references)})"

    @property
    def signature(self) -> str:
        """How systems were compared, to be quoted beside the signature of each metric."""
        return f"bertscore-onnx|test:{self.test}|resamples:{self.num_resamples}|seed:{self.seed}|version:{__version__}"

    def table(self, table_format: "TableFormat" = "text") -> str:
        """Write a table.

        Args:
            table_format: "text" has a table for each metric, and `*` at a p below 0.05; "tsv" a row for each metric
                and system, with all digits; "latex" a row for each system, and `*` too.

        Raises:
            InputError: there is no such format.
            MissingExtraError: tabulate is not installed.
        """
        return comparison_table(self, table_format)

    def to_json(self) -> str:
        """Write one JSON object; what the baseline has no value for is null, and segments are counted from 1."""
        return comparison_json(self)

    def to_html(self) -> str:
        """Return a page about it that needs neither a network nor a script; the same comparison gives the same bytes.

        Raises:
            MissingExtraError: Jinja is not installed.
        """
        from bertscore_onnx.evaluation.report import report_html

        return report_html(self)

    def _repr_html_(self) -> str:
        """Return the tables as a notebook shows them."""
        from bertscore_onnx.evaluation.report import notebook_html

        return notebook_html(self)


# A comparison as a table: to read, as TSV, or for a paper in LaTeX.


TableFormat = Literal["text", "tsv", "latex"]

TITLES = {"bertscore": "BERTScore F1", "bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
"""What the metrics are called by those who read them."""

DIGITS = {"bertscore": 4}
"""After the point; scores of the others go up to 100, and have 2."""

SIGNIFICANT = 0.05
"""A p below it is marked."""

_LATEX = str.maketrans(
    {one: rf"\{one}" for one in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)

_TSV = str.maketrans("\t\n\r", "   ")
"""What would end a column or a row, in a name."""

_COLUMNS = ("metric", "system", "score", "mean", "ci", "delta", "p", "wins", "won", "lost", "tied")


def comparison_table(comparison: Comparison, table_format: TableFormat = "text") -> str:
    """Write a comparison as a table, without a line end after its last line.

    Args:
        comparison: what `compare` found.
        table_format: "text" has a table for each metric, and `*` at a p below 0.05; "tsv" a row for each metric and
            system, with all digits; "latex" a row for each system, a dagger-like `*` at a p below 0.05.

    Raises:
        InputError: there is no such format.
        MissingExtraError: tabulate is not installed.
    """
    match table_format:
        case "text":
            return "\n\n".join(_text(metric) for metric in comparison.metrics)
        case "tsv":
            rows = [
                [metric.name, *(_full(getattr(system, column)) for column in ("name", *_COLUMNS[2:]))]
                for metric in comparison.metrics
                for system in metric.systems
            ]
            return "\n".join("\t".join(row) for row in [_COLUMNS, *rows])
        case "latex":
            return _latex(comparison)
        case _:
            raise InputError(f"There is no format {table_format!r}. Choose one of {', '.join(get_args(TableFormat))}.")


def _text(metric: MetricResult) -> str:
    title = TITLES[metric.name] + (" (lower is better)" if metric.lower_is_better else "")
    header = [title, "score", "95% interval", "delta", "p", "wins", "won/lost/tied"]
    rows = [[system.name, *_score_cells(metric, system), *_test_cells(metric, system)] for system in metric.systems]
    if metric.unrelated is not None:
        header.append("above unrelated")
        for row, system in zip(rows, metric.systems, strict=True):
            row.append("" if system.percentile is None else f"{system.percentile:.1f}%")
    tables = [tabulated(rows, header)]
    if metric.pairs:
        pairs = [
            [
                f"{pair.system} - {pair.baseline}",
                _signed(pair.delta, metric),
                _p(pair.p, pair.delta),
                _p(pair.p_holm, pair.delta),
            ]
            for pair in metric.pairs
        ]
        tables.append(tabulated(pairs, ["all pairs", "delta", "p", "p (Holm)"]))
    return "\n\n".join([*tables, metric.signature])


def _score_cells(metric: MetricResult, system: SystemResult) -> list[str]:
    digits = _digits(metric)
    return [f"{system.score:.{digits}f}", f"{system.mean:.{digits}f} ± {system.ci:.{digits}f}"]


def _test_cells(metric: MetricResult, system: SystemResult) -> list[str]:
    if system.delta is None or system.p is None or system.wins is None:
        return ["", "", "", ""]
    segments = f"{system.won}/{system.lost}/{system.tied}"
    return [_signed(system.delta, metric), _p(system.p, system.delta), f"{system.wins:.1%}", segments]


def _latex(comparison: Comparison) -> str:
    rows = [
        [name.translate(_LATEX), *(_latex_cell(metric, metric.systems[row]) for metric in comparison.metrics)]
        for row, name in enumerate(comparison.systems)
    ]
    return tabulated(
        rows, ["system", *(TITLES[metric.name] for metric in comparison.metrics)], table_format="latex_raw"
    )


def _latex_cell(metric: MetricResult, system: SystemResult) -> str:
    digits = _digits(metric)
    mark = "" if system.p is None or system.delta is None else _mark(system.p, system.delta, r"^{*}")
    return rf"${system.score:.{digits}f} \pm {system.ci:.{digits}f}{mark}$"


def _digits(metric: MetricResult) -> int:
    return DIGITS.get(metric.name, 2)


def _signed(delta: float, metric: MetricResult) -> str:
    return f"{delta:+.{_digits(metric)}f}"


def _p(p: float, delta: float) -> str:
    return f"{p:.4f}{_mark(p, delta, '*') or ' '}"


def _mark(p: float, delta: float, mark: str) -> str:
    """Mark a difference that is significant; that of equal systems, 0 on every draw, has the smallest p and is not."""
    return mark if p < SIGNIFICANT and delta else ""


def _full(value: object) -> str:
    return "" if value is None else str(value).translate(_TSV)


# A comparison as JSON.


def comparison_json(comparison: Comparison) -> str:
    """Write a comparison as one JSON object; what the baseline has no value for is null.

    `systems` has for each its `name` and its `metrics`, by name: `score`, `mean`, `ci`, `delta`, `p`, `wins`, `won`,
    `lost` and `tied`. `pairs`, by metric, is there where all pairs were tested. `segments` are those that differ most
    under the first metric, counted from 1.
    """
    metrics = {metric.name: metric for metric in comparison.metrics}
    record: dict[str, Any] = {
        "signature": comparison.signature,
        "signatures": {name: metric.signature for name, metric in metrics.items()},
        "test": comparison.test,
        "resamples": comparison.num_resamples,
        "seed": comparison.seed,
        "num_segments": len(comparison.references),
        "systems": [
            {"name": name, "metrics": {key: _of_system(metric, row) for key, metric in metrics.items()}}
            for row, name in enumerate(comparison.systems)
        ],
        "segments": [_segment(comparison, example) for example in comparison.examples],
    }
    if any(metric.pairs for metric in comparison.metrics):
        record["pairs"] = {name: [asdict(pair) for pair in metric.pairs] for name, metric in metrics.items()}
    return json.dumps(record, allow_nan=False, ensure_ascii=False)


def _of_system(metric: MetricResult, row: int) -> dict[str, Any]:
    fields = asdict(metric.systems[row])
    del fields["name"]
    return fields


def _segment(comparison: Comparison, example: Example) -> dict[str, Any]:
    rows = [0, comparison.systems.index(example.system)]
    names = [comparison.systems[row] for row in rows]
    scores = comparison.metrics[0].segment_scores
    return {
        "segment": example.segment + 1,
        "metric": comparison.metrics[0].name,
        "system": example.system,
        "delta": example.delta,
        "scores": {name: float(scores[row, example.segment]) for name, row in zip(names, rows, strict=True)},
        "candidates": {
            name: comparison.candidates[row][example.segment] for name, row in zip(names, rows, strict=True)
        },
        "references": comparison.references[example.segment],
    }
