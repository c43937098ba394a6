"""Pairs of metrics on one task: how much better one is, with p, as records, rows and a table; and written intervals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from bertscore_onnx.evaluation.corpus_scores import MIN_UNITS
from bertscore_onnx.evaluation.correlation import Floats, Measure
from bertscore_onnx.evaluation.power import SIGNIFICANT
from bertscore_onnx.evaluation.resampling import holm_matrix, smallest_p
from bertscore_onnx.evaluation.significance import MAX_EXACT
from bertscore_onnx.evaluation.tables import MISSING, Column, Format, number, p_value


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
    """Return the difference of every two metrics by falling values, with Holm's correction.

    `p` is (tested, tested); pairs with a metric that is not tested have the reason instead.
    """
    corrected = holm_matrix(p)
    at = {name: place for place, name in enumerate(tested)}
    differences = {}
    for better, worse in combinations(sorted(values, key=lambda name: -values[name]), 2):
        delta, pair = values[better] - values[worse], (at.get(better), at.get(worse))
        differences[better, worse] = (
            MetricDifference(delta, None, None, reason)
            if None in pair
            else MetricDifference(delta, float(p[pair]), float(corrected[pair]))
        )
    return differences


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
