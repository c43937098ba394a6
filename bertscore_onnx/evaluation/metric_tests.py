"""PERM-BOTH, the ranks that follow, and Williams' test of which metrics correlate better with human scores.

Deutsch, Dror and Roth, "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling Methods",
TACL 2021, section 4.2. The ranks are those of the WMT metrics tasks (mt-metrics-eval: `data.py:AssignRanks`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import (
    GROUPINGS,
    ROUNDING,
    Floats,
    correlate,
    correlate_pairs,
    judged_scores,
    midranks,
    pearson,
    scipy_module,
    segment_accuracies,
    system_means,
    tie_calibrated_accuracy,
)
from bertscore_onnx.evaluation.power import SIGNIFICANT, intervals
from bertscore_onnx.evaluation.significance import MAX_EXACT, NUM_RESAMPLES, bootstrap_counts, holm

Level = Literal["all", "segment", "system", "system_means"]
LEVELS = (*GROUPINGS, "system_means")
CHUNK_CELLS = 2_000_000
"""Signs in memory at a time: 16 MB."""
KENDALL_SAMPLE = 500
"""Outputs that each is compared with for the interval of Kendall's τ."""
MIN_PERMUTATIONS = 30
"""For each pair of metrics: Holm multiplies the smallest p by the number of pairs."""
MIN_SYSTEMS = 4
"""Of Williams' test, which has n − 3 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class PermBoth:
    """Which of several metrics correlate better with human scores than which others."""

    correlations: Floats
    """Pearson's r of each metric, (metrics,)."""
    p: Floats
    """One-sided p that metric i correlates better than metric j, (metrics, metrics); 1 on the diagonal."""


def perm_both(
    human: Floats, metrics: Sequence[Floats], *, level: Level = "all", permutations: int = 1000, seed: int = 0
) -> PermBoth:
    """Test every metric against every other, by exchanging their scores.

    The scores of each metric are standardised (z). A permutation exchanges those of two metrics in each cell,
    system × segment, with probability ½. p is the share of permutations with Δ* ≥ Δ, the difference between the two
    correlations; differences that are equal but for rounding count as equal. All pairs share the permutations.

    Args:
        human: (systems, segments), NaN where nobody judged.
        metrics: each metric's scores, (systems, segments), finite where annotators judged.
        level: `all` judged cells at once; within each `segment` or `system`, then the mean of those that have a
            value; or `system_means`, where each system's score is the mean of its segments (of human scores, the judged
            ones).
        permutations: k, how often each pair is exchanged.
        seed: of the permutations.

    Raises:
        InputError: shapes differ, a score is missing or infinite, an option is unknown, there are fewer than two
            metrics, or one has no correlation; the error has the reason.
    """
    if level not in LEVELS:
        raise InputError(f"There is no level {level!r}; expected one of {', '.join(LEVELS)}.")
    if len(metrics) < 2 or permutations < 1:
        raise InputError(f"{len(metrics)} metrics and {permutations} permutations; expected at least 2 metrics and 1.")
    pairs = [judged_scores(human, metric) for metric in metrics]
    correlations = np.array([_observed(*pair, level, name) for name, pair in enumerate(pairs)])
    human = pairs[0][0]
    exchange = _MeanExchange(human) if level == "system_means" else _CellExchange(human, level)
    scores = np.stack([exchange.arrange(metric) for _, metric in pairs], axis=-1)  # (groups, cells, metrics)

    counts = np.zeros((len(metrics), len(metrics)))
    rng = np.random.default_rng(seed)
    groups, cells, _ = scores.shape
    chunk = max(1, CHUNK_CELLS // (groups * max(cells, len(metrics))))
    for start in range(0, permutations, chunk):
        coins = rng.random((min(chunk, permutations - start), groups, cells), dtype=np.float32)
        signs = 2 * np.rint(coins.swapaxes(0, 1)).astype(np.float64, order="C") - 1  # (groups, permutations, cells)
        for first in range(len(metrics) - 1):
            mean = (scores[..., first, None] + scores[..., first + 1 :]) / 2  # (groups, cells, later metrics)
            half = (scores[..., first, None] - scores[..., first + 1 :]) / 2
            delta = correlations[first] - correlations[first + 1 :]
            permuted = exchange.difference(mean, half, signs)  # (permutations, later metrics)
            counts[first, first + 1 :] += (permuted >= delta - ROUNDING).sum(axis=0)
            counts[first + 1 :, first] += (permuted <= delta + ROUNDING).sum(axis=0)
    p = counts / permutations
    np.fill_diagonal(p, 1)
    return PermBoth(correlations, p)


def clusters(scores: Floats, p: Floats, *, alpha: float = 0.05) -> NDArray[np.int64]:
    """Rank metrics (or systems); a rank ends where any member of it is significantly better than the next metric.

    Metrics in neighbouring ranks need not differ: only one member of the upper rank may be better than the lower ones.

    Args:
        scores: (metrics,), the higher, the better; equal ones are walked in the order given.
        p: p that i is better than j, (metrics, metrics), corrected for the number of pairs if that is wanted.
        alpha: p below which a difference is significant.

    Returns:
        Ranks from 1, (metrics,).

    Raises:
        InputError: shapes do not go together, or a value is missing.
    """
    scores, p = np.asarray(scores, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if scores.ndim != 1 or p.shape != (len(scores), len(scores)) or not (np.isfinite(scores).all() and (p >= 0).all()):
        raise InputError(
            f"Scores of shape {scores.shape} and p of shape {p.shape}; expected (n,) and (n, n), without missing ones."
        )
    ranks = np.zeros(len(scores), dtype=np.int64)
    rank, members = 1, list[int]()
    for metric in np.argsort(-scores, kind="stable"):
        if (p[members, metric] < alpha).any():
            rank, members = rank + 1, []
        members.append(int(metric))
        ranks[metric] = rank
    return ranks


class _CellExchange:
    """Pearson's r over judged cells, after the scores of two metrics were exchanged in some of them.

    An exchange turns x and y into (x + y)/2 ± s·(x − y)/2 with s = ±1, so that the sums r is made of are linear in
    the signs, and one matrix product gives them for many permutations.
    """

    def __init__(self, human: Floats, level: Level) -> None:
        self._level = level
        self._is_judged = ~np.isnan(human)
        cells = self._grouped(human)
        is_judged = ~np.isnan(cells)
        low, high = (bound.reduce(cells, axis=1) for bound in (np.fmin, np.fmax))
        self._groups = low < high  # human scores vary
        cells, is_judged = cells[self._groups], is_judged[self._groups]
        self._counts = is_judged.sum(axis=1)[:, None, None]
        self._human = np.where(is_judged, cells, 0)
        self._human -= np.where(is_judged, self._human.sum(axis=1, keepdims=True) / self._counts[..., 0], 0)
        self._human /= np.linalg.norm(self._human, axis=1, keepdims=True)  # (groups, cells)

    def arrange(self, metric: Floats) -> Floats:
        """Standardise a metric's scores, 0 where nobody judged; (groups, cells)."""
        judged = metric[self._is_judged]
        standardised: Floats = np.where(self._is_judged, (metric - judged.mean()) / judged.std(), 0)
        groups: Floats = self._grouped(standardised)[self._groups]
        return groups

    def difference(self, mean: Floats, half: Floats, signs: Floats) -> Floats:
        """Return how much better the first metric correlates after each permutation, (permutations, pairs)."""
        human = self._human[..., None]
        base = np.stack([mean, mean * human, mean**2 + half**2]).sum(axis=2)[:, :, None]  # (3, groups, 1, pairs)
        change = np.stack([signs @ half, signs @ (half * human), signs @ (2 * mean * half)])
        return self._pearson(base + change) - self._pearson(base - change)

    def _pearson(self, sums: Floats) -> Floats:
        """Average r over the groups where the metric varies, (permutations, pairs), from Σx, Σxg and Σx²."""
        r = _pearson_of_unit(sums, self._counts, np.nan)
        mean: Floats = np.nansum(r, axis=0) / np.maximum(np.isfinite(r).sum(axis=0), 1)
        return mean

    def _grouped(self, matrix: Floats) -> Floats:
        if self._level == "all":
            return matrix.reshape(1, -1)
        return matrix.T if self._level == "segment" else matrix


class _MeanExchange:
    """The same over systems, each of which has the mean of its segments as its score."""

    def __init__(self, human: Floats) -> None:
        means = system_means(human)
        means -= means.mean()
        self._human = (means / np.linalg.norm(means))[:, None, None]

    def arrange(self, metric: Floats) -> Floats:
        """Standardise a metric's scores, (systems, segments)."""
        standardised: Floats = (metric - metric.mean()) / metric.std()
        return standardised

    def difference(self, mean: Floats, half: Floats, signs: Floats) -> Floats:
        """Return how much better the first metric correlates after each permutation, (permutations, pairs)."""
        base, change = mean.sum(axis=1)[:, None], signs @ half  # (systems, 1 or permutations, pairs)
        return self._pearson(base + change) - self._pearson(base - change)

    def _pearson(self, totals: Floats) -> Floats:
        sums = np.stack([totals, totals * self._human, totals**2]).sum(axis=1)
        return _pearson_of_unit(sums, np.array(len(totals)), 0.0)


def _pearson_of_unit(sums: Floats, counts: NDArray[np.int64], of_constant: float) -> Floats:
    """Correlate x with human scores g of mean 0 and norm 1, from Σx, Σxg and Σx², (3, …), and the number of x."""
    total, product, square = sums
    moments = (counts.astype(np.float64), np.zeros(1), np.ones(1), total, square, product)
    return pearson_of_moments(moments, of_constant)


def _observed(human: Floats, metric: Floats, level: Level, name: int) -> float:
    """Correlate a metric with human scores as it is; raise InputError if that has no value."""
    if level == "system_means":
        if (is_missing := np.isnan(metric)).any():
            system, segment = np.argwhere(is_missing)[0]
            raise InputError(
                f"Metric {name} (counted from 0) has no score at system {system}, segment {segment}; "
                f"expected one everywhere, since its system scores are means of all segments."
            )
        observed = correlate_pairs(system_means(human), system_means(metric))
    else:
        observed = correlate(human, metric, by=level, constant_is_zero=False)
    if observed.value is None:
        raise InputError(f"Metric {name} (counted from 0) does not correlate with human scores: {observed.reason}.")
    return observed.value


# Tests by exchanging whole segments (or documents), and intervals by resampling them. Outputs of one segment are
# dependent: its difficulty, length and reference are shared. Every statistic is a function of sums over segments.


Totals = Callable[[Floats], Floats]
"""A statistic, (…), from the totals of its sums, (…, sums); NaN without a value."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitSums:
    """A statistic of a metric as a function of sums over units: segments, documents or systems."""

    sums: Floats
    """(units, sums)."""
    statistic: Totals


def exchange_units(metrics: Sequence[UnitSums], *, permutations: int = 1000, seed: int = 0) -> Floats:
    """Test every two metrics by exchanging their scores in whole units; returns p as `exchange_p` does."""
    totals = [metric.sums.sum(axis=0) for metric in metrics]

    def difference(first: int, second: int, signs: Floats) -> Floats:
        half = (metrics[first].sums - metrics[second].sums) / 2
        changed = half.any(axis=0)  # sums of human scores are those of both
        mean = np.tile((totals[first] + totals[second]) / 2, (len(signs), 1))
        change = np.zeros_like(mean)
        change[:, changed] = signs @ half[:, changed]
        statistic = metrics[first].statistic
        return statistic(mean + change) - statistic(mean - change)

    values = np.array([float(metric.statistic(total)) for metric, total in zip(metrics, totals, strict=True)])
    num_units = len(metrics[0].sums) if metrics else 0
    return exchange_p(values, num_units, difference, permutations=permutations, seed=seed)


def exchange_p(
    values: Floats,
    num_units: int,
    difference: Callable[[int, int, Floats], Floats],
    *,
    permutations: int = 1000,
    seed: int = 0,
) -> Floats:
    """Test every two metrics by exchanging their scores in whole units, with probability ½ each.

    Values are (metrics, …), of one statistic or several. `difference` returns Δ*, (exchanges, …), of two metrics by
    their places, from signs, (exchanges, units), which are -1 where a unit is exchanged.

    Returns two-sided p, (metrics, metrics, …), 1 on the diagonal: with up to 13 units the share of all ways to exchange
    them in which |Δ*| >= |Δ|; else (#{|Δ*| >= |Δ|} + 1) / (permutations + 1) with random ones.
    """
    counts = np.zeros((len(values), *values.shape))
    num_exchanges = 0
    for signs in _exchanges(num_units, permutations, seed):
        num_exchanges += len(signs)
        for first, second in combinations(range(len(values)), 2):
            delta = np.abs(difference(first, second, signs))
            observed = np.abs(values[first] - values[second])
            counts[first, second] += (~(delta < observed - ROUNDING)).sum(axis=0)  # NaN counts as large
    observed_too = int(num_units > MAX_EXACT)
    p = (counts + counts.swapaxes(0, 1) + observed_too) / (num_exchanges + observed_too)
    p[np.arange(len(values)), np.arange(len(values))] = 1
    return p


def _exchanges(num_units: int, permutations: int, seed: int) -> Iterator[Floats]:
    """Yield signs, (exchanges, units), in blocks: of all exchanges of few units, else of random ones."""
    if num_units <= MAX_EXACT:
        ways = np.arange(1 << num_units)[:, None] >> np.arange(num_units)
        yield np.where(ways & 1, -1.0, 1.0)
        return
    rng = np.random.default_rng(seed)
    chunk = max(1, CHUNK_CELLS // num_units)
    for start in range(0, permutations, chunk):
        yield rng.choice([-1.0, 1.0], size=(min(chunk, permutations - start), num_units))


def smallest_p(num_units: int) -> float:
    """Return the smallest p that all ways to exchange units can give, before Holm's correction."""
    return min(1.0, 2.0 ** (1 - num_units))


def enough_permutations(permutations: int, num_metrics: int) -> int:
    """Return at least as many permutations as corrected p-values need to be below .05."""
    return max(permutations, MIN_PERMUTATIONS * num_metrics * (num_metrics - 1) // 2)


def holm_matrix(p: Floats) -> Floats:
    """Correct a symmetric matrix of p, (n, n), for the number of its pairs."""
    upper = np.triu_indices(len(p), 1)
    corrected = np.ones_like(p)
    corrected[upper] = corrected.T[upper] = holm(p[upper])
    return corrected


def resample_units(statistics: Sequence[UnitSums], *, num_resamples: int = NUM_RESAMPLES, seed: int = 0) -> Floats:
    """Return the 95 % interval of each statistic by a bootstrap of units, (2, statistics); NaN without a value."""
    num_units = len(statistics[0].sums)
    values = [
        np.stack([one.statistic(counts @ one.sums) for one in statistics])
        for counts in bootstrap_counts(np.random.default_rng(seed), num_units, num_resamples)
    ]
    columns = np.concatenate(values, axis=1)
    kept = [column[np.isfinite(column)] for column in columns]
    none = np.full(2, np.nan)
    return np.stack([intervals(column, num_units) if len(column) else none for column in kept], axis=1)


def share_interval(value: float, influences: Floats, freedom: float) -> tuple[float, float]:
    """Return the 95 % interval of a share, or of another statistic in [0, 1], such as an area under a curve.

    It is Wilson's, for as many independent observations as would have the same variance, with a quantile of Student's
    t. `influences`, (units,), are by how much each unit moves the value, and have the mean 0. If the variance is 0, as
    of a share of 1, there are as many observations as degrees of freedom, plus one.
    """
    variance = float((influences**2).sum()) * len(influences) / max(1, len(influences) - 1)
    number = value * (1 - value) / variance if variance > ROUNDING**2 else freedom + 1
    return wilson(value, number, float(scipy_module("special").stdtrit(freedom, 1 - SIGNIFICANT / 2)))


def wilson(share: float, number: float, quantile: float) -> tuple[float, float]:
    """Return the interval of a share of a number of observations: E. B. Wilson, "Probable inference", JASA 1927."""
    weight = quantile**2 / number
    centre = (share + weight / 2) / (1 + weight)
    half = quantile * np.sqrt(share * (1 - share) / number + weight / (4 * number)) / (1 + weight)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


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


def mean_interval(value: float, influences: Floats) -> tuple[float, float]:
    """Return the 95 % interval of a mean by Student's t, from by how much each unit moves it, (units,)."""
    variance = float((influences**2).sum()) * len(influences) / (len(influences) - 1)
    quantile = scipy_module("special").stdtrit(degrees_of_freedom(influences), 1 - SIGNIFICANT / 2)
    half = float(quantile * np.sqrt(variance))
    return value - half, value + half


def correlation_interval(one: UnitSums) -> tuple[float, float]:
    """Return the 95 % interval of a correlation by a jackknife of its units; NaN where leaving one out has no value.

    It is of Fisher's z, which is more nearly normal; where few units move it much, it is wider than a bootstrap's.
    """
    totals, num_units = one.sums.sum(axis=0), len(one.sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, *left = np.arctanh(one.statistic(np.vstack([totals, totals - one.sums])))
        influences = (np.mean(left) - np.array(left)) * ((num_units - 1) / num_units)
    if num_units < 2 or not np.isfinite(influences).all():
        return np.nan, np.nan
    low, high = np.tanh(mean_interval(float(value), influences))
    return float(low), float(high)


def ratio_influences(sums: Floats) -> Floats:
    """Return the influences on a ratio, Σ total / Σ number, of the units that have any number, from (units, 2)."""
    number, total = sums[sums[:, 0] > 0].T
    influences: Floats = (total - total.sum() / number.sum() * number) / number.sum()
    return influences


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


def numbered(units: Sequence[str] | None, num_rows: int) -> NDArray[np.int64]:
    """Return the number of each row's unit, from 0; without units each row is one."""
    if units is None:
        return np.arange(num_rows)
    if len(units) != num_rows:
        raise InputError(f"There are {num_rows} rows and {len(units)} units; expected one for each.")
    return np.unique(np.array([*map(str, units)], dtype=object), return_inverse=True)[1]


def sum_by_unit(sums: Floats, units: NDArray[np.int64]) -> Floats:
    """Add up the sums of segments, (sums, segments), to those of units, (units, sums); units are numbers from 0."""
    order = np.argsort(units, kind="stable")
    starts = np.searchsorted(units[order], np.arange(units.max() + 1))
    of_units: Floats = np.add.reduceat(sums[:, order].astype(np.float64), starts, axis=1).T
    return of_units


def _moments(human: Floats, metric: Floats, is_judged: NDArray[np.bool_]) -> Floats:
    """Return 1, g, g², x, x² and g·x of standardised scores, 0 where nobody judged; (6, systems, segments)."""
    sides = []
    for scores in (human, metric):
        judged = scores[is_judged]
        centred = np.where(is_judged, scores - judged.mean(), 0)
        sides.append(centred / (np.sqrt((centred**2).sum() / len(judged)) or 1.0))
    g, x = sides
    return np.stack([is_judged.astype(np.float64), g, g * g, x, x * x, g * x])


def pearson_of_moments(moments: Iterable[Floats], of_constant: float = 0.0) -> Floats:
    """Return Pearson's r from the sums of 1, g, g², x, x² and g·x, each (…).

    It is NaN where human scores g are constant, else `of_constant` where the metric's scores x are.
    """
    number, g, gg, x, xx, gx = moments
    number = np.maximum(number, 1)
    human, metric = gg - g * g / number, xx - x * x / number
    human_varies = human > ROUNDING * gg
    varies = human_varies & (metric > ROUNDING * xx)
    r = np.full(varies.shape, of_constant)
    np.divide(gx - g * x / number, np.sqrt(np.maximum(human * metric, 0)), out=r, where=varies)
    return np.where(human_varies, np.clip(r, -1, 1), np.nan)


def _pearson_of_totals(totals: Floats) -> Floats:
    return pearson_of_moments(np.moveaxis(totals, -1, 0))


def _mean_pearson(totals: Floats) -> Floats:
    r = _pearson_of_totals(totals.reshape(*totals.shape[:-1], -1, 6))
    return ratio(np.stack([np.isfinite(r).sum(axis=-1), np.nansum(r, axis=-1)], axis=-1))


def _mean_sums(values: Floats) -> Floats:
    """Return the number and the sum of the values that are not NaN, by segment, (2, segments)."""
    return np.stack([(~np.isnan(values)).astype(np.float64), np.nan_to_num(values)])


def ratio(totals: Floats) -> Floats:
    """Return the second sum as a share of the first, (…), from (…, 2); NaN where that is 0."""
    number, total = np.moveaxis(totals, -1, 0)
    return np.where(number > 0, total / np.maximum(number, 1e-300), np.nan)


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


# Williams' test of two correlations that share the human scores. E. J. Williams, "Regression Analysis", 1959; for
# metrics: Graham and Baldwin, "Testing for Significance of Increased Correlation with Human Judgment", EMNLP 2014,
# equation 1.


@dataclass(frozen=True, slots=True)
class Williams:
    """Whether one metric correlates better with human scores than another."""

    t: float | None
    """The statistic: above 0 where the first metric correlates better. None where there is no value."""
    p: float | None
    """One-sided: the chance of such a t or a larger one, if the two correlated equally well."""
    n: int
    """Systems (or hybrid systems) that the correlations were computed from."""
    reason: str = ""
    """Why there is no value; empty where there is one."""


def williams(r12: float, r13: float, r23: float, n: int) -> Williams:
    """Test whether r12 is larger than r13.

    K = 1 − r12² − r13² − r23² + 2·r12·r13·r23 and
    t = (r12 − r13)·√((n−1)(1+r23)) / √(2K(n−1)/(n−3) + ((r12+r13)/2)²(1−r23)³), with n − 3 degrees of freedom.

    Args:
        r12: Pearson's r of human scores and the first metric, with its sign.
        r13: of human scores and the second.
        r23: of the two metrics.
        n: how many systems each was computed from, at least 4.

    Raises:
        InputError: a correlation is not within [-1, 1], the three cannot come from the same systems, or n < 4.
        MissingExtraError: scipy is not installed.
    """
    if n < MIN_SYSTEMS:
        raise InputError(
            f"Williams' test of {n} systems; expected at least {MIN_SYSTEMS}, since it has n - 3 degrees of freedom."
        )
    correlations = {"r12": r12, "r13": r13, "r23": r23}
    for name, value in correlations.items():
        if not -1 <= value <= 1:
            raise InputError(f"{name} is {value}; expected a correlation within [-1, 1].")
    k = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if k < -1e-9:
        raise InputError(f"No three rows of scores correlate as {correlations}. Compute them from the same systems.")
    variance = 2 * max(k, 0.0) * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if variance <= 1e-15:
        return Williams(None, None, n, reason="the metrics correlate perfectly, and leave nothing to test")
    t = float((r12 - r13) * np.sqrt((n - 1) * (1 + r23)) / np.sqrt(variance))
    return Williams(t, float(scipy_module("stats").t.sf(t, n - 3)), n)
