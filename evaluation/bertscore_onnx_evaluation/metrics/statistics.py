"""Statistics of agreement as functions of sums over whole units: their tests, by exchange, and their intervals.

Units are segments, or documents, whose outputs are dependent: outputs of a segment share its difficulty, its length and
its reference. A statistic is a function of sums over units (`UnitSums`), so that one matrix product gives it for many
exchanges or resamples.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from itertools import permutations as all_orders

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.metrics.correlation import (
    ROUNDING,
    Floats,
    judged_scores,
    midranks,
    ordered_pairs,
    pair_differences,
    pair_signs,
    pearson_of_moments,
    scipy_module,
    tie_calibrated_accuracy,
    unit_vectors,
)
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, NUM_RESAMPLES, bootstrap_counts
from bertscore_onnx_evaluation.systems.power import NORMAL, SIGNIFICANT, widening

CHUNK_CELLS = 2_000_000
"""Signs in memory at a time: 16 MB."""
MAX_PERMUTED = 7
"""With up to so many systems, all 5,040 permutations are tried."""
MIN_PERMUTATIONS = 30
"""For each pair of metrics: Holm multiplies the smallest p by the number of pairs."""
KENDALL_SAMPLE = 500
"""Outputs that each is compared with for the interval of Kendall's τ."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitSums:
    """A statistic of a metric as a function of sums over units: segments, documents or systems."""

    sums: Floats
    """(units, sums)."""
    statistic: Callable[[Floats], Floats]
    """From the totals of the sums, (…, sums), it returns (…), NaN without a value."""

    @property
    def value(self) -> float:
        """The statistic of all units; NaN without a value."""
        return float(self.statistic(self.sums.sum(axis=0)))


def sum_by_unit(sums: Floats, units: NDArray[np.int64]) -> Floats:
    """Add up the sums of segments, (sums, segments), to those of units, (units, sums); units are numbers from 0."""
    order = np.argsort(units, kind="stable")
    starts = np.searchsorted(units[order], np.arange(units.max() + 1))
    return np.add.reduceat(sums[:, order].astype(np.float64), starts, axis=1).T


def ratio(totals: Floats) -> Floats:
    """Return the second sum as a share of the first, (…), from (…, 2); NaN where that is 0."""
    number, total = np.moveaxis(totals, -1, 0)
    return np.where(number > 0, total / np.maximum(number, 1e-300), np.nan)


# The agreement of a metric with human scores.


class SegmentStatistics:
    """The agreement of a metric's segment scores with human scores, as functions of sums over units.

    Human and metric scores are (systems, segments); units number the segments from 0. Accuracies have the ε that is
    best for all segments, and Kendall's τ is linearised (by its Hájek projection).
    """

    def __init__(self, human: Floats, metric: Floats, units: NDArray[np.int64]) -> None:
        human, metric = judged_scores(human, metric)
        self._units = units
        self._is_judged = ~np.isnan(human)
        self._moments = _moments(human, metric, self._is_judged)  # (6, systems, segments)
        self._by_system = sum_by_unit(self._moments.swapaxes(0, 1).reshape(-1, human.shape[1]), units)
        self._kendall, self._distinct = _kendall_sums(human, metric, self._is_judged)  # (4, systems, segments)
        epsilon = tie_calibrated_accuracy(human, metric).epsilon or 0.0
        self._pairs = ordered_pairs(human, metric, epsilon)  # (judged and right, pairs, segments)
        is_complete = self._is_judged.all(axis=0)
        self._spa = None
        if len(human) > 1 and is_complete.any() and np.ptp(metric[:, is_complete]) > 0:
            sides = [_spa_sums(np.where(is_complete, scores, 0)) for scores in (human, metric)]
            self._spa = sum_by_unit(np.concatenate(sides), units)

    def sums(self, weights: Floats | None = None) -> dict[str, UnitSums]:
        """Return each statistic by its name in `Agreement`; `weights` are how often each system counts, (systems,)."""
        weights = np.ones(len(self._is_judged)) if weights is None else weights
        weights_of_pairs = pair_weights(weights)
        moments = np.tensordot(weights, self._moments, (0, 1))  # (6, segments)
        kendall = np.tensordot(weights, self._kendall, (0, 1))
        pairs, right = weights_of_pairs @ self._pairs
        by_item = _mean_sums(pearson_of_moments(moments))
        accuracies = _mean_sums(np.where(pairs > 0, right / np.maximum(pairs, 1), np.nan))
        by_unit = partial(sum_by_unit, units=self._units)
        sums = {
            "pearson": UnitSums(by_unit(moments), _pearson_of_totals),
            "pearson_by_item": UnitSums(by_unit(by_item), ratio),
            "pearson_by_system": UnitSums(self._by_system, partial(_mean_pearson, weights=weights)),
            "kendall": UnitSums(by_unit(kendall), _kendall_ratio),
            "kendall_c": UnitSums(by_unit(kendall), partial(_kendall_ratio, distinct=self._distinct)),
            "acc_eq": UnitSums(by_unit(accuracies), ratio),
        }
        if self._spa is not None:
            sums["spa"] = UnitSums(self._spa, partial(_soft_accuracy, weights=weights_of_pairs))
        return sums


class SystemStatistics:
    """The agreement of a metric's system scores with human scores, as functions of sums over units.

    Scores by annotators and by the metric are (systems,) and (systems, segments); `kept` systems are not outliers. A
    system's score moves as the mean of its judged segments does; the score itself may be of other segments too, or of
    a corpus. Without any judged segment it stays as it is.
    """

    def __init__(
        self,
        systems: tuple[Floats, Floats],
        segments: tuple[Floats, Floats],
        units: NDArray[np.int64],
        kept: NDArray[np.bool_],
    ) -> None:
        is_judged = ~np.isnan(segments[0])
        counts = np.where(is_judged.any(axis=1, keepdims=True), is_judged, 1).astype(np.float64)
        sums = np.concatenate([counts, *(np.where(is_judged, side, 0) for side in segments)])
        self._offsets = np.concatenate(systems) - _means_of_totals(sums.sum(axis=1))
        self._sums = sum_by_unit(sums, units)
        self._kept = kept

    def sums(self, weights: Floats | None = None) -> dict[str, UnitSums]:
        """Return each statistic by its name in `Agreement`; `weights` are how often each system counts, (systems,)."""
        weights = np.ones(len(self._kept)) if weights is None else weights
        pearson, accuracy = (partial(of, offsets=self._offsets) for of in (_pearson_of_means, _accuracy_of_means))
        return {
            "pearson": UnitSums(self._sums, partial(pearson, weights=weights)),
            "pearson_without_outliers": UnitSums(self._sums, partial(pearson, weights=weights * self._kept)),
            "accuracy": UnitSums(self._sums, partial(accuracy, weights=pair_weights(weights))),
        }


def pair_weights(weights: Floats) -> Floats:
    """Return how often each pair of different systems counts, (pairs,), if the systems count so often, (systems,)."""
    first, second = np.triu_indices(len(weights), 1)
    return weights[first] * weights[second]


def _moments(human: Floats, metric: Floats, is_judged: NDArray[np.bool_]) -> Floats:
    """Return 1, g, g², x, x² and g·x of standardised scores, 0 where nobody judged; (6, systems, segments)."""
    sides = []
    for scores in (human, metric):
        judged = scores[is_judged]
        centred = np.where(is_judged, scores - judged.mean(), 0)
        sides.append(centred / (np.sqrt((centred**2).sum() / len(judged)) or 1.0))
    g, x = sides
    return np.stack([is_judged.astype(np.float64), g, g * g, x, x * x, g * x])


def _pearson_of_totals(totals: Floats) -> Floats:
    return pearson_of_moments(np.moveaxis(totals, -1, 0))


def _mean_pearson(totals: Floats, weights: Floats) -> Floats:
    r = _pearson_of_totals(totals.reshape(*totals.shape[:-1], -1, 6))
    return ratio(np.stack([side @ weights for side in _mean_sums(r)], axis=-1))


def _mean_sums(values: Floats) -> Floats:
    """Return the number of values, 1 or 0 where there is none, and the values, 0 there; (2, …)."""
    return np.stack([(~np.isnan(values)).astype(np.float64), np.nan_to_num(values)])


def _kendall_sums(human: Floats, metric: Floats, is_judged: NDArray[np.bool_]) -> tuple[Floats, int]:
    """Return the number of outputs and the projections of the counts of τ_b, (4, systems, segments), 0 if not judged.

    With them comes the smaller number of distinct scores, by which τ_c corrects.
    """
    ranks = np.stack([midranks(side[is_judged]).astype(np.float32) for side in (human, metric)])
    sample = ranks[:, None, np.random.default_rng(0).permutation(ranks.shape[1])[:KENDALL_SAMPLE]]
    blocks = []
    for start in range(0, ranks.shape[1], KENDALL_SAMPLE):
        rows = ranks[:, start : start + KENDALL_SAMPLE, None]
        signs = (rows > sample).astype(np.int8) - (rows < sample)  # (sides, rows, sample)
        products = (signs[0] * signs[1], signs[0] != 0, signs[1] != 0)
        blocks.append(np.stack([product.mean(axis=1, dtype=np.float64) for product in products]))
    projections = np.concatenate(blocks, axis=1)
    projections = 2 * projections - projections.mean(axis=1, keepdims=True)
    sums = np.zeros((4, *human.shape))
    sums[:, is_judged] = np.concatenate([np.ones((1, projections.shape[1])), projections])
    return sums, max(2, min(len(np.unique(side)) for side in ranks))


def _kendall_ratio(totals: Floats, distinct: int | None = None) -> Floats:
    """Return τ_b; with the number of distinct scores τ_c, whose denominator is of all pairs."""
    number, both, human, metric = np.moveaxis(totals, -1, 0)
    scale = np.sqrt(np.maximum(human * metric, 0)) if distinct is None else number * (1 - 1 / distinct)
    return np.where(scale > 0, np.clip(both / np.where(scale > 0, scale, 1), -1, 1), np.nan)


def _spa_sums(scores: Floats) -> Floats:
    """Return the scores of systems and the squared differences of pairs, (systems + pairs, segments)."""
    scores = scores / (np.sqrt((scores**2).mean()) or 1.0)
    return np.concatenate([scores, pair_differences(scores) ** 2])


def _soft_accuracy(totals: Floats, weights: Floats) -> Floats:
    """Return SPA with normal p-values, which those of permutations approach; weights are of pairs of systems."""
    num_systems = (totals.shape[-1] // 2) - len(weights)
    first, second = np.triu_indices(num_systems, 1)
    p = []
    for side in np.split(totals, 2, axis=-1):
        delta, square = side[..., first] - side[..., second], side[..., num_systems:]
        z = -delta / np.sqrt(np.where(square > 0, square, 1))
        p.append(np.where(square > 0, scipy_module("special").ndtr(z), 1))
    return 1 - _weighted_mean(np.abs(p[0] - p[1]), weights)


def _weighted_mean(values: Floats, weights: Floats) -> Floats:
    """Return the mean along the last axis; NaN if all weights are 0."""
    total = weights.sum()
    return values @ weights / total if total else np.full(values.shape[:-1], np.nan)


def _means_of_totals(totals: Floats) -> Floats:
    """Return the mean human scores of systems and those by the metric, (…, 2 · systems)."""
    counts, human, metric = np.split(totals, 3, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.concatenate([human / counts, metric / counts], axis=-1)


def _pearson_of_means(totals: Floats, offsets: Floats, weights: Floats) -> Floats:
    sides = np.split(_means_of_totals(totals) + offsets, 2, axis=-1)
    human, metric = (side - _weighted_mean(side, weights)[..., None] for side in sides)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (human * metric) @ weights / np.sqrt((human**2 @ weights) * (metric**2 @ weights))
    return np.clip(r, -1, 1)


def _accuracy_of_means(totals: Floats, offsets: Floats, weights: Floats) -> Floats:
    sides = _means_of_totals(totals) + offsets
    human, metric = np.split(sides, 2, axis=-1)
    agrees = pair_signs(human) == pair_signs(metric)
    return np.where(np.isfinite(sides).all(axis=-1), _weighted_mean(agrees.astype(np.float64), weights), np.nan)


# Tests, by exchanging units.


def exchange_units(metrics: Sequence[UnitSums], *, permutations: int = 1000, seed: int = 0) -> Floats:
    """Test every two metrics by exchanging their scores in whole units, with probability ½ each.

    Returns two-sided p, (metrics, metrics), 1 on the diagonal: with up to 13 units the share of all ways to exchange
    them in which |Δ*| >= |Δ|; else (#{|Δ*| >= |Δ|} + 1) / (permutations + 1) with random ones.
    """
    totals = [metric.sums.sum(axis=0) for metric in metrics]

    def difference(first: int, second: int, signs: Floats) -> Floats:
        half = (metrics[first].sums - metrics[second].sums) / 2
        changed = half.any(axis=0)  # sums of human scores are those of both
        change = np.zeros((len(signs), half.shape[1]))
        change[:, changed] = signs @ half[:, changed]
        mean, statistic = (totals[first] + totals[second]) / 2, metrics[first].statistic
        return statistic(mean + change) - statistic(mean - change)

    num_units = len(metrics[0].sums) if metrics else 0
    return _p_of_exchanges(difference, len(metrics), num_units, permutations, seed)


def exchange_systems(human: Floats, metrics: Floats, *, permutations: int = 1000, seed: int = 0) -> Floats:
    """Test every two metrics, (metrics, systems), by exchanging their standardised scores in whole systems.

    Scores are standardised again after each exchange. The statistic is Hotelling's for two correlations with human
    scores g, (systems,): the partial correlation of g with x − y given x + y. The difference of the correlations itself
    would vary less between exchanges than between samples where systems are few. p is that of `exchange_units`.
    """
    human, metrics = unit_vectors(human), unit_vectors(metrics)

    def difference(first: int, second: int, signs: Floats) -> Floats:
        total, change = metrics[first] + metrics[second], signs * (metrics[first] - metrics[second])
        change = change - change.mean(axis=1, keepdims=True)
        x, y = (side / _norms(side) for side in (total + change, total - change))  # (exchanges, systems)
        explained = np.nan_to_num(((x + y) @ human)[:, None] / _norms(x + y) ** 2) * (x + y)  # 0 where y is -x
        return (x - y) @ human / (_norms(x - y) * _norms(human - explained))[:, 0]

    return _p_of_exchanges(difference, len(metrics), len(human), permutations, seed)


def _norms(rows: Floats) -> Floats:
    """Return the norm of each row, (rows, 1), NaN for one that is 0 but for rounding."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.where(norms > ROUNDING, norms, np.nan)[:, None]


def permute_systems(human: Floats, metrics: Floats, *, permutations: int = 1000, seed: int = 0) -> Floats:
    """Test whether each metric, (metrics, systems), correlates with human scores, (systems,), by permuting systems.

    Returns two-sided p, (metrics,): with up to 7 systems the share of all permutations in which |r*| >= |r|; else
    (#{|r*| >= |r|} + 1) / (permutations + 1) with random ones.
    """
    is_exact = len(human) <= MAX_PERMUTED
    if is_exact:
        orders = np.array([*all_orders(range(len(human)))])
    else:
        orders = np.random.default_rng(seed).permuted(np.tile(np.arange(len(human)), (permutations, 1)), axis=1)
    human, metrics = unit_vectors(human), unit_vectors(metrics)
    r, permuted = np.abs(metrics @ human), np.abs(human[orders] @ metrics.T)  # (metrics,), (permutations, metrics)
    observed_too = int(not is_exact)
    return ((permuted >= r - ROUNDING).sum(axis=0) + observed_too) / (len(orders) + observed_too)


def _p_of_exchanges(
    difference: Callable[[int, int, Floats], Floats], num_metrics: int, num_units: int, permutations: int, seed: int
) -> Floats:
    """Return p of every two metrics from their differences, (exchanges,), by their numbers and the signs of units."""
    counts = np.zeros((num_metrics, num_metrics))
    num_exchanges = 0
    for signs in _exchanges(num_units, permutations, seed):
        num_exchanges += len(signs)
        for first, second in combinations(range(num_metrics), 2):
            observed = np.abs(difference(first, second, np.ones((1, num_units))))
            exchanged = np.abs(difference(first, second, signs))
            counts[first, second] += (~(exchanged < observed - ROUNDING)).sum()  # NaN is large
    observed_too = int(num_units > MAX_EXACT)
    p = (counts + counts.T + observed_too) / (num_exchanges + observed_too)
    np.fill_diagonal(p, 1)
    return p


def _exchanges(num_units: int, permutations: int, seed: int) -> Iterator[Floats]:
    """Yield signs, (exchanges, units), in blocks: of all exchanges of few units, else of random ones."""
    if num_units <= MAX_EXACT:
        ways = np.arange(1 << max(num_units - 1, 0))[:, None] >> np.arange(num_units)  # the others mirror these
        yield np.where(ways & 1, -1.0, 1.0)
        return
    rng = np.random.default_rng(seed)
    chunk = max(1, CHUNK_CELLS // num_units)
    for start in range(0, permutations, chunk):
        yield rng.choice([-1.0, 1.0], size=(min(chunk, permutations - start), num_units))


# Intervals, over other units, or over other systems too.


def resampled(
    statistics: Sequence[UnitSums], rng: np.random.Generator, num_resamples: int = NUM_RESAMPLES
) -> list[Floats]:
    """Draw units with replacement, the same for all statistics; returns the values of each, (resamples, …)."""
    drawn = bootstrap_counts(rng, len(statistics[0].sums), num_resamples)
    blocks = [[units.statistic(counts @ units.sums) for units in statistics] for counts in drawn]
    return [np.concatenate(values) for values in zip(*blocks, strict=True)]


def degrees_of_freedom(influences: Floats) -> float:
    """Return those of the variance of a sum of influences, (units,): few if a few units make it, else units − 1.

    2n / (κ − (n − 3)/(n − 1)) for the kurtosis κ: B. O'Neill, "Some Useful Moment Results in Sampling Problems", The
    American Statistician 2014.
    """
    n, squares = len(influences), influences**2
    if n < 2 or not squares.any():
        return n - 1.0
    kurtosis = n * float((squares**2).sum()) / float(squares.sum()) ** 2
    return float(np.clip(2 * n / (kurtosis - (n - 3) / (n - 1)), 1, n - 1))


def jackknife_error(units: UnitSums) -> tuple[float, float]:
    """Return the standard error of a correlation's Fisher's z by a jackknife of its units, and its degrees of freedom.

    Fisher's z is more nearly normal than r. Where few units move it much, the interval is wider than a bootstrap's.
    The error is NaN where leaving a unit out has no value.
    """
    totals, num_units = units.sums.sum(axis=0), len(units.sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.arctanh(units.statistic(totals - units.sums))
        influences = (left.mean() - left) * ((num_units - 1) / num_units)
    if num_units < 2 or not np.isfinite(influences).all():
        return np.nan, np.nan
    variance = float((influences**2).sum()) * num_units / (num_units - 1)
    return np.sqrt(variance), degrees_of_freedom(influences)


def bootstrap_error(resampled: Floats, num_units: int) -> tuple[float, float]:
    """Return the standard error of a statistic in resamples, (resamples,), and its degrees of freedom.

    Resamples without a value, NaN, are left out; the error is NaN if none has one. Quantiles of the bootstrap would be
    wrong for an agreement of systems: noise of the scores lowers it, and resamples have that noise twice.
    """
    values = resampled[np.isfinite(resampled)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [NORMAL.cdf(-1), NORMAL.cdf(1)])
    error = (high - low) / 2 or values.std()  # the first is not widened by a few resamples with hardly any variance
    return float(error) * widening(num_units), num_units - 1


def student_interval(value: float, error: float, freedom: float, *, of_z: bool = False) -> tuple[float, float]:
    """Return the 95 % interval of a value by Student's t; of a correlation, the error may be that of Fisher's z."""
    half = scipy_module("special").stdtrit(freedom, 1 - SIGNIFICANT / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.arctanh(value) if of_z else value
        low, high = centre - half, centre + half
    return (float(np.tanh(low)), float(np.tanh(high))) if of_z else (float(low), float(high))


def resampled_both(
    statistics: Callable[[Floats], Sequence[UnitSums]],
    num_systems: int,
    num_units: int,
    rng: np.random.Generator,
    num_resamples: int = NUM_RESAMPLES,
) -> Floats:
    """Draw systems and units with replacement, the same for all statistics; returns (resamples, statistics).

    `statistics` are functions of how often each system counts, (systems,). Deutsch, Dror and Roth, TACL 2021, section
    4.1: BOOT-BOTH.
    """
    systems, units = (
        np.concatenate([*bootstrap_counts(rng, number, num_resamples)]) for number in (num_systems, num_units)
    )
    return np.array(
        [
            [float(drawn.statistic(unit_counts @ drawn.sums)) for drawn in statistics(system_counts)]
            for system_counts, unit_counts in zip(systems, units, strict=True)
        ]
    )


def student_p(deltas: Floats, resampled: Floats, num_units: int) -> Floats:
    """Return two-sided p of differences, (…), by Student's t with their standard error in resamples, (resamples, …).

    Resamples without a value, NaN, are left out; p is 1 if none has one.
    """
    has_value = np.isfinite(resampled)
    number = np.maximum(has_value.sum(axis=0), 1)
    centred = np.where(has_value, resampled - np.where(has_value, resampled, 0).sum(axis=0) / number, 0)
    error = np.sqrt((centred**2).sum(axis=0) / number) * widening(num_units)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where((np.abs(deltas) > ROUNDING) & has_value.any(axis=0), np.abs(deltas) / error, 0.0)
    return 2 * scipy_module("stats").t.sf(t, num_units - 1)
