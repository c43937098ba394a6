"""Which metrics agree better with human scores.

Metrics are compared with each other and with sentinels, and ranked as in the WMT metrics tasks
(mt-metrics-eval: `data.py:AssignRanks`).
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
from bertscore_onnx_evaluation.metrics.statistics import (
    MIN_PERMUTATIONS,
    UnitSums,
    exchange_units,
)
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, SIGNIFICANT, holm


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two metrics in a measure: the first minus the second."""

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
    """From 1, of each metric with a value.

    A rank ends where a metric in it is significantly better than the next.
    """
    differences: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    """By the names of two metrics, in both orders."""
    sentinels: tuple[SentinelTest, ...] = ()
    """Each metric against the sentinels."""
    smallest_p: float = 0.0
    """The smallest p that random exchanges can give; 0 if all exchanges of units were tried."""

    def is_better(self, first: str, second: str) -> bool | None:
        """Return whether a metric is significantly better than another; None if not tested."""
        difference = self.differences.get((first, second))
        if difference is None:
            return None
        return difference.delta > 0 and difference.p_holm < SIGNIFICANT

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it, every two metrics once."""
        pairs = []
        for first, second in combinations(self.ranks, 2):
            difference = asdict(self.differences[first, second])
            pairs.append({"first": first, "second": second, **difference})
        return {"pairs": pairs, "sentinels": [asdict(test) for test in self.sentinels]}


def compare_metrics(
    sums: Mapping[str, Sequence[UnitSums]],
    *,
    permutations: int,
    seed: int,
) -> MeasureTests:
    """Compare metrics by a measure, with each other and with the sentinels.

    Each metric has sums of every language pair; the mean of the measure over these is compared.
    The p-values of metrics are corrected for all pairs of them.

    A metric is better than every sentinel by the largest p, which needs no correction for these:
    R. L. Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 1982.
    Holm's correction is for the number of metrics.
    """
    values = {}
    for name, of_metric in sums.items():
        values[name] = float(np.mean([of_pair.value for of_pair in of_metric]))
    metrics = [name for name in values if name not in SENTINELS]
    metrics.sort(key=lambda name: -values[name])
    names = metrics + [name for name in values if name in SENTINELS]
    if len(names) < 2:
        return MeasureTests(dict.fromkeys(metrics, 1))
    num_metrics = len(metrics)
    num_pairs = num_metrics * (num_metrics - 1) // 2
    num_exchanges = max(permutations, MIN_PERMUTATIONS * num_pairs)
    by_pair = list(zip(*(sums[name] for name in names), strict=True))
    p = exchange_units(by_pair, permutations=num_exchanges, seed=seed)
    scores = np.array([values[name] for name in names])
    deltas = scores[:, None] - scores
    corrected = np.ones((num_metrics, num_metrics))
    pairs = np.triu_indices(num_metrics, 1)
    # The p of two metrics is the same in both orders.
    corrected[pairs] = corrected.T[pairs] = holm(p[pairs])
    differences = {}
    for row, column in all_orders(range(num_metrics), 2):
        differences[names[row], names[column]] = Difference(
            float(deltas[row, column]),
            float(p[row, column]),
            float(corrected[row, column]),
        )
    tests: tuple[SentinelTest, ...] = ()
    if len(names) > num_metrics:
        tests = _sentinel_tests(names, num_metrics, scores, p)
    ranks = clusters(scores[:num_metrics], corrected).tolist()
    num_units = sum(len(of_pair[0].sums) for of_pair in by_pair)
    smallest_p = 0.0 if num_units <= MAX_EXACT else 1 / (num_exchanges + 1)
    return MeasureTests(dict(zip(metrics, ranks, strict=True)), differences, tests, smallest_p)


def _sentinel_tests(
    names: Sequence[str],
    num_metrics: int,
    scores: Floats,
    p: Floats,
) -> tuple[SentinelTest, ...]:
    """Test each metric against the sentinels, which follow the metrics."""
    by_score = num_metrics + np.argsort(-scores[num_metrics:], kind="stable")  # the best first
    deltas = scores[:, None] - scores
    against = np.where(deltas > 0, p, 1)[:num_metrics, by_score]
    hardest = by_score[against.argmax(axis=1)].tolist()
    largest = against.max(axis=1)
    corrected = holm(largest)
    tests = []
    for metric, sentinel in enumerate(hardest):
        tests.append(
            SentinelTest(
                names[metric],
                names[sentinel],
                float(deltas[metric, sentinel]),
                float(largest[metric]),
                float(corrected[metric]),
            )
        )
    return tuple(tests)


def clusters(scores: Floats, p: Floats, *, alpha: float = 0.05) -> NDArray[np.int64]:
    """Rank metrics (or systems).

    A rank ends where any member of it is significantly better than the next metric. Metrics in
    neighbouring ranks need not differ: only one member of the upper rank may be better than the
    lower ones.

    Args:
        scores: (metrics,), the higher, the better; equal ones are walked in the order given.
        p: p that i is better than j, (metrics, metrics), corrected for the number of pairs if that
            is wanted.
        alpha: p below which a difference is significant.

    Returns:
        Ranks from 1, (metrics,).
    """
    ranks = np.zeros(len(scores), dtype=np.int64)
    rank = 1
    members: list[int] = []
    for metric in np.argsort(-scores, kind="stable"):
        if (p[members, metric] < alpha).any():
            rank += 1
            members = []
        members.append(int(metric))
        ranks[metric] = rank
    return ranks


def notes_of_exchanges(num_units: int, kind: str, num_metrics: int) -> Iterator[str]:
    """Yield a warning if so few units can be exchanged that none differs.

    No p after Holm's correction is then below .05.
    """
    num_pairs = num_metrics * (num_metrics - 1) // 2
    smallest = min(1.0, 2.0 ** (1 - num_units))  # of all exchanges of units
    if num_units > MAX_EXACT or num_pairs * smallest < SIGNIFICANT:
        return
    corrected = ""
    if num_pairs > 1:
        corrected = f", after Holm {min(1.0, num_pairs * smallest):.3g}"
    bound = f"2/{1 << num_units} = {smallest:.3g}{corrected}"
    yield f"{num_units} {kind}: no p is below {bound}: none is significant"
