"""Paired tests of corpus scores: a permutation test, and the two tests of sacreBLEU's `significance.py`.

Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004; Riezler and Maxwell, "On some
pitfalls in automatic evaluation and significance testing for MT", 2005. All metrics that are tested with the same
seed, numbers of resamples and segments share their resamples.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.power import intervals, widening
from bertscore_onnx.evaluation.segments import is_frame, score_matrix

# Scores of whole corpora, of resamples of them, and of systems that swapped segments: means, and functions of sums.


ALL = slice(None)
"""All systems."""

ROUNDING = 1e-12
"""Relative to the scores; sums of 100,000 segments differ by less when they are added in another order."""

LARGEST = 1e150
"""Larger scores are refused."""

MIN_UNITS = 20
"""Segments or documents below which neither tests nor intervals can be relied on, and a result comes with a warning."""

EXACT = 1 << 24
"""Up to here every whole number is a float32, so that sums of whole numbers are exact in any order."""


class SegmentMeans:
    """A metric whose corpus score is the mean over segments, such as BERTScore: resampling is one matrix product."""

    def __init__(self, scores: ArrayLike, *, lower_is_better: bool = False) -> None:
        """Take a matrix of scores.

        Args:
            scores: finite segment scores, (systems, segments).
            lower_is_better: true for an error rate.

        Raises:
            InputError: the scores are no such matrix.
        """
        self._scores = checked_scores(scores)
        self._sizes = np.ones(self._scores.shape[1])  # segments of each unit, (units,)
        self.shape = (len(self._scores), self._scores.shape[1])
        self.lower_is_better = lower_is_better
        self.rounding = ROUNDING * float(np.abs(self._scores).max())

    def by_document(self, documents: NDArray[np.int64]) -> "SegmentMeans":
        """Return the same metric with documents as its units, given the document of each segment, (segments,)."""
        metric = SegmentMeans(_summed(self._scores[:, :, None], documents)[:, :, 0])
        metric._sizes, metric.lower_is_better = np.bincount(documents).astype(np.float64), self.lower_is_better
        return metric

    def differing(self, first: int, second: int) -> NDArray[np.bool_]:
        """Return the units in which two systems differ, (units,)."""
        differ: NDArray[np.bool_] = self._scores[first] != self._scores[second]
        return differ

    def observed(self) -> NDArray[np.float64]:
        """Return the mean of each system, (systems,)."""
        means: NDArray[np.float64] = self._scores.sum(axis=1) / self._sizes.sum()
        return means

    def resampled(self, indices: NDArray[np.int64], systems: slice = ALL) -> NDArray[np.float64]:
        """Return the means of some systems on resamples.

        Args:
            indices: the segments of each resample, (resamples, segments).
            systems: the rows of the systems.

        Returns:
            Means, (resamples, systems).
        """
        times = draw_counts(indices)
        means: NDArray[np.float64] = times @ self._scores[systems].T / (times @ self._sizes)[:, None]
        return means

    def differences(self, kept: NDArray[np.bool_], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the second system's mean minus the first's, after they swapped the segments that are not kept.

        Kept segments count for a system, and swapped ones against it: 2 (kept₂ - kept₁) - (all₂ - all₁).

        Args:
            kept: which segments are not swapped, (swaps, segments).
            pairs: the rows of two systems each, (pairs, 2).

        Returns:
            Differences, (swaps, pairs); those that are closer than `rounding` may be equal.
        """
        kept_sums = kept.astype(np.float64) @ self._scores.T  # (swaps, systems)
        all_sums = self._scores.sum(axis=1)
        first, second = pairs.T
        of_kept = kept_sums[:, second] - kept_sums[:, first]  # (swaps, pairs)
        differences: NDArray[np.float64] = (2 * of_kept - (all_sums[second] - all_sums[first])) / self._sizes.sum()
        return differences


class SummedStatistics:
    """A metric that is a function of statistics summed over the segments, such as BLEU: the function is run again."""

    def __init__(
        self,
        statistics: NDArray[np.float64],
        score: Callable[[NDArray[np.floating]], float],
        *,
        lower_is_better: bool = False,
    ) -> None:
        """Take the statistics and the function.

        Args:
            statistics: what each segment adds, (systems, segments, statistics).
            score: from the sums, (statistics,), to the corpus score.
            lower_is_better: true for an error rate such as TER.

        Raises:
            InputError: the statistics have another shape, or are not finite.
        """
        if statistics.ndim != 3 or 0 in statistics.shape or not np.isfinite(statistics).all():
            raise InputError(
                f"The statistics have the shape {statistics.shape}, or are not all finite. Give numbers for each "
                "system and segment: (systems, segments, statistics)."
            )
        num_systems, num_segments, _ = statistics.shape
        self.shape = (num_systems, num_segments)
        self.lower_is_better = lower_is_better
        self._score = score
        self._statistics = statistics
        is_whole = (statistics == np.rint(statistics)).all()
        self._is_exact = is_whole and np.abs(statistics).max() * num_segments <= EXACT
        self.rounding = 0.0  # sums of whole numbers have none; with others a tie falls as in sacreBLEU

    def by_document(self, documents: NDArray[np.int64]) -> "SummedStatistics":
        """Return the same metric with documents as its units, given the document of each segment, (segments,)."""
        summed = _summed(self._statistics, documents)
        return SummedStatistics(summed, self._score, lower_is_better=self.lower_is_better)

    def differing(self, first: int, second: int) -> NDArray[np.bool_]:
        """Return the units in which two systems differ, (units,)."""
        differ: NDArray[np.bool_] = (self._statistics[first] != self._statistics[second]).any(axis=1)
        return differ

    def observed(self) -> NDArray[np.float64]:
        """Return the corpus score of each system, (systems,)."""
        return self._scores(reduce(np.add, self._statistics.transpose(1, 0, 2)))  # added in this order, as in sacreBLEU

    def resampled(self, indices: NDArray[np.int64], systems: slice = ALL) -> NDArray[np.float64]:
        """Return the scores of some systems on resamples, as `SegmentMeans` does.

        Sums are in float32, as in sacreBLEU (`significance.py:_paired_bs_test`): with more bits a difference that is
        close to the observed one may fall on its other side, and p be another.
        """
        if self._is_exact:  # one matrix product has the same sums
            sums = self._sums(draw_counts(indices))[:, systems].astype(np.float32)
        else:
            statistics = self._statistics[systems].astype(np.float32)
            sums = np.array([[one[row].sum(axis=0) for one in statistics] for row in indices])
        return np.array([self._scores(row) for row in sums])

    def gathered(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of all systems on gathered segments, in float64.

        Args:
            indices: some segments in each row, in any number, (rows, gathered).

        Returns:
            Scores, (rows, systems).
        """
        return np.stack([self._scores(self._statistics[:, segments].sum(axis=1)) for segments in indices])

    def differences(self, kept: NDArray[np.bool_], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the differences after swapping, (swaps, pairs), with `kept` and `pairs` as for `SegmentMeans`."""
        kept_sums = self._sums(kept)
        swapped_sums = self._sums(~kept)
        return np.stack(
            [
                self._scores(kept_sums[:, second] + swapped_sums[:, first])
                - self._scores(kept_sums[:, first] + swapped_sums[:, second])
                for first, second in pairs
            ],
            axis=1,
        )

    def _sums(self, chosen: NDArray[np.bool_] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the statistics of segments as often as chosen, (rows, segments); (rows, systems, statistics)."""
        times = chosen.astype(np.float64)
        return np.stack([times @ statistics for statistics in self._statistics], axis=1)  # each alone, as in sacreBLEU

    def _scores(self, sums: NDArray[np.floating]) -> NDArray[np.float64]:
        """Score each row of sums, (rows, statistics)."""
        return np.array([self._score(row) for row in sums], dtype=np.float64)


CorpusScores = SegmentMeans | SummedStatistics
"""The metrics that the paired tests take."""


def _summed(values: NDArray[np.float64], documents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum the values of segments, (systems, segments, …), by document, (systems, documents, …)."""
    sums = np.zeros((len(values), int(documents.max()) + 1, *values.shape[2:]))
    for system, of_system in zip(sums, values, strict=True):
        np.add.at(system, documents, of_system)
    return sums


def document_numbers(documents: Sequence[Hashable], num_segments: int) -> NDArray[np.int64]:
    """Return the document of each segment as a number from 0, in the order of their first segments, (segments,).

    Raises:
        InputError: there are more or fewer names than segments, or a single document.
    """
    numbers: dict[Hashable, int] = {}
    found = np.array([numbers.setdefault(name, len(numbers)) for name in documents], dtype=np.int64)
    if len(found) != num_segments:
        raise InputError(
            f"There are documents for {len(found)} segments, and {num_segments} segments. Name one for each."
        )
    if len(numbers) < 2:
        raise InputError("All segments are of one document. A test by documents needs two or more.")
    return found


def draw_counts(indices: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count how often each segment is in each resample, (resamples, segments)."""
    rows, num_segments = indices.shape
    cells = indices + np.arange(rows)[:, None] * num_segments
    return np.bincount(cells.ravel(), minlength=cells.size).reshape(rows, num_segments).astype(np.float64)


def checked_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """Return segment scores as a matrix of finite float64, (systems, segments); raise InputError for anything else."""
    try:
        matrix = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"The scores are no matrix of numbers, a row for each system: {error}.") from error
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(
            f"The scores have the shape {matrix.shape}. Give a row for each system and a column for each segment."
        )
    missing = np.argwhere(~np.isfinite(matrix))
    if len(missing):
        system, segment = missing[0]
        raise InputError(
            f"System {system} has the score {matrix[system, segment]} for segment {segment}, both counted from 0. "
            "Leave out the segments that have no score for some system."
        )
    if np.abs(matrix).max() > LARGEST:
        raise InputError(f"A score is beyond ±{LARGEST:g}, and sums of squares would overflow. Scale the scores.")
    return matrix


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
    """Half the width of the 95 % interval about that mean, (systems,)."""

    pairs: NDArray[np.int64]
    """The systems compared, by row: the baseline, and the other; (pairs, 2)."""

    delta: NDArray[np.float64]
    """The other system's score minus the baseline's, (pairs,)."""

    interval: NDArray[np.float64]
    """The 95 % interval of the difference, low and high: quantiles of the differences on resamples, widened for few
    units as Student's t is; (pairs, 2)."""

    error: NDArray[np.float64]
    """The standard error of the difference: √(n / (n - 1)) times the standard deviation of those, (pairs,)."""

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
    num_swaps: int = NUM_SWAPS,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = SEED,
) -> PairedTestResult:
    """Test whether systems differ, by swapping the outputs of two systems for segments chosen at random.

    p = (#{ |Δ*| ≥ |Δ| } + 1) / (n + 1), where Δ* is the difference after swapping: at most α of comparisons of equal
    systems have p ≤ α, since a difference equal to the observed one is counted. With at most `MAX_EXACT` segments that
    differ, p is exact: the share of all 2^n ways to swap them. Systems that are the same have p = 1. Intervals and wins
    come from bootstrap resamples (Fisher, The Design of Experiments, 1935; Phipson and Smyth, "Permutation p-values
    should never be zero", 2010).

    Args:
        scores: segment scores of a metric whose corpus score is their mean, (systems, segments), higher being better,
            or a data frame as for `compare`; or a metric, as `SegmentMeans` or `SummedStatistics`. The first system is
            the baseline.
        all_pairs: whether to compare every pair of systems, and not only the others with the baseline.
        num_swaps: n, at least 1.
        num_resamples: the resamples of the intervals and the wins, at least 1.
        seed: of the swaps and the resamples, 0 or more.

    Raises:
        InputError: fewer than two systems, over 20 and more than segments, no segment, a score that is not finite, or
            an option out of its range.
    """
    names, metric, pairs, score, delta = _observed(scores, all_pairs, seed, num_swaps, num_resamples)
    threshold = np.abs(delta) - max(metric.rounding, ROUNDING * float(np.abs(score).max()))
    differing = np.stack([metric.differing(*pair) for pair in pairs])  # (pairs, segments)
    is_exact = differing.sum(axis=1) <= MAX_EXACT
    p = np.empty(len(pairs))
    for pair in np.flatnonzero(is_exact):
        reached = [
            np.abs(metric.differences(kept, pairs[pair : pair + 1])[:, 0]) >= threshold[pair]
            for kept in _all_swaps(differing[pair])
        ]
        p[pair] = np.concatenate(reached).mean()
    rng, drawn = np.random.default_rng(seed), np.flatnonzero(~is_exact)
    reaching = np.zeros(len(drawn), dtype=np.int64)
    for kept in kept_segments(rng, metric.shape[1], num_swaps) if len(drawn) else ():
        reaching += (np.abs(metric.differences(kept, pairs[drawn])) >= threshold[drawn]).sum(axis=0)
    p[drawn] = _p_value(reaching, num_swaps)
    resampled = _resampled(metric, np.random.default_rng(seed), num_resamples)
    return _result(metric, pairs, score, delta, p, _differences(resampled, pairs), resampled, names)


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
    resampled = _resampled(metric, np.random.default_rng(seed), num_resamples)
    differences = _differences(resampled, pairs)
    if centred:
        spread = np.abs(differences - differences.mean(axis=0))
    else:
        spread = np.abs(differences) - np.abs(differences).mean(axis=0)
    p = _p_value((spread > np.abs(delta)).sum(axis=0), num_resamples)
    return _result(metric, pairs, score, delta, p, differences, resampled, names)


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
    resampled = _resampled(metric, rng, num_resamples)
    first = _resampled(metric, np.random.default_rng(seed), num_resamples, slice(1))
    whole = np.hstack([first, resampled[:, 1:]])
    return _result(metric, pairs, score, delta, p, _differences(resampled, pairs), whole, names)


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


def _result(
    metric: CorpusScores,
    pairs: NDArray[np.int64],
    score: NDArray[np.float64],
    delta: NDArray[np.float64],
    p: NDArray[np.float64],
    differences: NDArray[np.float64],
    resampled: NDArray[np.float64],
    names: tuple[str, ...],
) -> PairedTestResult:
    """Return the result of a test, given the differences, (resamples, pairs), and scores, (resamples, systems)."""
    num_units = metric.shape[1]
    interval, error = intervals(differences, num_units).T, differences.std(axis=0) * widening(num_units)
    wins = _wins(differences, metric.lower_is_better)
    mean, half_width = confidence_interval(resampled)
    return PairedTestResult(score, mean, half_width, pairs, delta, interval, error, p, holm(p), wins, names)


def _resampled(
    metric: CorpusScores, rng: np.random.Generator, num_resamples: int, systems: slice = ALL
) -> NDArray[np.float64]:
    """Return the corpus scores of all resamples, (resamples, systems)."""
    blocks = bootstrap_indices(rng, metric.shape[1], num_resamples)
    return np.concatenate([metric.resampled(indices, systems) for indices in blocks])


def _differences(resampled: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the differences of pairs on resamples, (resamples, pairs), from scores, (resamples, systems)."""
    differences: NDArray[np.float64] = resampled[:, pairs[:, 1]] - resampled[:, pairs[:, 0]]
    return differences


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
