"""The result of comparing systems, as records, tables and JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import __version__
from bertscore_onnx.evaluation.tables import Column, Result, Table, TableFormat, number, percent

if TYPE_CHECKING:
    from bertscore_onnx.similarity import TokenSimilarity

Test = Literal["bs", "ar"]
"""Paired bootstrap, or approximate randomization."""

TITLES = {"bertscore": "BERTScore F1", "bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
"""The names of the metrics for readers."""

DIGITS = {"bertscore": 4}
"""After the point; scores of the others go up to 100, and have 2."""

SIGNIFICANT = 0.05
"""A p below it is marked."""


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
    """Two systems under one metric, with `all_pairs`."""

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
    """The signature of its scores."""

    lower_is_better: bool

    systems: tuple[SystemResult, ...]
    """The baseline first."""

    pairs: tuple[PairResult, ...]
    """Every pair of systems if all were tested; else none."""

    segment_scores: NDArray[np.float64]
    """(systems, segments)."""

    unrelated: NDArray[np.float64] | None = None
    """Scores of unrelated pairs with the same model in ascending order, as evenly spaced quantiles, if they are
    known."""

    @property
    def digits(self) -> int:
        """The number of decimals of its scores."""
        return DIGITS.get(self.name, 2)


@dataclass(frozen=True, slots=True)
class Example:
    """A segment on which a system differs much from the baseline under the first metric."""

    segment: int
    """Counted from 0."""

    system: str
    """The system that differs from the baseline."""

    delta: float
    """The segment's score of the system less the baseline's."""

    matches: "tuple[TokenSimilarity, TokenSimilarity] | None"
    """Which tokens of the baseline's text, and of the system's, match the best reference; None where the first metric
    is not BERTScore."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Result):
    """The result of `compare`.

    As text there is a table for each metric, and `*` at a p below 0.05; as TSV a row for each metric and system; as
    LaTeX a row for each system, and `*` too. In JSON a value that the baseline lacks is null, and segments, those
    that differ most under the first metric, are counted from 1.
    """

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv", "latex")

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
        """The test and its settings, to quote beside the signature of each metric."""
        return f"bertscore-onnx|test:{self.test}|resamples:{self.num_resamples}|seed:{self.seed}|version:{__version__}"

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        metrics = {metric.name: metric for metric in self.metrics}
        record: dict[str, Any] = {
            "signature": self.signature,
            "signatures": {name: metric.signature for name, metric in metrics.items()},
            "test": self.test,
            "resamples": self.num_resamples,
            "seed": self.seed,
            "num_segments": len(self.references),
            "systems": [
                {"name": name, "metrics": {key: _values(metric.systems[row]) for key, metric in metrics.items()}}
                for row, name in enumerate(self.systems)
            ],
            "segments": [self._segment(example) for example in self.examples],
        }
        if any(metric.pairs for metric in self.metrics):
            record["pairs"] = {name: [asdict(pair) for pair in metric.pairs] for name, metric in metrics.items()}
        return record

    def _segment(self, example: Example) -> dict[str, Any]:
        systems = {name: self.systems.index(name) for name in (self.systems[0], example.system)}
        scores = self.metrics[0].segment_scores
        return {
            "segment": example.segment + 1,
            "metric": self.metrics[0].name,
            "system": example.system,
            "delta": example.delta,
            "scores": {name: float(scores[row, example.segment]) for name, row in systems.items()},
            "candidates": {name: self.candidates[row][example.segment] for name, row in systems.items()},
            "references": self.references[example.segment],
        }

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

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for metric in self.metrics:
            for system in metric.systems:
                values = _values(system)
                del values["percentile"]
                yield {"metric": metric.name, "system": system.name, **values}

    def _blocks(self) -> Iterator[str]:
        for metric in self.metrics:
            yield _systems(metric).text()
            if metric.pairs:
                yield _pairs(metric).text()
            yield metric.signature

    def _latex(self) -> Iterator[str]:
        columns: list[Column] = [("system", "system", str)]
        columns += [(TITLES[metric.name], metric.name, "{}".format) for metric in self.metrics]
        rows = [
            {"system": name, **{metric.name: _latex_cell(metric, metric.systems[row]) for metric in self.metrics}}
            for row, name in enumerate(self.systems)
        ]
        yield Table(columns, rows).latex()


def _values(system: SystemResult) -> dict[str, Any]:
    """Return the values of a system by name."""
    values = asdict(system)
    del values["name"]
    return values


# The tables of text and of LaTeX.


def _systems(metric: MetricResult) -> Table:
    def score(value: float) -> str:
        return f"{value:.{metric.digits}f}"

    rows = []
    for system in metric.systems:
        row = _values(system) | {"system": system.name, "interval": f"{score(system.mean)} ± {score(system.ci)}"}
        if system.delta is not None and system.p is not None:
            row |= {"p": _marked_p(system.p, system.delta), "counts": f"{system.won}/{system.lost}/{system.tied}"}
        rows.append(row)
    columns: list[Column] = [
        (TITLES[metric.name] + (" (lower is better)" if metric.lower_is_better else ""), "system", str),
        ("score", "score", score),
        ("95% interval", "interval", _or_blank),
        ("delta", "delta", number(metric.digits, signed=True, missing="")),
        ("p", "p", _or_blank),
        ("wins", "wins", lambda wins: "" if wins is None else percent(wins)),
        ("won/lost/tied", "counts", _or_blank),
    ]
    if metric.unrelated is not None:
        columns.append(("above unrelated", "percentile", lambda value: "" if value is None else f"{value:.1f}%"))
    return Table(columns, rows)


def _pairs(metric: MetricResult) -> Table:
    rows = [
        {
            "pair": f"{pair.system} - {pair.baseline}",
            "delta": pair.delta,
            "p": _marked_p(pair.p, pair.delta),
            "p_holm": _marked_p(pair.p_holm, pair.delta),
        }
        for pair in metric.pairs
    ]
    delta = number(metric.digits, signed=True)
    columns: list[Column] = [("all pairs", "pair", str), ("delta", "delta", delta)]
    return Table([*columns, ("p", "p", _or_blank), ("p (Holm)", "p_holm", _or_blank)], rows)


def _or_blank(cell: str | None) -> str:
    return cell or ""


def _marked_p(p: float, delta: float) -> str:
    return f"{p:.4f}{'*' if _is_significant(p, delta) else ' '}"


def _is_significant(p: float, delta: float) -> bool:
    """Return whether to mark a difference; that of equal systems, 0 on every draw, has the smallest p and is not."""
    return p < SIGNIFICANT and delta != 0


def _latex_cell(metric: MetricResult, system: SystemResult) -> str:
    is_marked = system.p is not None and system.delta is not None and _is_significant(system.p, system.delta)
    mark = "^{*}" if is_marked else ""
    return rf"${system.score:.{metric.digits}f} \pm {system.ci:.{metric.digits}f}{mark}$"
