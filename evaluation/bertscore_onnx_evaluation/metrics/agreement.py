"""How metrics agree with human scores, as records.

`Agreement` has the measures of a metric at a level, `LanguagePairResult` all metrics of a pair.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from msgspec import to_builtins

from bertscore_onnx_evaluation.metrics.correlation import Measure
from bertscore_onnx_evaluation.metrics.ranks import MeasureTests

OF_OUTPUTS = "acc_eq"
OF_SYSTEMS = "spa"
R_OF_OUTPUTS = "pearson"
R_BY_ITEM = "pearson_by_item"
R_OF_SYSTEMS = "system_pearson"
"""The names of the measures; in `Agreement` r of systems is `pearson` too."""
MIN_SYSTEMS = 5
"""With fewer systems SPA has no rank: random numbers get up to .98 with 2 systems."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of a metric with human scores, on systems or on outputs of segments.

    Correlations are signed.
    """

    n: int
    """Judged systems, or judged outputs."""
    measures: Mapping[str, Measure]
    """By name. Of systems: `spa` (soft pairwise accuracy, from the scores of segments) and
    `pearson`. Of segments: `acc_eq`, `pearson` over all outputs, and `pearson_by_item` (within each
    segment, then the mean)."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """From 1, by the name of each measure that ranks the metrics: a rank ends where a metric in it
    is significantly better."""

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        record = {"n": self.n, **_values(self.measures), "ranks": dict(self.ranks)}
        pairs: dict[str, int] = {}
        groups: dict[str, int] = {}
        left_out: dict[str, int] = {}
        zeros: dict[str, int] = {}
        for name, measure in self.measures.items():
            if name in ("acc_eq", "spa") and measure.groups:
                pairs[name] = measure.n
            if measure.groups > 1:
                groups[name] = measure.groups
            if measure.groups and measure.left_out:
                left_out[name] = measure.left_out
            if measure.zeros:
                zeros[name] = measure.zeros
        return record | {"pairs": pairs, "groups": groups, "left_out": left_out, "zeros": zeros}


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric in one language pair."""

    name: str
    signature: str
    """How its scores were made; empty if that is not known."""
    measures: Mapping[str, Measure]
    """By name."""
    num_systems: int
    """Judged systems."""
    num_outputs: int
    """Judged outputs."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """From 1, by each measure that ranks the metrics."""

    @property
    def system(self) -> Agreement:
        """The agreement on systems."""
        return self._at(self.num_systems, {OF_SYSTEMS: "spa", R_OF_SYSTEMS: "pearson"})

    @property
    def segment(self) -> Agreement:
        """The agreement on outputs."""
        names = {OF_OUTPUTS: "acc_eq", R_OF_OUTPUTS: "pearson", R_BY_ITEM: "pearson_by_item"}
        return self._at(self.num_outputs, names)

    def _at(self, n: int, names: Mapping[str, str]) -> Agreement:
        """Return the agreement at a level, by the names that measures have there."""
        measures = {name_at_level: self.measures[name] for name, name_at_level in names.items()}
        ranks = {}
        for name, rank in self.ranks.items():
            if name in names:
                ranks[names[name]] = rank
        return Agreement(n, measures, ranks)

    def measure(self, name: str) -> Measure | None:
        """Return a measure that has a value, or None."""
        measure = self.measures[name]
        if measure.value is None:
            return None
        return measure

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "signature": self.signature,
            "system": self.system.to_dict(),
            "segment": self.segment.to_dict(),
        }

    def cells(self) -> dict[str, Any]:
        """Return it as TSV has it: a column for each number of a measure."""
        cells: dict[str, Any] = {"system_n": self.num_systems, "segment_n": self.num_outputs}
        for level, agreement in (("system", self.system), ("segment", self.segment)):
            for name, measure in agreement.measures.items():
                column = f"{level}_{name}"
                cells[column] = measure.value
                cells[f"{column}_rank"] = agreement.ranks.get(name)
                for field_name in ("low", "high", "n", "groups", "left_out", "zeros", "reason"):
                    cells[f"{column}_{field_name}"] = getattr(measure, field_name)
        return cells


Kind = Literal["metrics", "sentinels"]


@dataclass(frozen=True, slots=True)
class LanguagePairResult:
    """All metrics in one language pair."""

    language_pair: str
    systems: tuple[str, ...]
    """Those with human scores."""
    human_scores: tuple[float | None, ...]
    """Of each of `systems`: the mean of its judged segments."""
    metric_scores: Mapping[str, tuple[float | None, ...]]
    """The scores of whole systems, by the metric's name; higher is better."""
    segments: int
    """The number of segments with a judged output."""
    metrics: tuple[MetricAgreement, ...]
    """The best first."""
    sentinels: tuple[MetricAgreement, ...]
    """Scores that read no meaning, such as the length of a candidate, by the same measures; they
    have no rank.
    """
    ranked_by: tuple[str, ...]
    """The measures that rank the metrics: `acc_eq` and `spa`, after `pearson` where few segments
    have two outputs."""
    tests: Mapping[str, MeasureTests]
    """How metrics compare by each of these."""
    golds: tuple[str, ...]
    """Metrics that are the human scores themselves, or linear in them, and have no rank."""
    reversed: tuple[str, ...]
    """Metrics that order outputs the wrong way round."""
    notes: tuple[str, ...]
    """Warnings about the data."""
    units: str
    """What the tests exchange, and intervals are over: `segments` or `documents`."""
    num_units: int
    """How many of these there are."""
    shared: int
    """The number of segments with two judged outputs or more."""

    @property
    def ranked(self) -> list[MetricAgreement]:
        """The metrics but for those that are the human scores themselves."""
        return [metric for metric in self.metrics if metric.name not in self.golds]

    def is_ranked_by(self, measure: str) -> bool:
        """Return whether a measure ranks the metrics."""
        return measure in self.ranked_by and bool(self.tests[measure].ranks)

    @property
    def best_sentinels(self) -> dict[str, MetricAgreement]:
        """The best sentinel by each measure that ranks the metrics.

        Measures that no sentinel has are left out.
        """
        best = {}
        for measure in self.ranked_by:
            values = values_of(self.sentinels, measure)
            if values:
                best_name = max(values, key=values.__getitem__)
                best[measure] = next(
                    metric for metric in self.sentinels if metric.name == best_name
                )
        return best

    def by_kind(self) -> Iterator[tuple[Kind, MetricAgreement]]:
        """Yield metrics and sentinels, in the order of the tables."""
        for metric in self.metrics:
            yield "metrics", metric
        for sentinel in self.sentinels:
            yield "sentinels", sentinel

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        record: dict[str, Any] = to_builtins(self, enc_hook=_of_python)
        del record["language_pair"]
        record["tests"] = {name: tests.to_dict() for name, tests in self.tests.items()}
        record["metrics"] = {metric.name: metric.to_dict() for metric in self.metrics}
        record["sentinels"] = {metric.name: metric.to_dict() for metric in self.sentinels}
        return record


def values_of(metrics: Sequence[MetricAgreement], measure: str) -> dict[str, float]:
    """Return the values of a measure by the name of the metric; none where it has no value."""
    values = {}
    for metric in metrics:
        value = metric.measures[measure].value
        if value is not None:
            values[metric.name] = value
    return values


def _of_python(value: str | np.generic) -> str | float:
    """Return a name of any class of texts, or a number of numpy, as Python's own."""
    if isinstance(value, str):
        return str(value)
    return value.item()


@dataclass(frozen=True, slots=True)
class MetricMean:
    """One metric over the language pairs that it has scores in."""

    name: str
    language_pairs: int
    measures: Mapping[str, Measure]
    """By name the means over language pairs of `acc_eq`, `spa`, `pearson` over all outputs, and
    `system_pearson`.
    """
    ranks: Mapping[str, int]
    """By the name of a mean that ranks the metrics."""
    kind: Kind = "metrics"

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        return {
            "language_pairs": self.language_pairs,
            **_values(self.measures),
            "ranks": dict(self.ranks),
        }


def _values(measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Return the values of measures by name, with intervals, and reasons of missing values."""
    values: dict[str, Any] = {}
    intervals: dict[str, list[float | None]] = {}
    reasons: dict[str, str] = {}
    for name, measure in measures.items():
        values[name] = measure.value
        if measure.low is not None:
            intervals[name] = [measure.low, measure.high]
        if measure.value is None:
            reasons[name] = measure.reason
    return values | {"intervals": intervals, "reasons": reasons}
