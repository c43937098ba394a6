"""Statistics of agreement, with their tests and intervals.

Each is a function of sums over whole units (`UnitSums`), which tests exchange, so that one matrix
product gives it for many exchanges.

Units are segments, or documents, whose outputs are dependent: outputs of a segment share its
difficulty, its length and its reference.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.metrics.correlation import (
    CLOSE,
    Floats,
    accuracies,
    judged_scores,
    ordered_pairs,
    pair_differences,
    pearson_of_moments,
    scipy_module,
    shared_segments,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, MIN_UNITS, SIGNIFICANT

NORMAL = NormalDist()

CHUNK_CELLS = 2_000_000
"""Signs in memory at a time: 16 MB."""
MIN_PERMUTATIONS = 30
"""For each pair of metrics: Holm multiplies the smallest p by the number of pairs."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitSums:
    """A statistic of a metric as a function of sums over units.

    Units are segments or documents.
    """

    sums: Floats
    """(units, sums)."""
    statistic: Callable[[Floats], Floats]
    """From the totals of the sums, (…, sums), it returns (…), NaN without a value."""

    @property
    def value(self) -> float:
        """The statistic of all units; NaN without a value."""
        return float(self.statistic(self.sums.sum(axis=0)))


def sum_by_unit(sums: Floats, units: NDArray[np.int64]) -> Floats:
    """Add up the sums of segments to sums of units.

    From (sums, segments) to (units, sums); units are numbers from 0.
    """
    order = np.argsort(units, kind="stable")
    starts = np.searchsorted(units[order], np.arange(units.max() + 1))
    return np.add.reduceat(sums[:, order].astype(np.float64), starts, axis=1).T


def ratio(totals: Floats) -> Floats:
    """Return the second sum as a share of the first, (…), from (…, 2).

    NaN where that is 0.
    """
    number, total = np.moveaxis(totals, -1, 0)
    return np.where(number > 0, total / np.maximum(number, 1e-300), np.nan)


def sum_last(values: Floats) -> Floats:
    """Return the sum over the last axis, (…).

    A matrix product is several times as fast as `sum` where it is short.
    """
    return values @ np.ones(values.shape[-1])


# The agreement of a metric with human scores.


def segment_sums(human: Floats, metric: Floats, units: NDArray[np.int64]) -> dict[str, UnitSums]:
    """Return how a metric's segment scores agree with human scores.

    The result is by the names in `Agreement`. Human and metric scores are (systems, segments);
    units number the segments from 0. acc*_eq has the ε that is best for all segments, and SPA
    normal p-values, which permutations approach, of pairs of systems with 20 common segments.
    """
    human, metric = judged_scores(human, metric)
    by_unit = partial(sum_by_unit, units=units)
    moments = np.tensordot(np.ones(len(human)), _moments(human, metric), (0, 1))  # (6, segments)
    sums = {
        "pearson": UnitSums(by_unit(moments), _pearson_of_totals),
        "pearson_by_item": UnitSums(by_unit(_mean_sums(pearson_of_moments(moments))), ratio),
    }
    epsilon = tie_calibrated_accuracy(human, metric).epsilon
    if epsilon is not None:
        by_segment = accuracies(ordered_pairs(human, metric, epsilon))
        sums["acc_eq"] = UnitSums(by_unit(_mean_sums(by_segment)), ratio)
    is_compared = shared_segments(human) >= MIN_UNITS
    sides = [_spa_sums(scores, is_compared) for scores in (human, metric)]
    if all(side.any() for side in sides):
        sums["spa"] = UnitSums(by_unit(np.concatenate(sides)), _soft_accuracy)
    return sums


def system_sums(
    systems: tuple[Floats, Floats], segments: tuple[Floats, Floats], units: NDArray[np.int64]
) -> UnitSums:
    """Return the correlation of a metric's system scores with human scores, from sums over units.

    Scores by annotators and by the metric are (systems,) and
    (systems, segments). A system's score moves as the mean of its judged segments does; the score
    itself may be of other segments too, or of a corpus.
    """
    is_judged = ~np.isnan(segments[0])
    counts = is_judged.astype(np.float64)
    judged_scores_of_sides = [np.where(is_judged, side, 0) for side in segments]
    sums = np.concatenate([counts, *judged_scores_of_sides])
    offsets = np.concatenate(systems) - _means_of_totals(sums.sum(axis=1))
    return UnitSums(sum_by_unit(sums, units), partial(_pearson_of_means, offsets=offsets))


def _moments(human: Floats, metric: Floats) -> Floats:
    """Return 1, g, g², x, x² and g·x of standardised scores, (6, systems, segments), 0 where nobody
    judged.
    """
    is_judged = ~np.isnan(human)
    sides = []
    for scores in (human, metric):
        centred = np.where(is_judged, scores - scores[is_judged].mean(), 0)
        sides.append(centred / (np.sqrt((centred**2).sum() / is_judged.sum()) or 1.0))
    g, x = sides
    return np.stack([is_judged.astype(np.float64), g, g * g, x, x * x, g * x])


def _pearson_of_totals(totals: Floats) -> Floats:
    return pearson_of_moments(np.moveaxis(totals, -1, 0))


def _mean_sums(values: Floats) -> Floats:
    """Return the number of values, 1 or 0, and the values, 0 where there is none, (2, …)."""
    return np.stack([(~np.isnan(values)).astype(np.float64), np.nan_to_num(values)])


def _spa_sums(scores: Floats, is_compared: NDArray[np.bool_]) -> Floats:
    """Return the differences of the compared pairs of systems and their squares, on one scale,
    (2 · pairs, segments), 0 where one has no score.
    """
    differences = np.nan_to_num(pair_differences(scores)[is_compared])
    squares = differences**2
    scale = squares.sum() / max(1, squares.size) or 1.0
    return np.concatenate([differences / np.sqrt(scale), squares / scale])


def _soft_accuracy(totals: Floats) -> Floats:
    """Return SPA, the mean of both orders of each pair, (…), from totals of `_spa_sums`."""
    p = []
    are_tied = []
    for side in np.split(totals, 2, axis=-1):
        delta, square = np.split(side, 2, axis=-1)
        are_tied.append(square <= 0)
        error = np.sqrt(np.where(square > 0, square, 1))
        p.append(scipy_module("special").ndtr(-delta / error))
    # p of a tied pair is 1 in both orders
    distance = np.where(are_tied[0] == are_tied[1], np.abs(p[0] - p[1]), 0.5)
    return 1 - sum_last(distance) / distance.shape[-1]


def _means_of_totals(totals: Floats) -> Floats:
    """Return the mean human scores of systems, and beside them those by the metric,
    (…, 2 · systems).
    """
    counts, human, metric = np.split(totals, 3, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.concatenate([human / counts, metric / counts], axis=-1)


def _pearson_of_means(totals: Floats, offsets: Floats) -> Floats:
    centred = []
    for side in np.split(_means_of_totals(totals) + offsets, 2, axis=-1):
        mean = sum_last(side) / side.shape[-1]
        centred.append(side - mean[..., None])
    human, metric = centred
    with np.errstate(invalid="ignore", divide="ignore"):
        r = sum_last(human * metric) / np.sqrt(sum_last(human**2) * sum_last(metric**2))
    return np.clip(r, -1, 1)


# Tests, by exchanging units.


def exchange_units(
    sets: Sequence[Sequence[UnitSums]], *, permutations: int = 1000, seed: int = 0
) -> Floats:
    """Test every two metrics by exchanging their scores in whole units.

    Each unit is exchanged with probability ½.

    Each of the sets, such as language pairs, has all metrics, on units of its own; the mean of
    their statistics over the sets is tested. Returns two-sided p, (metrics, metrics), 1 on the
    diagonal: with up to 13 units in all, the share of all ways to exchange them in which |Δ*| >=
    |Δ|; else (#{|Δ*| >= |Δ|} + 1) / (permutations + 1) with random ones.
    """
    num_metrics = len(sets[0])
    sizes = [len(metrics[0].sums) for metrics in sets]
    totals = []
    for metrics in sets:
        totals.append([metric.sums.sum(axis=0) for metric in metrics])

    def difference(first: int, second: int, signs: Floats) -> Floats:
        differences = []
        signs_of_sets = np.split(signs, np.cumsum(sizes)[:-1], axis=1)
        for metrics, total, signs_of_set in zip(sets, totals, signs_of_sets, strict=True):
            half = (metrics[first].sums - metrics[second].sums) / 2
            changed = half.any(axis=0)  # both have the same sums of human scores
            change = np.zeros((len(signs), half.shape[1]))
            change[:, changed] = signs_of_set @ half[:, changed]
            mean = (total[first] + total[second]) / 2
            statistic = metrics[first].statistic
            differences.append(statistic(mean + change) - statistic(mean - change))
        return np.mean(differences, axis=0)

    counts = np.zeros((num_metrics, num_metrics))
    num_exchanges = 0
    for signs in _exchanges(sum(sizes), permutations, seed):
        num_exchanges += len(signs)
        for first, second in combinations(range(num_metrics), 2):
            observed = np.abs(difference(first, second, np.ones((1, sum(sizes)))))
            exchanged = np.abs(difference(first, second, signs))
            counts[first, second] += (~(exchanged < observed - CLOSE)).sum()  # NaN is large
    observed_too = int(sum(sizes) > MAX_EXACT)
    p = (counts + counts.T + observed_too) / (num_exchanges + observed_too)
    np.fill_diagonal(p, 1)
    return p


def _exchanges(num_units: int, permutations: int, seed: int) -> Iterator[Floats]:
    """Yield signs, (exchanges, units), in blocks: all exchanges of few units, else random ones."""
    if num_units <= MAX_EXACT:
        # Every bit of a number is the exchange of a unit. Exchanges of the last unit mirror these.
        numbers = np.arange(1 << max(num_units - 1, 0))[:, None]
        bits = numbers >> np.arange(num_units)
        yield np.where(bits & 1, -1.0, 1.0)
        return
    rng = np.random.default_rng(seed)
    chunk = max(1, CHUNK_CELLS // num_units)
    for start in range(0, permutations, chunk):
        yield rng.choice([-1.0, 1.0], size=(min(chunk, permutations - start), num_units))


# Intervals, over other units.


def degrees_of_freedom(influences: Floats) -> float:
    """Return the degrees of freedom of a sum of influences, (units,), not all 0.

    A few units that make the sum have few.

    2n / (κ − (n − 3)/(n − 1)) for the kurtosis κ: B. O'Neill, "Some Useful Moment Results in
    Sampling Problems", The American Statistician 2014.
    """
    n = len(influences)
    squares = influences**2
    kurtosis = n * float((squares**2).sum()) / float(squares.sum()) ** 2
    return float(np.clip(2 * n / (kurtosis - (n - 3) / (n - 1)), 1, n - 1))


def jackknife_error(units: UnitSums, effective: float, *, of_z: bool) -> tuple[float, float]:
    """Return the standard error of a statistic by a jackknife, and its degrees of freedom.

    `effective` is the number of units of one size that
    would tell as much. The error of r is that of Fisher's z, which is more nearly normal. It is NaN
    where leaving a unit out has no value, or changes none: nothing is certain.
    """
    totals = units.sums.sum(axis=0)
    num_units = len(units.sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = units.statistic(totals - units.sums)
        if of_z:
            left = np.arctanh(left)
        influences = (left.mean() - left) * ((num_units - 1) / num_units)
    if effective < 2 or not np.isfinite(influences).all() or not influences.any():
        return np.nan, np.nan
    error = np.sqrt((influences**2).sum() * effective / (effective - 1))
    return float(error), min(degrees_of_freedom(influences), effective - 1)


def interval(
    value: float, units: UnitSums, effective: float, *, is_r: bool
) -> tuple[float, float] | None:
    """Return the 95 % interval of a share or of a correlation, by Student's t.

    Returns None where the error is NaN.
    """
    error, freedom = jackknife_error(units, effective, of_z=is_r)
    half = scipy_module("special").stdtrit(freedom, 1 - SIGNIFICANT / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.arctanh(value) if is_r else value
        ends = np.array([centre - half, centre + half])
    if np.isnan(ends).any():
        return None
    bounds = np.tanh(ends) if is_r else np.clip(ends, 0, 1)
    low, high = bounds.tolist()
    return low, high
