"""Exchange and resample whole units: segments, or documents, whose outputs are dependent.

Outputs of a segment share its difficulty, its length and its reference. A statistic is a function of sums over units
(`UnitSums`), so that one matrix product gives it for many exchanges or resamples.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.correlation import ROUNDING, Floats, scipy_module
from bertscore_onnx_evaluation.systems.power import NORMAL, SIGNIFICANT, widening
from bertscore_onnx_evaluation.systems.significance import MAX_EXACT, NUM_RESAMPLES, bootstrap_counts, holm

CHUNK_CELLS = 2_000_000
"""Signs in memory at a time: 16 MB."""
MIN_PERMUTATIONS = 30
"""For each pair of metrics: Holm multiplies the smallest p by the number of pairs."""

Totals = Callable[[Floats], Floats]
"""A statistic, (…), from the totals of its sums, (…, sums); NaN without a value."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitSums:
    """A statistic of a metric as a function of sums over units: segments, documents or systems."""

    sums: Floats
    """(units, sums)."""
    statistic: Totals


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


def ratio(totals: Floats) -> Floats:
    """Return the second sum as a share of the first, (…), from (…, 2); NaN where that is 0."""
    number, total = np.moveaxis(totals, -1, 0)
    return np.where(number > 0, total / np.maximum(number, 1e-300), np.nan)


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


def resampled(
    statistics: Sequence[UnitSums], rng: np.random.Generator, num_resamples: int = NUM_RESAMPLES
) -> list[Floats]:
    """Draw units with replacement, the same for all statistics; returns the values of each, (resamples, …)."""
    drawn = [*bootstrap_counts(rng, len(statistics[0].sums), num_resamples)]
    return [np.concatenate([one.statistic(counts @ one.sums) for counts in drawn]) for one in statistics]


def resample_units(statistics: Sequence[UnitSums], *, num_resamples: int = NUM_RESAMPLES, seed: int = 0) -> Floats:
    """Return the 95 % interval of each statistic about its value, (2, statistics); NaN without a value.

    It is Student's, with the standard error in a bootstrap of units. Quantiles of the bootstrap would be wrong for an
    agreement of systems: noise of the scores lowers it, and resamples have that noise twice.
    """
    num_units = len(statistics[0].sums)
    drawn = resampled(statistics, np.random.default_rng(seed), num_resamples)
    values = [float(one.statistic(one.sums.sum(axis=0))) for one in statistics]
    return np.transpose([student_interval(*one, num_units) for one in zip(values, drawn, strict=True)])


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
            [float(one.statistic(of_units @ one.sums)) for one in statistics(of_systems)]
            for of_systems, of_units in zip(systems, units, strict=True)
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
    p: Floats = 2 * scipy_module("stats").t.sf(t, num_units - 1)
    return p


def student_interval(value: float, resampled: Floats, num_units: int) -> tuple[float, float]:
    """Return the 95 % interval of a value by Student's t with its standard error in resamples, (resamples,).

    Resamples without a value, NaN, are left out; the ends are NaN if none has one.
    """
    found = resampled[np.isfinite(resampled)]
    if not len(found):
        return np.nan, np.nan
    low, high = np.quantile(found, [NORMAL.cdf(-1), NORMAL.cdf(1)])
    error = (high - low) / 2 or found.std()  # the first is not widened by a few resamples with hardly any variance
    half = float(error * widening(num_units) * scipy_module("special").stdtrit(num_units - 1, 1 - SIGNIFICANT / 2))
    return value - half, value + half
