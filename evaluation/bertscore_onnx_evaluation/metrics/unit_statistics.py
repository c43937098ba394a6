"""How a metric agrees with human scores, each statistic as a function of sums over units (`UnitSums`)."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.metrics.correlation import (
    Floats,
    judged_scores,
    midranks,
    ordered_pairs,
    pair_signs,
    pearson_of_moments,
    scipy_module,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.metrics.resampling import UnitSums, ratio, sum_by_unit

KENDALL_SAMPLE = 500
"""Outputs that each is compared with for the interval of Kendall's τ."""


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
        of_pairs = pair_weights(weights)
        moments = np.tensordot(weights, self._moments, (0, 1))  # (6, segments)
        kendall = np.tensordot(weights, self._kendall, (0, 1))
        pairs, right = of_pairs @ self._pairs
        by_item = _mean_sums(pearson_of_moments(moments))
        accuracies = _mean_sums(np.where(pairs > 0, right / np.maximum(pairs, 1), np.nan))
        found = {
            "pearson": UnitSums(self._by_unit(moments), _pearson_of_totals),
            "pearson_by_item": UnitSums(self._by_unit(by_item), ratio),
            "pearson_by_system": UnitSums(self._by_system, partial(_mean_pearson, weights=weights)),
            "kendall": UnitSums(self._by_unit(kendall), _kendall_ratio),
            "kendall_c": UnitSums(self._by_unit(kendall), partial(_kendall_ratio, distinct=self._distinct)),
            "acc_eq": UnitSums(self._by_unit(accuracies), ratio),
        }
        if self._spa is not None:
            found["spa"] = UnitSums(self._spa, partial(_soft_accuracy, weights=of_pairs))
        return found

    def _by_unit(self, sums: Floats) -> Floats:
        return sum_by_unit(sums, self._units)


def pearson_sums(human: Floats, metric: Floats, units: NDArray[np.int64]) -> UnitSums:
    """Return Pearson's r over all outputs, both (systems, segments)."""
    moments = _moments(human, metric, ~np.isnan(human)).sum(axis=1)
    return UnitSums(sum_by_unit(moments, units), _pearson_of_totals)


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
        means = _means_of_totals(sums.sum(axis=1))
        self._offsets = np.concatenate([system - mean for system, mean in zip(systems, means, strict=True)])
        self._sums = sum_by_unit(sums, units)
        self._kept = kept

    def sums(self, weights: Floats | None = None) -> dict[str, UnitSums]:
        """Return each statistic by its name in `Agreement`; `weights` are how often each system counts, (systems,)."""
        weights = np.ones(len(self._kept)) if weights is None else weights
        found = {
            "pearson": partial(_pearson_of_means, weights=weights),
            "pearson_without_outliers": partial(_pearson_of_means, weights=weights * self._kept),
            "accuracy": partial(_accuracy_of_means, weights=pair_weights(weights)),
        }
        return {name: UnitSums(self._sums, partial(one, offsets=self._offsets)) for name, one in found.items()}


def pair_weights(weights: Floats) -> Floats:
    """Return how often each pair of different systems counts, (pairs,), if the systems count so often, (systems,)."""
    first, second = np.triu_indices(len(weights), 1)
    of_pairs: Floats = weights[first] * weights[second]
    return of_pairs


def whole_system_sums(human: Floats, metric: Floats) -> UnitSums:
    """Return Pearson's r of system scores, (systems,), with the systems as units."""
    return pearson_sums(human[None], metric[None], np.arange(len(human)))


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
    return ratio(np.stack([np.isfinite(r) @ weights, np.nan_to_num(r) @ weights], axis=-1))


def _mean_sums(values: Floats) -> Floats:
    """Return the number and the sum of the values that are not NaN, by segment, (2, segments)."""
    return np.stack([(~np.isnan(values)).astype(np.float64), np.nan_to_num(values)])


def _kendall_sums(human: Floats, metric: Floats, is_judged: NDArray[np.bool_]) -> tuple[Floats, int]:
    """Return the number of outputs and the projections of the counts of τ_b, (4, systems, segments), 0 if not judged.

    With them comes the smaller number of distinct scores, by which τ_c corrects.
    """
    ranks = [midranks(side[is_judged]).astype(np.float32) for side in (human, metric)]
    others = np.random.default_rng(0).permutation(len(ranks[0]))[:KENDALL_SAMPLE]
    blocks = []
    for start in range(0, len(ranks[0]), KENDALL_SAMPLE):
        rows = [side[start : start + KENDALL_SAMPLE, None] for side in ranks]
        signs = [
            (row > side[others]).astype(np.int8) - (row < side[others]) for row, side in zip(rows, ranks, strict=True)
        ]
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
    first, second = np.triu_indices(len(scores), 1)
    return np.concatenate([scores, (scores[first] - scores[second]) ** 2])


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
    mean: Floats = values @ weights / total if total else np.full(values.shape[:-1], np.nan)
    return mean


def _means_of_totals(totals: Floats) -> tuple[Floats, Floats]:
    counts, human, metric = np.split(totals, 3, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return human / counts, metric / counts


def _pearson_of_means(totals: Floats, offsets: Floats, weights: Floats) -> Floats:
    human, metric = np.split(np.concatenate(_means_of_totals(totals), axis=-1) + offsets, 2, axis=-1)
    human, metric = (side - _weighted_mean(side, weights)[..., None] for side in (human, metric))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (human * metric) @ weights / np.sqrt((human**2 @ weights) * (metric**2 @ weights))
    clipped: Floats = np.clip(r, -1, 1)
    return clipped


def _accuracy_of_means(totals: Floats, offsets: Floats, weights: Floats) -> Floats:
    sides = np.concatenate(_means_of_totals(totals), axis=-1) + offsets
    human, metric = np.split(sides, 2, axis=-1)
    agrees = pair_signs(human) == pair_signs(metric)
    return np.where(np.isfinite(sides).all(axis=-1), _weighted_mean(agrees.astype(np.float64), weights), np.nan)
