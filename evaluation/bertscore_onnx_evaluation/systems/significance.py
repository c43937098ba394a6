"""Paired tests of corpus scores: a permutation test, and the two tests of sacreBLEU's `significance.py`.

Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004; Riezler and Maxwell, "On some
pitfalls in automatic evaluation and significance testing for MT", 2005. All metrics that are tested with the same
seed, numbers of resamples and segments share their resamples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.systems.corpus_scores import (
    MIN_UNITS,
    ROUNDING,
    CorpusScores,
    SegmentMeans,
    UnitValues,
    draw_counts,
    run_variance,
)
from bertscore_onnx_evaluation.systems.power import (
    DEGENERATE,
    SIGNIFICANT,
    PowerCurve,
    intervals,
    studentised_intervals,
)
from bertscore_onnx_evaluation.systems.segments import is_frame, score_matrix

# Holm's correction for several tests: Holm, "A simple sequentially rejective multiple test procedure", 1979.


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values so that the chance of even one false rejection stays below the level.

    The i-th smallest of m is multiplied by m - i + 1, and none is below a smaller one before it, nor above 1 (as R's
    `p.adjust`). Equal p-values get equal results.

    Args:
        p: the p-values of tests that belong together, (tests,), each in [0, 1].

    Returns:
        Adjusted p-values, (tests,), in the order given.

    Raises:
        InputError: `p` is not one row of numbers in [0, 1].
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InputError("Holm's correction takes one row of p-values, each from 0 to 1; these are not: check them.")
    order = np.argsort(values)
    scaled = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return adjusted


# The confidence interval of a corpus score, from its resamples: sacreBLEU's `significance.py:estimate_ci`.


CUT = 40
"""One of this many resamples is left out at each end: 2.5 %."""


def confidence_interval(resampled: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of resampled scores, (resamples, …), and the half-width of the 95 % interval about it, each (…).

    n // 40 scores are left out at each end; the half-width is half the distance between the lowest and the highest of
    the rest.
    """
    ordered = np.sort(resampled, axis=0)
    cut = len(ordered) // CUT
    return ordered.mean(axis=0), (ordered[len(ordered) - 1 - cut] - ordered[cut]) / 2


# The random draws of the paired tests, a block at a time: for one seed, those of sacreBLEU (`significance.py`). A
# numpy generator continues where it stopped, so blocks hold the same numbers as one draw of all of them.


SEED = 12345
"""The default seed, as in sacreBLEU."""

NUM_RESAMPLES = 1000
"""The default number of bootstrap resamples, as in sacreBLEU."""

NUM_SWAPS = 10_000
"""The default number of trials of approximate randomization, as in sacreBLEU."""

BLOCK_CELLS = 1 << 20
"""Draws in memory at a time: 8 MB of indices."""

DRAWN_BITS = 32
"""numpy draws booleans 32 at a time and drops the rest of the last; blocks of 32 rows leave none."""


def bootstrap_indices(rng: np.random.Generator, num_segments: int, num_resamples: int) -> Iterator[NDArray[np.int64]]:
    """Yield the segments of each resample, drawn with replacement, in blocks of (rows, num_segments)."""
    rows = max(1, BLOCK_CELLS // num_segments)
    for start in range(0, num_resamples, rows):
        yield rng.choice(num_segments, size=(min(rows, num_resamples - start), num_segments), replace=True)


def bootstrap_counts(rng: np.random.Generator, num_units: int, num_resamples: int) -> Iterator[NDArray[np.float64]]:
    """Yield how often each unit is in each resample, in blocks of (rows, num_units)."""
    return map(draw_counts, bootstrap_indices(rng, num_units, num_resamples))


def kept_segments(rng: np.random.Generator, num_segments: int, num_swaps: int) -> Iterator[NDArray[np.bool_]]:
    """Yield which segments two systems keep, while they swap the others, in blocks of (rows, num_segments)."""
    rows = max(1, BLOCK_CELLS // num_segments // DRAWN_BITS) * DRAWN_BITS
    for start in range(0, num_swaps, rows):
        yield rng.integers(2, size=(min(rows, num_swaps - start), num_segments), dtype=bool)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairedTestResult:
    """The systems' scores with their intervals, and the difference of each pair with its p-value."""

    score: NDArray[np.float64]
    """The corpus score of each system, (systems,)."""

    mean: NDArray[np.float64]
    """The mean of the system's resamples, (systems,)."""

    half_width: NDArray[np.float64]
    """Half the width of the 95 % interval about that mean, (systems,); `paired_permutation` widens it for few units."""

    pairs: NDArray[np.int64]
    """The systems compared, by row: the baseline, and the other; (pairs, 2)."""

    delta: NDArray[np.float64]
    """The other system's score minus the baseline's, (pairs,)."""

    interval: NDArray[np.float64]
    """The 95 % interval of the difference, low and high: at each end the wider of Student's and the bootstrap-t;
    (pairs, 2)."""

    interval_90: NDArray[np.float64]
    """The 90 % interval, within which a test of equivalence at a level of 5 % is; (pairs, 2)."""

    error: NDArray[np.float64]
    """The standard error of the difference, by linearisation, (pairs,)."""

    differing: NDArray[np.int64]
    """The number of units in which the two systems differ, (pairs,)."""

    power_curves: tuple[PowerCurve | None, ...]
    """The power of the test of each pair, at the smallest of Holm's levels; None where all units differ by the same."""

    run_share: NDArray[np.float64] | None
    """The part of the squared standard error that is due to runs, (pairs,), from 0 to 1; None without runs."""

    p: NDArray[np.float64]
    """The p-value of the difference, two-sided, (pairs,)."""

    p_holm: NDArray[np.float64]
    """The same, corrected for all the pairs of this test, (pairs,)."""

    wins: NDArray[np.float64]
    """The share of resamples in which the other system is ahead of the baseline; a tie is no win; (pairs,)."""

    names: tuple[str, ...] = ()
    """The names of the systems, if they came as the columns of a data frame."""

    def __repr__(self) -> str:
        """Return a line for each pair: the difference, its interval, and p."""
        names = self.names or [f"system {number}" for number in range(len(self.score))]
        lines = [
            f"{names[other]} - {names[baseline]}: {delta:+.4f}, 95 % interval {low:+.4f} to {high:+.4f}, p {p:.4f}"
            for (baseline, other), delta, (low, high), p in zip(
                self.pairs, self.delta, self.interval, self.p, strict=True
            )
        ]
        return "\n".join(["PairedTestResult", *lines])

    def _repr_html_(self) -> str:
        """Return the same as a notebook shows it."""
        return f"<pre>{escape(repr(self))}</pre>"


MAX_EXACT = 13
"""If two systems differ in at most this many units, all 2^n ways to swap them are tried, and none is drawn."""


def paired_permutation(
    scores: ArrayLike | CorpusScores,
    *,
    all_pairs: bool = False,
    mid_p: bool = False,
    num_swaps: int = NUM_SWAPS,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = SEED,
) -> PairedTestResult:
    """Test whether systems differ, by swapping the outputs of two systems for segments chosen at random.

    p = (#{ |Δ*| ≥ |Δ| } + 1) / (n + 1), where Δ* is the difference after swapping: at most α of comparisons of equal
    systems have p ≤ α, since a difference equal to the observed one is counted. With at most `MAX_EXACT` segments that
    differ, p is exact: the share of all 2^n ways to swap them. Systems that are the same have p = 1. Intervals and wins
    come from bootstrap resamples (Fisher, The Design of Experiments, 1935; Phipson and Smyth, "Permutation p-values
    should never be zero", 2010). With scores of 0 and 1 the test is McNemar's, exact up to the draw of swaps.

    Where many ways give the same difference, as with scores of few grades, p is larger than it need be. `mid_p` counts
    half of those equal to the observed one: about α of comparisons of equal systems have p ≤ α, on average over such
    scores, and not at most α (Lancaster, "Significance tests in discrete distributions", 1961).

    Args:
        scores: segment scores of a metric whose corpus score is their mean, (systems, segments), higher being better,
            or a data frame as for `compare`; or a metric, as `SegmentMeans` or `SummedStatistics`. The first system is
            the baseline.
        all_pairs: whether to compare every pair of systems, and not only the others with the baseline.
        mid_p: whether ways that give the observed difference count half.
        num_swaps: n, at least 1.
        num_resamples: the resamples of the intervals and the wins, at least 1.
        seed: of the swaps and the resamples, 0 or more.

    Raises:
        InputError: fewer than two systems, over 20 and more than segments, no segment, a score that is not finite, or
            an option out of its range.
    """
    names, metric, pairs, score, delta = _observed(scores, all_pairs, seed, num_swaps, num_resamples)
    rounding = max(metric.rounding, ROUNDING * float(np.abs(score).max()))

    def reaching(kept: NDArray[np.bool_], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Count the swaps that reach the observed differences of some pairs, (rows,)."""
        differences = np.abs(metric.differences(kept, pairs[rows]))  # (swaps, rows)
        counts: NDArray[np.float64] = (differences >= np.abs(delta[rows]) - rounding).sum(axis=0, dtype=np.float64)
        if mid_p:
            counts = (counts + (differences > np.abs(delta[rows]) + rounding).sum(axis=0)) / 2
        return counts

    differing = np.stack([metric.differing(*pair) for pair in pairs])  # (pairs, segments)
    is_exact = differing.sum(axis=1) <= MAX_EXACT
    p = np.empty(len(pairs))
    for pair in np.flatnonzero(is_exact):
        counts = [reaching(kept, np.array([pair])) for kept in _all_swaps(differing[pair])]
        p[pair] = np.sum(counts) / 2.0 ** differing[pair].sum()
    rng, drawn = np.random.default_rng(seed), np.flatnonzero(~is_exact)
    counted = np.full(len(drawn), 0.5 if mid_p else 1.0)  # the observed assignment is one of the ways
    for kept in kept_segments(rng, metric.shape[1], num_swaps) if len(drawn) else ():
        counted += reaching(kept, drawn)
    p[drawn] = counted / (num_swaps + 1)
    resampled = _resampled(metric, np.random.default_rng(seed), num_resamples, pairs)
    low, high = intervals(resampled.scores, metric.shape[1])
    own = resampled.scores.mean(axis=0), (high - low) / 2
    return _result(metric, pairs, score, delta, p, resampled, own, names)


def _all_swaps(differing: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Yield all ways to swap the units that differ, which units are kept in each, in blocks of (rows, units)."""
    columns = np.flatnonzero(differing)
    rows = max(1, BLOCK_CELLS // len(differing))
    for start in range(0, 1 << len(columns), rows):
        ways = np.arange(start, min(start + rows, 1 << len(columns)))
        kept = np.ones((len(ways), len(differing)), dtype=bool)
        kept[:, columns] = (ways[:, None] >> np.arange(len(columns))) & 1
        yield kept


def paired_bootstrap(
    scores: ArrayLike | CorpusScores,
    *,
    all_pairs: bool = False,
    centred: bool = False,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = SEED,
) -> PairedTestResult:
    """Test whether systems differ, on resamples of the segments that are the same for all systems.

    p = (#{ |Δ*| - mean(|Δ*|) > |Δ| } + 1) / (n + 1), as in sacreBLEU (`_paired_bs_test`). A difference equal to the
    observed one is not counted. Where two systems are equally good this p is too small: hardly above .43, and below .05
    in 11 of 100 comparisons. `centred` takes (#{ |Δ* - mean(Δ*)| > |Δ| } + 1) / (n + 1), which is uniform then.

    Args:
        scores: segment scores of a metric whose corpus score is their mean, (systems, segments), higher being better,
            or a data frame as for `compare`; or a metric, as `SegmentMeans` or `SummedStatistics`. The first system is
            the baseline.
        all_pairs: whether to compare every pair of systems, and not only the others with the baseline.
        centred: whether to centre the differences with their signs.
        num_resamples: n, at least 1.
        seed: of the resamples, 0 or more.

    Raises:
        InputError: fewer than two systems, over 20 and more than segments, no segment, a score that is not finite, or
            an option out of its range.
    """
    names, metric, pairs, score, delta = _observed(scores, all_pairs, seed, num_resamples)
    resampled = _resampled(metric, np.random.default_rng(seed), num_resamples, pairs)
    differences = resampled.differences(pairs)
    if centred:
        spread = np.abs(differences - differences.mean(axis=0))
    else:
        spread = np.abs(differences) - np.abs(differences).mean(axis=0)
    p = _p_value((spread > np.abs(delta)).sum(axis=0), num_resamples)
    return _result(metric, pairs, score, delta, p, resampled, confidence_interval(resampled.scores), names)


def approximate_randomization(
    scores: ArrayLike | CorpusScores,
    *,
    all_pairs: bool = False,
    num_swaps: int = NUM_SWAPS,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = SEED,
) -> PairedTestResult:
    """Test whether systems differ, by swapping the outputs of two systems for segments chosen at random.

    p = (#{ |Δ*| > |Δ| } + 1) / (n + 1), as in sacreBLEU (`_paired_ar_test`): a difference equal to the observed one is
    not counted. Intervals and wins come from bootstrap resamples, drawn after the swaps; only the interval of the
    first system comes from those of `paired_bootstrap`, as it does there.

    Args:
        scores: as for `paired_bootstrap`.
        all_pairs: whether to compare every pair of systems, and not only the others with the baseline.
        num_swaps: n, at least 1.
        num_resamples: the resamples of the intervals and the wins, at least 1.
        seed: of the swaps and the resamples, 0 or more.

    Raises:
        InputError: fewer than two systems, over 20 and more than segments, no segment, a score that is not finite, or
            an option out of its range.
    """
    names, metric, pairs, score, delta = _observed(scores, all_pairs, seed, num_swaps, num_resamples)
    rng = np.random.default_rng(seed)
    threshold = np.abs(delta) + metric.rounding  # differences that are equal but for rounding are not counted
    exceeding = np.zeros(len(pairs), dtype=np.int64)
    for kept in kept_segments(rng, metric.shape[1], num_swaps):
        exceeding += (np.abs(metric.differences(kept, pairs)) > threshold).sum(axis=0)
    p = _p_value(exceeding, num_swaps)
    resampled = _resampled(metric, rng, num_resamples, pairs)
    blocks = bootstrap_indices(np.random.default_rng(seed), metric.shape[1], num_resamples)
    first = np.concatenate([metric.resampled(indices, slice(1)) for indices in blocks])
    own = confidence_interval(np.hstack([first, resampled.scores[:, 1:]]))
    return _result(metric, pairs, score, delta, p, resampled, own, names)


def check_draws(number: int, seed: int) -> None:
    """Raise InputError where fewer than one resample or swap is to be drawn, or the seed is below 0."""
    if number < 1:
        raise InputError(f"{number} resamples or swaps were asked for. Draw at least one.")
    if seed < 0:
        raise InputError(f"The seed is {seed}. Give 0 or a positive number.")


def _observed(
    scores: ArrayLike | CorpusScores, all_pairs: bool, seed: int, *draws: int
) -> tuple[tuple[str, ...], CorpusScores, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Check the arguments of a test; return the names of a data frame's systems, the metric, the pairs, (pairs, 2), the
    scores, and their differences.
    """
    names: tuple[str, ...] = ()
    if is_frame(scores):
        names, matrix = score_matrix(scores)
        metric: CorpusScores = SegmentMeans(matrix)
    else:
        metric = scores if isinstance(scores, CorpusScores) else _of_rows(scores)
    if metric.shape[0] < 2:
        raise InputError("There is one system. A paired test compares at least two: the baseline, and another.")
    for number in draws:
        check_draws(number, seed)
    pairs = np.array([pair for pair in combinations(range(metric.shape[0]), 2) if all_pairs or pair[0] == 0])
    score = metric.observed()
    return names, metric, pairs, score, score[pairs[:, 1]] - score[pairs[:, 0]]


def _of_rows(scores: ArrayLike) -> SegmentMeans:
    """Return the metric of a matrix with a row for each system."""
    metric = SegmentMeans(scores)
    num_systems, num_segments = metric.shape
    if num_systems > max(num_segments, MIN_UNITS):
        raise InputError(
            f"There are {num_systems:,} systems, and scores of {num_segments:,} segments each; expected a row for each "
            "system. Transpose the matrix with `.T`, or give `SegmentMeans(scores)` if this is meant."
        )
    return metric


def _power_curve(units: UnitValues, pair: int, differing: NDArray[np.bool_], num_tests: int) -> PowerCurve | None:
    """Return the power of the test of a pair; None if its units are too few, or differ by the same."""
    of_pair = UnitValues(units.values[pair : pair + 1, differing], units.sizes[differing])
    number = len(of_pair.sizes)
    if number < 2:
        return None
    error = float(of_pair.errors(np.ones((1, number)))[0, 0] * of_pair.sizes.sum() / units.sizes.sum())
    largest = np.abs(units.values[pair]).max()
    if error <= DEGENERATE * largest:
        return None
    squares = (of_pair.deviations()[0] / largest) ** 2
    kurtosis = float((squares**2).mean() / squares.mean() ** 2) * (number + 1) / (number - 1)  # 3 for normal ones
    return PowerCurve(error, len(differing), number, kurtosis, SIGNIFICANT / num_tests)  # the smallest of Holm's levels


@dataclass(frozen=True, slots=True, eq=False)
class _Resampled:
    """Resamples of the units, which are the same for all systems."""

    scores: NDArray[np.float64]
    """The corpus scores, (resamples, systems)."""

    errors: NDArray[np.float64]
    """The standard errors of the differences of pairs, (resamples, pairs)."""

    def differences(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the differences of pairs, (resamples, pairs)."""
        differences: NDArray[np.float64] = self.scores[:, pairs[:, 1]] - self.scores[:, pairs[:, 0]]
        return differences


def _resampled(
    metric: CorpusScores, rng: np.random.Generator, num_resamples: int, pairs: NDArray[np.int64]
) -> _Resampled:
    """Score all resamples."""
    units = metric.unit_values(pairs)
    scores, errors = [], []
    for indices in bootstrap_indices(rng, metric.shape[1], num_resamples):
        times = draw_counts(indices)
        scores.append(metric.resampled(indices, times=times))
        errors.append(units.errors(times))
    return _Resampled(np.concatenate(scores), np.concatenate(errors))


def _result(
    metric: CorpusScores,
    pairs: NDArray[np.int64],
    score: NDArray[np.float64],
    delta: NDArray[np.float64],
    p: NDArray[np.float64],
    resampled: _Resampled,
    own: tuple[NDArray[np.float64], NDArray[np.float64]],
    names: tuple[str, ...],
) -> PairedTestResult:
    """Return the result of a test; `own` are the means of the systems' resamples and their half-widths, (systems,)."""
    num_units, units, differences = metric.shape[1], metric.unit_values(pairs), resampled.differences(pairs)
    [error] = units.errors(np.ones((1, num_units)))
    studentised = (delta, error, differences, resampled.errors, num_units)
    interval, interval_90 = (studentised_intervals(*studentised, tail).T for tail in (SIGNIFICANT / 2, SIGNIFICANT))
    differing = np.stack([metric.differing(*pair) for pair in pairs])  # (pairs, units)
    run_share = None
    if isinstance(metric, SegmentMeans) and metric.runs:
        of_runs = np.array([run_variance(runs) for runs in metric.runs])[pairs].sum(axis=1)
        share = np.zeros(len(pairs))
        run_share = np.minimum(np.divide(of_runs, error**2, out=share, where=error > 0), 1)
    wins = _wins(differences, metric.lower_is_better)
    return PairedTestResult(
        score,
        *own,
        pairs,
        delta,
        interval,
        interval_90,
        error,
        differing.sum(axis=1),
        tuple(_power_curve(units, row, different, len(pairs)) for row, different in enumerate(differing)),
        run_share,
        p,
        holm(p),
        wins,
        names,
    )


def _p_value(exceeding: NDArray[np.int64], num_draws: int) -> NDArray[np.float64]:
    """Return the share of draws that exceed the observed difference, which is counted as one more of them."""
    p: NDArray[np.float64] = (exceeding + 1) / (num_draws + 1)
    return p


def _wins(differences: NDArray[np.float64], lower_is_better: bool) -> NDArray[np.float64]:
    """Return the share of resamples in which the second system of each pair is better, (pairs,)."""
    better = differences < 0 if lower_is_better else differences > 0
    share: NDArray[np.float64] = better.mean(axis=0)
    return share


def segment_outcomes(
    scores: NDArray[np.float64], *, tolerance: float = 0.0, lower_is_better: bool = False
) -> NDArray[np.int64]:
    """Count the segments that each system wins, loses and ties against the first, (3, systems).

    Scores, (systems, segments), that differ by no more than the tolerance tie.
    """
    gain = (scores[0] - scores) if lower_is_better else (scores - scores[0])  # (systems, segments)
    won, lost = (gain > tolerance).sum(axis=1), (gain < -tolerance).sum(axis=1)
    return np.stack([won, lost, scores.shape[1] - won - lost])
