"""Which metrics agree better with human scores than which others and than sentinels, and the ranks that follow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations as all_orders

import numpy as np

from bertscore_onnx_evaluation.metrics.correlation import Floats, correlate_pairs, pearson
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS
from bertscore_onnx_evaluation.metrics.meta_results import Difference
from bertscore_onnx_evaluation.metrics.metric_pairs import SentinelTest, against_sentinels
from bertscore_onnx_evaluation.metrics.metric_tests import MIN_SYSTEMS, Williams, clusters, perm_both, williams
from bertscore_onnx_evaluation.metrics.resampling import UnitSums, holm_matrix

PValues = Callable[[Sequence[str]], Floats]
"""Two-sided p of the difference of every two metrics, (metrics, metrics), by their names."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How metrics compare in one statistic."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    """From 1, of each metric with a value."""
    differences: Mapping[tuple[str, str], Difference] = field(default_factory=dict)
    """By the names of two metrics, in both orders."""
    sentinels: tuple[SentinelTest, ...] = ()
    """Each metric against the best sentinel."""


def compare_units(statistic: str, metrics: Mapping[str, UnitSums], p_values: PValues) -> Compared:
    """Compare metrics by a statistic with each other, corrected for all pairs of them, and with the sentinels."""
    values = {name: float(one.statistic(one.sums.sum(axis=0))) for name, one in metrics.items()}
    found = {name: value for name, value in values.items() if np.isfinite(value)}
    names = sorted(found, key=SENTINELS.__contains__)
    num_metrics = sum(name not in SENTINELS for name in names)
    if len(names) < 2:
        return Compared(dict.fromkeys(names[:num_metrics], 1))
    p = p_values(names)
    corrected = holm_matrix(p[:num_metrics, :num_metrics])
    ranks = clusters(np.array([found[name] for name in names[:num_metrics]]), corrected)
    differences = {
        (names[one], names[other]): Difference(
            found[names[one]] - found[names[other]], float(p[one, other]), p_holm=float(corrected[one, other])
        )
        for one, other in all_orders(range(num_metrics), 2)
    }
    return Compared(
        {name: int(rank) for name, rank in zip(names[:num_metrics], ranks, strict=True)},
        differences,
        against_sentinels(statistic, found, names, p),
    )


def compare_by_perm_both(
    human: Floats | None, scores: Mapping[str, Floats | None], permutations: int, seed: int
) -> Compared:
    """Compare metrics by Pearson's r at one level by PERM-BOTH: one-sided, without a correction.

    Scores are those of systems, (systems,), or of segments, (systems, segments).
    """
    if human is None:
        return Compared()
    human = human.reshape(len(human), -1)
    found = _correlating(human, scores)
    names = [*found]
    if len(names) < 2:
        return Compared(dict.fromkeys(names, 1))
    human = human / np.nanmax(np.abs(human))
    tested = perm_both(human, [*found.values()], permutations=permutations, seed=seed)
    differences = {
        (names[one], names[other]): Difference(
            float(tested.correlations[one] - tested.correlations[other]),
            float(tested.p[one, other]),
            float(tested.p[other, one]),
        )
        for one, other in all_orders(range(len(names)), 2)
    }
    ranks = clusters(tested.correlations, tested.p)
    return Compared({name: int(rank) for name, rank in zip(names, ranks, strict=True)}, differences)


def with_williams(compared: Compared, human: Floats, scores: Mapping[str, Floats | None]) -> Compared:
    """Add Williams' test to the differences between metrics of whole systems, whose scores are (systems,)."""
    metrics = _correlating(human[:, None], scores)
    r = {name: correlate_pairs(human, metric[:, 0]).value or 0.0 for name, metric in metrics.items()}
    is_judged = ~np.isnan(human)
    n = int(is_judged.sum())

    def tested(one: str, other: str) -> Williams:
        if n < MIN_SYSTEMS:
            return Williams(None, None, n, reason=f"{n} systems, and the test needs {MIN_SYSTEMS}")
        between = pearson(*(metrics[name][is_judged, 0] for name in (one, other)))
        return williams(r[one], r[other], float(between), n)

    differences = {pair: replace(one, williams=tested(*pair)) for pair, one in compared.differences.items()}
    return replace(compared, differences=differences)


def _correlating(human: Floats, scores: Mapping[str, Floats | None]) -> dict[str, Floats]:
    """Return the metrics that correlate, (systems, segments), scaled so that their squares are within range."""
    found = {name: metric.reshape(human.shape) for name, metric in scores.items() if metric is not None}
    return {
        name: metric / np.nanmax(np.abs(metric))
        for name, metric in found.items()
        if correlate_pairs(human.ravel(), metric.ravel()).value is not None
    }
