"""Which metrics agree better with human scores than which others and than sentinels, and the ranks that follow.

Ranks are made as in the WMT metrics tasks (mt-metrics-eval: `data.py:AssignRanks`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from itertools import permutations as all_orders
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.metrics.correlation import Floats
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS
from bertscore_onnx_evaluation.metrics.statistics import MIN_PERMUTATIONS, UnitSums, exchange_units
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, SIGNIFICANT, holm


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two metrics in one measure, the first minus the second."""

    delta: float
    """For SPA with normal p-values, which may differ a little from the values printed."""
    p: float
    """Two-sided, by exchanging whole segments or documents; never 0."""
    p_holm: float
    """p, corrected by Holm for all pairs of metrics."""


@dataclass(frozen=True, slots=True)
class SentinelTest:
    """Whether a metric is better than every sentinel, by one measure."""

    metric: str
    sentinel: str
    """The one with the largest p; of equal ones the best."""
    delta: float
    """The metric's value minus that sentinel's."""
    p: float
    """The largest of the p-values against each sentinel; 1 if any is as good."""
    p_holm: float
    """p, corrected by Holm for the number of metrics."""


@dataclass(frozen=True, slots=True)
class MeasureTests:
    """How metrics compare by one measure."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    """From 1, of each metric with a value: a rank ends where a metric in it is significantly better than the next."""
    differences: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    """By the names of two metrics, in both orders."""
    sentinels: tuple[SentinelTest, ...] = ()
    """Each metric against the sentinels."""
    smallest_p: float = 0.0
    """The smallest p that random exchanges can give; 0 if all ways to exchange units were tried."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, every two metrics once."""
        return {
            "pairs": [
                {"first": first, "second": second, **asdict(self.differences[first, second])}
                for first, second in combinations(self.ranks, 2)
            ],
            "sentinels": [asdict(test) for test in self.sentinels],
        }


def compare_metrics(sums: Mapping[str, Sequence[UnitSums]], *, permutations: int, seed: int) -> MeasureTests:
    """Compare metrics by a measure with each other, corrected for all pairs of them, and with the sentinels.

    Each metric has sums of every language pair; the mean of the measure over these is compared.

    A metric is better than every sentinel by the largest p, which needs no correction for these: R. L. Berger,
    "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 1982. Holm's correction is for the number
    of metrics.
    """
    values = {name: float(np.mean([of_pair.value for of_pair in of_metric])) for name, of_metric in sums.items()}
    metrics = sorted((name for name in values if name not in SENTINELS), key=lambda name: -values[name])
    names = [*metrics, *(name for name in values if name in SENTINELS)]
    if len(names) < 2:
        return MeasureTests(dict.fromkeys(metrics, 1))
    number = len(metrics)
    num_exchanges = max(permutations, MIN_PERMUTATIONS * number * (number - 1) // 2)
    by_pair = [*zip(*(sums[name] for name in names), strict=True)]
    p = exchange_units(by_pair, permutations=num_exchanges, seed=seed)
    is_exact = sum(len(of_pair[0].sums) for of_pair in by_pair) <= MAX_EXACT
    scores = np.array([values[name] for name in names])
    deltas = scores[:, None] - scores
    corrected = np.ones((number, number))
    pairs = np.triu_indices(number, 1)
    corrected[pairs] = corrected.T[pairs] = holm(p[pairs])
    differences = {
        (names[row], names[column]): Difference(*(float(matrix[row, column]) for matrix in (deltas, p, corrected)))
        for row, column in all_orders(range(number), 2)
    }
    tests: list[SentinelTest] = []
    if number < len(names):
        by_score = number + np.argsort(-scores[number:], kind="stable")  # the best sentinel first
        against = np.where(deltas > 0, p, 1)[:number, by_score]
        hardest, largest = by_score[against.argmax(axis=1)], against.max(axis=1)
        corrected_p = holm(largest)
        tests = [
            SentinelTest(metric, names[of], float(deltas[row, of]), float(largest[row]), float(corrected_p[row]))
            for row, (metric, of) in enumerate(zip(metrics, hardest.tolist(), strict=True))
        ]
    ranks = clusters(scores[:number], corrected).tolist()
    smallest_p = 0.0 if is_exact else 1 / (num_exchanges + 1)
    return MeasureTests(dict(zip(metrics, ranks, strict=True)), differences, tuple(tests), smallest_p)


def clusters(scores: Floats, p: Floats, *, alpha: float = 0.05) -> NDArray[np.int64]:
    """Rank metrics (or systems); a rank ends where any member of it is significantly better than the next metric.

    Metrics in neighbouring ranks need not differ: only one member of the upper rank may be better than the lower ones.

    Args:
        scores: (metrics,), the higher, the better; equal ones are walked in the order given.
        p: p that i is better than j, (metrics, metrics), corrected for the number of pairs if that is wanted.
        alpha: p below which a difference is significant.

    Returns:
        Ranks from 1, (metrics,).
    """
    ranks = np.zeros(len(scores), dtype=np.int64)
    rank, members = 1, list[int]()
    for metric in np.argsort(-scores, kind="stable"):
        if (p[members, metric] < alpha).any():
            rank, members = rank + 1, []
        members.append(int(metric))
        ranks[metric] = rank
    return ranks


def notes_of_exchanges(num_units: int, kind: str, num_metrics: int) -> Iterator[str]:
    """Yield a warning if so few units can be exchanged that no p after Holm's correction is below .05."""
    num_pairs = num_metrics * (num_metrics - 1) // 2
    least = min(1.0, 2.0 ** (1 - num_units))  # of all ways to exchange units
    if num_units > MAX_EXACT or num_pairs * least < SIGNIFICANT:
        return
    corrected = f", after Holm {min(1.0, num_pairs * least):.3g}" if num_pairs > 1 else ""
    yield f"{num_units} {kind}: no p is below 2/{1 << num_units} = {least:.3g}{corrected}: none is significant"
