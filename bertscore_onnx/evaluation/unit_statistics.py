"""How a metric agrees with human scores, each statistic as a function of sums over units (`UnitSums`)."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.evaluation.correlation import (
    Floats,
    judged_scores,
    midranks,
    pearson,
    pearson_of_moments,
    scipy_module,
    segment_accuracies,
    tie_calibrated_accuracy,
)
from bertscore_onnx.evaluation.resampling import UnitSums, ratio, sum_by_unit

KENDALL_SAMPLE = 500
"""Outputs that each is compared with for the interval of Kendall's τ."""


def segment_sums(human: Floats, metric: Floats, units: NDArray[np.int64]) -> dict[str, UnitSums]:
    """Return statistics of segment scores by their names in `Agreement`; human and metric are (systems, segments).

    Accuracies have the ε that is best for all segments, and Kendall's τ is linearised (by its Hájek projection).
    """
    human, metric = judged_scores(human, metric)
    is_judged = ~np.isnan(human)
    moments = _moments(human, metric, is_judged)  # (6, systems, segments)
    by_item = pearson_of_moments(moments.sum(axis=1))
    by_system = moments.swapaxes(0, 1).reshape(-1, human.shape[1])  # six rows of each system
    by_segment = {
        "pearson_by_item": (_mean_sums(by_item), ratio),
        "pearson_by_system": (by_system, _mean_pearson),
        "acc_eq": (
            _mean_sums(segment_accuracies(human, metric, tie_calibrated_accuracy(human, metric).epsilon or 0.0)),
            ratio,
        ),
    }
    tau_b, tau_c = _kendall_sums(human, metric, is_judged)
    by_segment |= {"kendall": (tau_b, _kendall_ratio), "kendall_c": (tau_c, _kendall_ratio)}
    is_complete = is_judged.all(axis=0)
    if len(human) > 1 and is_complete.any():
        sides = [_spa_sums(np.where(is_complete, scores, 0)) for scores in (human, metric)]
        by_segment["spa"] = (np.concatenate(sides), _soft_accuracy)
    others = {name: UnitSums(sum_by_unit(sums, units), statistic) for name, (sums, statistic) in by_segment.items()}
    return {"pearson": pearson_sums(human, metric, units), **others}


def pearson_sums(human: Floats, metric: Floats, units: NDArray[np.int64]) -> UnitSums:
    """Return Pearson's r over all outputs, both (systems, segments)."""
    moments = _moments(human, metric, ~np.isnan(human)).sum(axis=1)
    return UnitSums(sum_by_unit(moments, units), _pearson_of_totals)


def system_sums(
    systems: tuple[Floats, Floats], segments: tuple[Floats, Floats], units: NDArray[np.int64], kept: NDArray[np.bool_]
) -> dict[str, UnitSums]:
    """Return statistics of system scores by their names in `Agreement`; `kept` systems are not outliers.

    Scores by annotators and by the metric are (systems,) and (systems, segments). A system's score moves as the mean
    of its judged segments does; the score itself may be of other segments too, or of a corpus. Without any judged
    segment it stays as it is.
    """
    is_judged = ~np.isnan(segments[0])
    counts = np.where(is_judged.any(axis=1, keepdims=True), is_judged, 1).astype(np.float64)
    sums = np.concatenate([counts, *(np.where(is_judged, side, 0) for side in segments)])
    means = _means_of_totals(sums.sum(axis=1))
    offsets = np.concatenate([system - mean for system, mean in zip(systems, means, strict=True)])
    found = {
        "pearson": partial(_pearson_of_means, offsets=offsets, kept=slice(None)),
        "pearson_without_outliers": partial(_pearson_of_means, offsets=offsets, kept=kept),
        "accuracy": partial(_accuracy_of_means, offsets=offsets),
    }
    of_units = sum_by_unit(sums, units)
    return {name: UnitSums(of_units, statistic) for name, statistic in found.items()}


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


def _mean_pearson(totals: Floats) -> Floats:
    r = _pearson_of_totals(totals.reshape(*totals.shape[:-1], -1, 6))
    return ratio(np.stack([np.isfinite(r).sum(axis=-1), np.nansum(r, axis=-1)], axis=-1))


def _mean_sums(values: Floats) -> Floats:
    """Return the number and the sum of the values that are not NaN, by segment, (2, segments)."""
    return np.stack([(~np.isnan(values)).astype(np.float64), np.nan_to_num(values)])


def _kendall_sums(human: Floats, metric: Floats, is_judged: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the number of outputs and the projections of the counts of τ_b and of τ_c, by segment, (4, segments)."""
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
    tau_b = sums.sum(axis=1)
    distinct = max(2, min(len(np.unique(side)) for side in ranks))
    return tau_b, np.concatenate([tau_b[:2], np.tile(tau_b[0] * (1 - 1 / distinct), (2, 1))])


def _kendall_ratio(totals: Floats) -> Floats:
    _, both, human, metric = np.moveaxis(totals, -1, 0)
    varies = human * metric > 0
    return np.where(varies, np.clip(both / np.sqrt(np.where(varies, human * metric, 1)), -1, 1), np.nan)


def _spa_sums(scores: Floats) -> Floats:
    """Return the scores of systems and the squared differences of pairs, (systems + pairs, segments)."""
    scores = scores / (np.sqrt((scores**2).mean()) or 1.0)
    first, second = np.triu_indices(len(scores), 1)
    return np.concatenate([scores, (scores[first] - scores[second]) ** 2])


def _soft_accuracy(totals: Floats) -> Floats:
    """Return SPA with normal p-values, which those of permutations approach."""
    half = totals.shape[-1] // 2
    num_systems = round((np.sqrt(8 * half + 1) - 1) / 2)  # systems + pairs = n·(n + 1) / 2
    first, second = np.triu_indices(num_systems, 1)
    p = []
    for side in (totals[..., :half], totals[..., half:]):
        delta, square = side[..., first] - side[..., second], side[..., num_systems:]
        z = -delta / np.sqrt(np.where(square > 0, square, 1))
        p.append(np.where(square > 0, scipy_module("special").ndtr(z), 1))
    soft: Floats = 1 - np.abs(p[0] - p[1]).mean(axis=-1)
    return soft


def _means_of_totals(totals: Floats) -> tuple[Floats, Floats]:
    counts, human, metric = np.split(totals, 3, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return human / counts, metric / counts


def _pearson_of_means(totals: Floats, offsets: Floats, kept: Any) -> Floats:
    sides = np.concatenate(_means_of_totals(totals), axis=-1) + offsets
    return pearson(*np.moveaxis(sides.reshape(*sides.shape[:-1], 2, -1)[..., kept], -2, 0))


def _accuracy_of_means(totals: Floats, offsets: Floats) -> Floats:
    sides = np.concatenate(_means_of_totals(totals), axis=-1) + offsets
    human, metric = np.split(sides, 2, axis=-1)
    first, second = np.triu_indices(human.shape[-1], 1)
    agrees = np.sign(human[..., first] - human[..., second]) == np.sign(metric[..., first] - metric[..., second])
    return np.where(np.isfinite(sides).all(axis=-1), agrees.mean(axis=-1), np.nan)
