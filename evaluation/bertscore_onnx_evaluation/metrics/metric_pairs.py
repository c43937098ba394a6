"""Pairs of metrics on one task: how much better one is, with p, as records, rows and a table; and written intervals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from textwrap import fill
from typing import Any, Literal

import numpy as np

from bertscore_onnx.tables.table import MISSING, Column, Format, number, p_value
from bertscore_onnx_evaluation.metrics.correlation import Floats, Measure
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS
from bertscore_onnx_evaluation.metrics.resampling import holm_matrix, smallest_p
from bertscore_onnx_evaluation.systems.corpus_scores import MIN_UNITS
from bertscore_onnx_evaluation.systems.power import SIGNIFICANT
from bertscore_onnx_evaluation.systems.significance import MAX_EXACT, holm


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """The difference between two metrics in one statistic, such as Pearson's r over hybrid systems or ROC AUC."""

    delta: float
    """The value of the better metric minus that of the worse."""
    p: float | None
    """Two-sided, by exchanging their scores in whole units: segments, documents or the rows of one reference; None
    without a value."""
    p_holm: float | None
    """p, corrected by Holm for all pairs of metrics."""
    reason: str = ""
    """Why there is no p."""


MetricDifferences = Mapping[tuple[str, str], MetricDifference]
"""By the names of two metrics, the better one first."""


def metric_differences(
    values: Mapping[str, float], tested: Sequence[str], p: Floats, reason: str = ""
) -> dict[tuple[str, str], MetricDifference]:
    """Return the difference of every two metrics by falling values, with Holm's correction; sentinels are left out.

    `p` is (tested, tested); pairs with a metric that is not tested have the reason instead.
    """
    metrics = [name for name in tested if name not in SENTINELS]
    chosen = [place for place, name in enumerate(tested) if name in metrics]
    p = p[np.ix_(chosen, chosen)]
    corrected = holm_matrix(p)
    at = {name: place for place, name in enumerate(metrics)}
    differences = {}
    falling = sorted((name for name in values if name not in SENTINELS), key=lambda name: -values[name])
    for better, worse in combinations(falling, 2):
        delta, pair = values[better] - values[worse], (at.get(better), at.get(worse))
        differences[better, worse] = (
            MetricDifference(delta, None, None, reason)
            if None in pair
            else MetricDifference(delta, float(p[pair]), float(corrected[pair]))
        )
    return differences


@dataclass(frozen=True, slots=True)
class SentinelTest:
    """Whether a metric is better than every sentinel, by one statistic."""

    metric: str
    statistic: str
    """In `meta_evaluate` `pearson`, `pearson_by_item`, `acc_eq` or `spa` of segments, or `system_pearson`."""
    sentinel: str
    """The best one."""
    delta: float
    """The metric's value minus that of the best sentinel."""
    p: float
    """The largest of the p-values against each sentinel; 1 if any is as good."""
    p_holm: float
    """p, corrected by Holm for the number of metrics."""


def against_sentinels(
    statistic: str, values: Mapping[str, float], tested: Sequence[str], p: Floats
) -> tuple[SentinelTest, ...]:
    """Test whether each metric is better than every sentinel: the largest p, which needs no correction for these.

    R. L. Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 1982; Holm's correction is
    for the number of metrics. `p` is (tested, tested).
    """
    at = {name: place for place, name in enumerate(tested)}
    sentinels = [name for name in tested if name in SENTINELS]
    metrics = [name for name in tested if name not in sentinels]
    if not sentinels:
        return ()
    best = max(sentinels, key=values.__getitem__)
    largest = [
        max(float(p[at[name], at[other]]) if values[name] > values[other] else 1.0 for other in sentinels)
        for name in metrics
    ]
    return tuple(
        SentinelTest(name, statistic, best, values[name] - values[best], one, float(corrected))
        for name, one, corrected in zip(metrics, largest, holm(largest), strict=True)
    )


def sentinel_lines(title: str, tests: Sequence[SentinelTest]) -> Iterator[str]:
    """Yield which metrics are not significantly better than the best sentinel; nothing without tests."""
    not_better = [test for test in tests if test.p_holm >= SIGNIFICANT]
    if not_better:
        names = ", ".join(f"{one.metric} ({one.delta:+.3f}, p {p_value(3)(one.p_holm)})" for one in not_better)
        line = f"{title}: not significantly better than {not_better[0].sentinel}, the best sentinel: {names}"
        yield fill(line, 80, subsequent_indent="  ", break_on_hyphens=False)
    elif tests:
        yield f"{title}: every metric is significantly better than every sentinel"


def by_kind(metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries `metrics` and `sentinels` of JSON, each by name."""
    kinds: dict[str, dict[str, Any]] = {"metrics": {}, "sentinels": {}}
    for name, values in metrics.items():
        kinds[kind_of(name)][name] = values
    return kinds


def kind_of(name: str) -> Literal["metrics", "sentinels"]:
    """Return the entry of JSON that a name belongs to."""
    return "sentinels" if name in SENTINELS else "metrics"


def pairs_of(differences: MetricDifferences, **named: str) -> list[dict[str, Any]]:
    """Return the differences as JSON has them, with further entries in front, such as the name of the statistic."""
    return [
        {**named, "better": better, "worse": worse, "delta": test.delta, "p": test.p, "p_holm": test.p_holm}
        | ({"reason": test.reason} if test.reason else {})
        for (better, worse), test in differences.items()
    ]


def p_of_others(differences: MetricDifferences, metric: str, prefix: str = "") -> dict[str, float | None]:
    """Return p after Holm of a metric's difference from each other one, as TSV has it: `p_bleu`."""
    return {
        f"{prefix}p_{(set(pair) - {metric}).pop()}": test.p_holm for pair, test in differences.items() if metric in pair
    }


PAIR_COLUMNS: tuple[Column, ...] = (
    ("metric", "better", str),
    ("better than", "worse", str),
    ("delta", "delta", number(4)),
    ("p", "p_holm", p_value(4)),
)


def notes_of_few(num_units: int, kind: str) -> Iterator[str]:
    """Yield a warning about units that are too few for intervals."""
    if num_units < MIN_UNITS:
        yield f"{num_units} {kind} are few: below {MIN_UNITS}, intervals are too narrow"


def notes_of_exchanges(num_units: int, kind: str, num_metrics: int) -> Iterator[str]:
    """Yield a warning if so few units can be exchanged that no p after Holm's correction is below .05."""
    num_pairs = num_metrics * (num_metrics - 1) // 2
    if num_units > MAX_EXACT or num_pairs * smallest_p(num_units) < SIGNIFICANT:
        return
    least = smallest_p(num_units)
    corrected = f", after Holm {num_pairs * least:.3g}" if num_pairs > 1 else ""
    yield f"{num_units} {kind}: no p is below 2/{1 << num_units} = {least:.3g}{corrected}: none is significant"


def ends(digits: int) -> Format:
    """Return a format of the ends of an interval."""

    def write(interval: Sequence[float] | None) -> str:
        return (
            MISSING
            if interval is None
            else " ".join(re.sub(r"^(-?)0\.", r"\1.", f"{end:.{digits}f}") for end in interval)
        )

    return write


def interval_of(measure: Measure) -> list[float] | None:
    """Return the ends of an interval as JSON has them."""
    return None if measure.low is None or measure.high is None else [measure.low, measure.high]
