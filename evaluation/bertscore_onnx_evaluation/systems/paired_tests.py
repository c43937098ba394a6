"""The paired permutation test of corpus scores, with its intervals.

Corpus scores are means over segments, or functions of sums. Riezler and Maxwell, "On some pitfalls
in automatic evaluation and significance testing for MT", 2005. All metrics that are tested with the
same seed, numbers of swaps and segments share their swaps. `over_runs` widens an interval to other
runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.correlation import scipy_module
from bertscore_onnx_evaluation.systems.corpus_scores import ROUNDING, CorpusScores, SegmentMeans
from bertscore_onnx_evaluation.systems.input_reader import Value
from bertscore_onnx_evaluation.table import p_value

SIGNIFICANT = 0.05
"""A p below it is significant, two-sided."""

MIN_TESTED_UNITS = 6
"""With fewer units that differ no p of a permutation test is below `SIGNIFICANT`: 2 / 2⁵ is above
it.
"""

MIN_UNITS = 20
"""Segments or documents below which neither tests nor intervals can be relied on, and a result
comes with a warning.
"""


# Holm's correction for several tests: Holm, "A simple sequentially rejective multiple test
# procedure", 1979.


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values for the number of tests.

    The chance of even one false rejection then stays below the level.

    The i-th smallest of m is multiplied by m - i + 1, and none is below a smaller one before it,
    nor above 1 (as R's `p.adjust`). Equal p-values get equal results.

    Args:
        p: the p-values of tests that belong together, (tests,), each in [0, 1].

    Returns:
        Adjusted p-values, (tests,), in the order given.

    Raises:
        InputError: `p` is not one row of numbers in [0, 1].
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InputError(
            "Holm's correction takes one row of p-values, each from 0 to 1; these are not: check "
            "them."
        )
    order = np.argsort(values)
    scaled = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return adjusted


# The random draws, a block at a time. A numpy generator continues where it stopped, so blocks hold
# the same numbers as one draw of all of them.


SEED = 12345
"""The default seed, as in sacreBLEU."""

NUM_RESAMPLES = 1000
"""The default number of bootstrap resamples, as in sacreBLEU."""

NUM_SWAPS = 10_000
"""The default number of swaps, as in sacreBLEU."""

BLOCK_CELLS = 1 << 20
"""Draws in memory at a time: 8 MB of indices."""

DRAWN_BITS = 32
"""numpy draws booleans 32 at a time and drops the rest of the last; blocks of 32 rows leave
none.
"""


def bootstrap_counts(
    rng: np.random.Generator, num_units: int, num_resamples: int
) -> Iterator[NDArray[np.float64]]:
    """Yield how often each unit is in each resample.

    Units are drawn with replacement, in blocks of (rows, num_units).
    """
    rows = max(1, BLOCK_CELLS // num_units)
    for start in range(0, num_resamples, rows):
        drawn = rng.choice(
            num_units, size=(min(rows, num_resamples - start), num_units), replace=True
        )
        cells = drawn + np.arange(len(drawn))[:, None] * num_units
        yield (
            np.bincount(cells.ravel(), minlength=cells.size).reshape(drawn.shape).astype(np.float64)
        )


def kept_segments(
    rng: np.random.Generator, num_segments: int, num_swaps: int
) -> Iterator[NDArray[np.bool_]]:
    """Yield the segments that two systems keep in each swap, in blocks of (rows, num_segments)."""
    rows = max(1, BLOCK_CELLS // num_segments // DRAWN_BITS) * DRAWN_BITS
    for start in range(0, num_swaps, rows):
        yield rng.integers(2, size=(min(rows, num_swaps - start), num_segments), dtype=bool)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PairedTestResult:
    """The systems' scores, and the difference of each pair with its p-value."""

    score: NDArray[np.float64]
    """The corpus score of each system, (systems,)."""
    pairs: NDArray[np.int64]
    """The systems compared, by row: the baseline, and the other; (pairs, 2)."""
    delta: NDArray[np.float64]
    """The other system's score minus the baseline's, (pairs,)."""
    interval: NDArray[np.float64]
    """The 95 % interval of the difference, low and high: the differences that a paired permutation
    test does not reject at 5 %; from -inf to inf where it can reject none, as with fewer than 6
    units; NaN where all units differ by the same, since nothing is that certain; (pairs, 2)."""
    error: NDArray[np.float64]
    """The standard error of the difference, by linearisation, (pairs,)."""
    differing: NDArray[np.int64]
    """The number of units in which the two systems differ, (pairs,)."""
    effective_units: float
    """How many units of one size would tell as much as these, which may be documents: (Σ s)² / Σ
    s².
    """
    p: NDArray[np.float64]
    """The p-value of the difference, two-sided, (pairs,)."""
    p_holm: NDArray[np.float64]
    """The same, corrected for all the pairs of this test, (pairs,)."""
    names: tuple[str, ...] = ()
    """The names of the systems, if they came in a mapping."""
    tests: "tuple[TestName | None, ...]" = ()
    """The test that p is of, by pair; None where no unit differs, and p is 1."""
    runs_interval: NDArray[np.float64] | None = None
    """The interval widened to other runs, (pairs, 2); NaN where one of the systems has a single
    run, or there is no interval, and None without runs."""

    def __repr__(self) -> str:
        """Return a line for each pair: the difference, its interval, and p."""
        names = self.names or [f"system {number}" for number in range(len(self.score))]
        lines = ["PairedTestResult"]
        for (baseline, system), delta, (low, high), p in zip(
            self.pairs, self.delta, self.interval, self.p, strict=True
        ):
            ends = f"95 % interval {low:+.4f} to {high:+.4f}, " if np.isfinite(high - low) else ""
            of_pair = f"{names[system]} - {names[baseline]}: {delta:+.4f}"
            lines.append(f"{of_pair}, {ends}p {p_value(4, SIGNIFICANT)(p)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the same as a notebook shows it."""
        return f"<pre>{escape(repr(self))}</pre>"


TestName = Literal["sign", "all swaps", "swaps", "clopper-pearson", "subsets"]
"""The exact sign test, all swaps of the units that differ, or swaps drawn at random; and for one
system the interval of Clopper and Pearson, or of subsets."""

MAX_EXACT = 13
"""If two systems differ in at most this many units, all 2^n ways to swap them are tried, and none
is drawn.
"""


def paired_permutation(
    scores: ArrayLike | CorpusScores,
    *,
    value: Value = "F",
    all_pairs: bool = False,
    num_swaps: int = NUM_SWAPS,
    seed: int = SEED,
) -> PairedTestResult:
    """Test whether systems differ significantly.

    The outputs of two systems are swapped for segments chosen at random, n times. Then p = (#{ |Δ*|
    ≥ |Δ| } + 1) / (n + 1), where Δ is the observed difference and Δ* the difference after a swap.
    At most α of comparisons of equal systems have p ≤ α, since a difference equal to the observed
    one is counted. Systems that are the same have p = 1.

    p is exact, the share of all 2^n swaps, if at most `MAX_EXACT` segments differ. It is exact too
    if all differences have one size, as with scores of 0 and 1: this is McNemar's test. The
    interval holds the differences that swaps do not reject.

    Fisher, The Design of Experiments, 1935; Hartigan, "Using subsample values as typical values",
    1969; Phipson and Smyth, "Permutation p-values should never be zero", 2010.

    Args:
        scores: segment scores of a metric whose corpus score is their mean, (systems, segments),
            higher being better, or `Scores` of each system; or a mapping of names to these; or a
            metric, as `SegmentMeans` or `SummedStatistics`. The first system is the baseline.
        value: which numbers of `Scores` count: "P", "R" or "F".
        all_pairs: whether to compare every pair of systems, and not only the others with the
            baseline.
        num_swaps: n, at least 1.
        seed: of the swaps, 0 or more.

    Raises:
        InputError: fewer than two systems, over 20 and more than segments, no segment, a score that
            is not finite, or an option out of its range.
    """
    check_draws(num_swaps, seed)
    names, metric, pairs = _pairs_of(scores, value, all_pairs)
    num_units = metric.shape[1]
    if num_units <= MAX_EXACT:
        blocks = _all_swaps(np.ones(num_units, dtype=bool))
        swaps = _swaps(metric, pairs, blocks, 2.0**num_units, num_observed=0)
    else:
        blocks = kept_segments(np.random.default_rng(seed), num_units, num_swaps)
        swaps = _swaps(metric, pairs, blocks, num_swaps + 1)
    p = swaps.p()
    interval = swaps.interval()
    deltas = metric.deltas(pairs)

    # p is exact where all differences have one size, or few units differ.
    tests: list[TestName | None] = []
    for row, differing in enumerate(metric.differing(pairs)):
        tests.append("swaps" if differing.sum() > MAX_EXACT else "all swaps")
        if not differing.any():
            tests[row] = None
        signs = None
        if isinstance(metric, SegmentMeans):
            signs = metric.signs(pairs[row])
        if signs is not None:
            p[row] = sign_test(*signs)
            tests[row] = "sign"
        elif differing.sum() <= MAX_EXACT < num_units:
            pair = pairs[row : row + 1]
            blocks = _all_swaps(differing)
            exact = _swaps(metric, pair, blocks, 2.0 ** differing.sum(), num_observed=0)
            p[row] = exact.p()[0]
    if isinstance(metric, SegmentMeans):
        sizes = np.abs(metric.unit_values(pairs).values)
        smallest = np.where(sizes > 0, sizes, np.inf).min(axis=1) / metric.sizes.sum()
        interval = _agreeing(interval, p, deltas, np.where(np.isfinite(smallest), smallest, 0))
    result = replace(_result(metric, pairs, p, interval, names), tests=tuple(tests))
    if not isinstance(metric, SegmentMeans) or not metric.runs:
        return result
    again = []
    for (first, second), delta, ends in zip(pairs, deltas, result.interval, strict=True):
        again.append(over_runs(metric.runs[first], metric.runs[second], delta, ends))
    return replace(result, runs_interval=np.stack(again))


class _Swaps(NamedTuple):
    """What swaps of the units of two systems do to their differences."""

    num_reached: NDArray[np.float64]
    """The number of swaps whose difference is at least as large as the observed one, (pairs,)."""
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    """The smallest of the differences at which a swap would be as extreme as the data, ascending,
    and the largest, descending, (pairs, kept)."""
    total: float
    """What p is a share of."""
    num_observed: float
    """What the observed assignment adds to the swaps that reach it."""

    def p(self) -> NDArray[np.float64]:
        """Return the p-values, two-sided, (pairs,)."""
        return (self.num_reached + self.num_observed) / self.total

    def interval(self) -> NDArray[np.float64]:
        """Return the ends of the interval of differences that are not significant, (pairs, 2)."""
        place = _num_needed(self.total, self.num_observed) - 1
        return np.stack([self.lows[:, place], self.highs[:, place]], axis=1)


def _num_needed(total: float, num_observed: float) -> int:
    """Return how many swaps make a difference not significant.

    So many swaps must reach it.
    """
    return max(1, ceil(SIGNIFICANT * total - num_observed - ROUNDING * total))


def _swaps(
    metric: CorpusScores,
    pairs: NDArray[np.int64],
    blocks: Iterable[NDArray[np.bool_]],
    total: float,
    *,
    num_observed: float = 1.0,
) -> _Swaps:
    """Swap units many times, in blocks that say which units are kept.

    If the true difference is δ, swaps change the differences less δ. With it a swap is as extreme
    as the data if δ is the mean of the swapped units, or that of the others: Hartigan, "Using
    subsample values as typical values", 1969. For a score that is no mean, these are the
    differences in the swapped units, and in the others.
    """
    smallest_reaching = np.abs(metric.deltas(pairs)) - metric.rounding(pairs)
    num_reached = np.zeros(len(pairs))
    num_needed = _num_needed(total, num_observed)
    lows = np.empty((len(pairs), 0))
    highs = np.empty((len(pairs), 0))
    swap = metric.swapping(pairs)
    for kept in blocks:
        swapped = swap(kept.astype(np.float64))
        num_reached += (np.abs(swapped.whole) >= smallest_reaching).sum(axis=0)

        # The ends of the interval are among the differences of the swapped and of the kept units.
        for units, differences in ((~kept, swapped.others), (kept, swapped.kept)):
            has_units = units.any(axis=1, keepdims=True)  # (swaps, 1)
            lows = _smallest(lows, np.where(has_units, differences, -np.inf), num_needed)
            highs = _largest(highs, np.where(has_units, differences, np.inf), num_needed)
    return _Swaps(num_reached, np.sort(lows), -np.sort(-highs), total, num_observed)


def _smallest(
    smallest: NDArray[np.float64], values: NDArray[np.float64], number: int
) -> NDArray[np.float64]:
    """Return the smallest values so far and of more, (pairs, number).

    The values are (swaps, pairs).
    """
    values = np.concatenate([smallest, values.T], axis=1)
    if values.shape[1] <= number:
        return values
    return np.partition(values, number - 1)[:, :number]


def _largest(
    largest: NDArray[np.float64], values: NDArray[np.float64], number: int
) -> NDArray[np.float64]:
    """Return the largest values so far and of more, as `_smallest` does."""
    return -_smallest(-largest, -values, number)


def _agreeing(
    interval: NDArray[np.float64],
    p: NDArray[np.float64],
    delta: NDArray[np.float64],
    smallest: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return intervals that hold 0 if, and only if, an exact p says so.

    Swaps were drawn for their ends.

    An end on the wrong side of 0 is moved: to 0, or if p excludes 0 to the smallest difference,
    `smallest`, (pairs,).
    """
    low, high = interval.T
    is_significant = p < SIGNIFICANT
    is_better = is_significant & (delta > 0)
    is_worse = is_significant & (delta < 0)
    low = np.where(is_better, np.maximum(low, smallest), low)
    high = np.where(is_worse, np.minimum(high, -smallest), high)
    low = np.where(is_significant, low, np.minimum(low, 0))
    high = np.where(is_significant, high, np.maximum(high, 0))
    return np.stack([low, high], axis=1)


def sign_test(won: int, lost: int) -> float:
    """Return the exact p of a sign test, two-sided.

    The p is the share of all divisions of the units that are at least as uneven.
    """
    fewer = min(won, lost)
    more = max(won, lost)
    if fewer == more:
        return 1.0
    # a binomial distribution
    as_far_on_one_side = scipy_module("special").betainc(more, fewer + 1, 0.5)
    return min(1.0, 2 * float(as_far_on_one_side))


def sign_interval(won: int, lost: int) -> NDArray[np.float64]:
    """Return Clopper and Pearson's 95 % interval, (2,).

    The interval is for the share of units won minus the share of units lost. It holds 0 if, and
    only if, the sign test is not significant.
    """
    largest_won = _largest_share(won, lost)
    largest_lost = _largest_share(lost, won)
    return np.array([1 - 2 * largest_lost, 2 * largest_won - 1])


def _largest_share(number: int, rest: int) -> float:
    """Return the largest true share of units, given a number of all.

    With it so few units, or fewer, are seen in 2.5 % of samples.
    """
    if rest == 0:
        return 1.0
    return float(scipy_module("special").betaincinv(number + 1, rest, 1 - SIGNIFICANT / 2))


def _all_swaps(differing: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
    """Yield the units kept in each way to swap those that differ, in blocks of (rows, units)."""
    columns = np.flatnonzero(differing)
    rows = max(1, BLOCK_CELLS // len(differing))
    for start in range(0, 1 << len(columns), rows):
        numbers = np.arange(start, min(start + rows, 1 << len(columns)))
        kept = np.ones((len(numbers), len(differing)), dtype=bool)
        kept[:, columns] = (numbers[:, None] >> np.arange(len(columns))) & 1
        yield kept


def check_draws(number: int, seed: int) -> None:
    """Raise InputError where no swap is to be drawn.

    The seed may not be below 0 either.
    """
    if number < 1:
        raise InputError(f"{number} swaps were asked for. Draw at least one.")
    if seed < 0:
        raise InputError(f"The seed is {seed}. Give 0 or a positive number.")


def _pairs_of(
    scores: ArrayLike | CorpusScores, value: Value, all_pairs: bool
) -> tuple[tuple[str, ...], CorpusScores, NDArray[np.int64]]:
    """Return the names of the systems in a mapping, the metric, and its pairs."""
    names: tuple[str, ...] = ()
    if isinstance(scores, CorpusScores):
        metric = scores
    elif isinstance(scores, Mapping):
        names = tuple(map(str, scores))
        metric = SegmentMeans(list(scores.values()), value=value)
    else:
        metric = SegmentMeans(scores, value=value)
        num_systems, num_segments = metric.shape
        if num_systems > max(num_segments, MIN_UNITS):
            raise InputError(
                f"There are {num_systems:,} systems, and scores of {num_segments:,} segments "
                "each; expected a row for each system. Transpose the matrix with `.T`, or give "
                "`SegmentMeans(scores)` if this is meant."
            )
    if metric.shape[0] < 2:
        raise InputError(
            "There is one system. A paired test compares at least two: the baseline, and another."
        )
    pairs = np.array(
        [pair for pair in combinations(range(metric.shape[0]), 2) if all_pairs or pair[0] == 0]
    )
    return names, metric, pairs


def effective_units(sizes: NDArray[np.float64]) -> float:
    """Return how many units of one size would tell as much as these.

    The sizes are (units,); it is (Σ s)² / Σ s².
    """
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def _result(
    metric: CorpusScores,
    pairs: NDArray[np.int64],
    p: NDArray[np.float64],
    interval: NDArray[np.float64],
    names: tuple[str, ...],
) -> PairedTestResult:
    """Return the result of a test."""
    units = metric.unit_values(pairs)
    differences = units.values / units.sizes
    interval[np.ptp(differences, axis=1) <= 2 * metric.rounding(pairs)] = np.nan
    return PairedTestResult(
        metric.observed(),
        pairs,
        metric.deltas(pairs),
        interval,
        units.errors(),
        metric.differing(pairs).sum(axis=1),
        effective_units(metric.sizes),
        p,
        holm(p),
        names,
    )


def over_runs(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    delta: float,
    interval: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Widen the interval of a difference to other runs, those of systems that are trained again.

    Each end moves away from the difference: the squares of these distances grow by (t s / √R)² of
    each system. R is the number of its runs, s the standard deviation of their means, and t
    Student's with R - 1 degrees of freedom (Zou and Donner, "Construction of confidence limits
    about effect measures", 2008).

    Args:
        first, second: the scores of two systems, (runs, segments) each.
        delta: the difference of the two.
        interval: its ends over segments, or documents, (2,).

    Returns:
        The ends, (2,); NaN if a system has a single run, or there is no interval.
    """
    if min(len(first), len(second)) < 2 or not np.isfinite(interval).all():
        return np.full(2, np.nan)
    added = 0.0
    for runs in (first, second):
        num_runs = len(runs)
        t = scipy_module("special").stdtrit(num_runs - 1, 1 - SIGNIFICANT / 2)
        # without difficult segments that a run lacks
        effects = np.nanmean(runs - np.nanmean(runs, axis=0), axis=1)
        added += float(t**2 * effects.var(ddof=1) / num_runs)
    return delta + np.array([-1, 1]) * ((interval - delta) ** 2 + added) ** 0.5


def segment_outcomes(
    scores: NDArray[np.float64], *, tolerance: float = 0.0, lower_is_better: bool = False
) -> NDArray[np.int64]:
    """Count the segments that each system wins, loses and ties against the first, (3, systems).

    Scores, (systems, segments), that differ by no more than the tolerance tie.
    """
    gain = (scores[0] - scores) if lower_is_better else (scores - scores[0])  # (systems, segments)
    won = (gain > tolerance).sum(axis=1)
    lost = (gain < -tolerance).sum(axis=1)
    return np.stack([won, lost, scores.shape[1] - won - lost])
