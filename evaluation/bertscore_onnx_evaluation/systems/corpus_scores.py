"""Corpus scores whose units can be swapped.

They are means over segments (`SegmentMeans`), or functions of sums over them (`SummedStatistics`).
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.tables.order import natural_key
from bertscore_onnx.tables.whole_table import is_frame, row_labels
from bertscore_onnx_evaluation.systems.input_reader import Value, in_order, is_prf, numbers_of

ROUNDING = 1e-12
"""Relative to the scores; sums of 100,000 segments differ by less when they are added in another
order. Differences within it are 0."""

LARGEST = 1e150
"""Larger scores are refused."""

SLOPE_STEP = 1e-3
"""Relative to a sum: the slope of a score is measured over twice this distance."""

EXACT = 1 << 24
"""Up to here every whole number is a float32, so that sums of whole numbers are exact in any
order."""


class UnitValues(NamedTuple):
    """The differences of pairs of systems as ratios of sums over units.

    A ratio is Σ values / Σ sizes.
    """

    values: NDArray[np.float64]
    """(pairs, units)."""
    sizes: NDArray[np.float64]
    """(units,)."""

    def errors(self) -> NDArray[np.float64]:
        """Return the standard errors of the differences, (pairs,)."""
        num_units = len(self.sizes)
        ratio = self.values.sum(axis=1, keepdims=True) / self.sizes.sum()
        deviations = self.values - ratio * self.sizes  # from a unit's share of the difference
        squares = (deviations**2).sum(axis=1)
        return np.sqrt(squares * num_units / max(1, num_units - 1)) / self.sizes.sum()


class Swapped(NamedTuple):
    """Differences of pairs of systems after swaps, (swaps, pairs) each.

    A swap keeps a part of the units, and swaps the others.
    """

    whole: NDArray[np.float64]
    """The differences in all units."""
    kept: NDArray[np.float64]
    others: NDArray[np.float64]
    """The differences in the units that are kept, and in the others before the swap.

    They are any number where there are no such units."""


Swapping = Callable[[NDArray[np.float64]], Swapped]
"""Swaps the units that have a 0, and keeps those that have a 1, (swaps, units)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class SegmentMeans:
    """A metric whose corpus score is the mean over segments.

    BERTScore is such a metric. Swapping is one matrix product.
    """

    segment_scores: NDArray[np.float64]
    """The scores of segments, (systems, segments), or their sums in documents."""

    runs: tuple[NDArray[np.float64], ...]
    """The scores of the runs of each system, (runs, segments) each; none where there are none."""

    sizes: NDArray[np.float64]
    """The number of segments of each unit, (units,)."""

    lower_is_better: bool
    """True for an error rate."""

    _rounding: NDArray[np.float64]

    def __init__(
        self,
        scores: ArrayLike | Sequence[ArrayLike],
        *,
        lower_is_better: bool = False,
        value: Value = "F",
    ) -> None:
        """Take a matrix of scores.

        Args:
            scores: finite segment scores, (systems, segments); or (systems, runs, segments), where
                the score of a segment is the mean of its runs, NaN for a missing run, and systems
                may have different numbers of them; or `Scores` of each.
            lower_is_better: true for an error rate.
            value: which numbers of `Scores` count: "P", "R" or "F".

        Raises:
            InputError: the scores are no such matrix.
        """
        segment_scores, runs = _means_of_runs(_numbers(scores, value))
        largest = np.abs(segment_scores)
        if runs:
            largest = np.stack([np.nanmax(np.abs(system), axis=0) for system in runs])
        self._set(
            segment_scores=segment_scores,
            runs=runs,
            sizes=np.ones(segment_scores.shape[1]),
            lower_is_better=lower_is_better,
            _rounding=ROUNDING * largest,  # (systems, units)
        )

    def _set(self, **values: object) -> None:
        """Set fields of a metric that nobody has seen yet."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _changed(self, **values: object) -> "SegmentMeans":
        """Return a copy with other values of some fields."""
        metric = copy(self)
        metric._set(**values)
        return metric

    def with_sizes(self, sizes: NDArray[np.float64]) -> "SegmentMeans":
        """Return the same metric of units of other sizes.

        The sizes are numbers of segments, (units,).
        """
        return self._changed(sizes=sizes)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of systems, and of units."""
        num_systems, num_units = self.segment_scores.shape
        return num_systems, num_units

    @property
    def num_runs(self) -> tuple[int, ...]:
        """The number of runs of each system; none where there are no runs."""
        return tuple(map(len, self.runs))

    @property
    def is_binary(self) -> bool:
        """Whether the scores of all segments, in all runs, are 0 or 1."""
        scores = np.concatenate([np.ravel(system) for system in self.runs or self.segment_scores])
        return bool(np.isin(scores[~np.isnan(scores)], (0, 1)).all())

    def pooled(self, rows: Sequence[Sequence[int]]) -> "SegmentMeans":
        """Return the same metric of systems whose runs are rows of this one."""
        scores = [self.segment_scores[list(runs)] for runs in rows]
        return SegmentMeans(scores, lower_is_better=self.lower_is_better)

    def of_segments(self, segments: NDArray[np.int64]) -> "SegmentMeans":
        """Return the same metric of some segments alone, given their positions."""
        scores: NDArray[np.float64] | list[NDArray[np.float64]]
        scores = [runs[:, segments] for runs in self.runs]
        if not scores:
            scores = self.segment_scores[:, segments]
        return SegmentMeans(scores, lower_is_better=self.lower_is_better)

    def by_document(self, documents: NDArray[np.int64]) -> "SegmentMeans":
        """Return the same metric with documents as its units.

        The documents are those of the segments, (segments,).
        """
        sums = SegmentMeans(_summed(self.segment_scores[:, :, None], documents)[:, :, 0])
        return self._changed(
            segment_scores=sums.segment_scores,
            sizes=np.bincount(documents, self.sizes).astype(np.float64),
            _rounding=_summed(self._rounding[:, :, None], documents)[:, :, 0],
        )

    def mean_of_groups(self, groups: NDArray[np.int64]) -> "SegmentMeans":
        """Return the metric whose score is the mean of the groups' scores.

        The groups are numbers, (segments,). Segments then have sizes that add up to the same in
        each group.
        """
        counts = np.bincount(groups)
        sizes = (len(groups) / len(counts) / counts)[groups]
        return self._changed(
            segment_scores=self.segment_scores * sizes,
            runs=tuple(system * sizes for system in self.runs),
            sizes=sizes,
            _rounding=self._rounding * sizes,
        )

    def differing(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return in which units the systems of pairs differ, (pairs, units)."""
        return self.unit_values(pairs).values != 0

    def observed(self) -> NDArray[np.float64]:
        """Return the mean of each system, (systems,).

        Means that differ only by rounding are equal.
        """
        means = self.segment_scores.sum(axis=1) / self.sizes.sum()

        # Means that are farther apart cannot be equal.
        close = 1000 * self._rounding.sum(axis=1).max() / self.sizes.sum()
        for first, second in combinations(range(len(means)), 2):
            is_close = abs(means[second] - means[first]) <= close
            if is_close and self.deltas(np.array([[first, second]])) == 0:
                means[second] = means[first]
        return means

    def deltas(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the second mean of each pair minus the first, (pairs,)."""
        deltas = self.unit_values(pairs).values.sum(axis=1) / self.sizes.sum()
        return np.where(np.abs(deltas) <= self.rounding(pairs), 0, deltas)

    def rounding(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far equal differences of each pair may be apart, (pairs,)."""
        rounding = np.where(self.differing(pairs), self._rounding_of_pairs(pairs), 0)
        return rounding.sum(axis=1) / self.sizes.sum()

    def _rounding_of_pairs(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far scores that tie may be apart, (pairs, units)."""
        return np.maximum(self._rounding[pairs[:, 0]], self._rounding[pairs[:, 1]])

    def unit_values(self, pairs: NDArray[np.int64]) -> UnitValues:
        """Return the differences of pairs of systems unit by unit; 0 for a tie.

        The pairs are (pairs, 2).
        """
        values = self.segment_scores[pairs[:, 1]] - self.segment_scores[pairs[:, 0]]
        is_tie = np.abs(values) <= self._rounding_of_pairs(pairs)
        return UnitValues(np.where(is_tie, 0, values), self.sizes)

    def largest_losses(
        self, pairs: NDArray[np.int64], score_range: tuple[float, float]
    ) -> NDArray[np.float64]:
        """Return the largest possible loss in a segment of each pair, (pairs,)."""
        low, high = score_range
        return np.full(len(pairs), high - low)

    def unit_scores(self) -> UnitValues:
        """Return the scores of the systems, unit by unit."""
        return UnitValues(self.segment_scores, self.sizes)

    def signs(self, pair: NDArray[np.int64]) -> tuple[int, int] | None:
        """Return how many units the second system of a pair gains and loses.

        Returns None unless all differences have one size.
        """
        [values] = self.unit_values(pair[None]).values
        [rounding] = self._rounding_of_pairs(pair[None])
        sizes = np.abs(values[values != 0])
        allowed = rounding[values != 0]
        if not len(sizes) or np.ptp(sizes) > 2 * allowed.max():
            return None
        return int((values > 0).sum()), int((values < 0).sum())

    def swapping(self, pairs: NDArray[np.int64]) -> Swapping:
        """Return the function that swaps units, and returns differences.

        A difference is the second system's mean minus the first's. Differences that are closer than
        `rounding` may be equal.
        """
        values, sizes = self.unit_values(pairs)
        rounding = self.rounding(pairs) * self.sizes.sum()
        total = values.sum(axis=1)
        total_size = sizes.sum()

        # Every mean of units is within these; rounding could put it beyond.
        lowest = (values / sizes).min(axis=1)
        highest = (values / sizes).max(axis=1)

        def mean(sums: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
            sums = np.where(np.abs(sums) <= rounding, 0, sums)
            return np.clip(sums / np.where(size > 0, size, 1), lowest, highest)

        def swapped(kept: NDArray[np.float64]) -> Swapped:
            of_kept = kept @ values.T
            kept_size = (kept @ sizes)[:, None]
            whole = (2 * of_kept - total) / total_size
            of_swapped = mean(total - of_kept, total_size - kept_size)
            return Swapped(whole, mean(of_kept, kept_size), of_swapped)

        return swapped


class SummedStatistics:
    """A metric that is a function of statistics summed over the segments.

    BLEU is such a metric. The function is run again for each swap.
    """

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
                f"The statistics have the shape {statistics.shape}, or are not all finite. "
                "Give numbers for each system and segment: (systems, segments, statistics)."
            )
        num_systems, num_segments, _ = statistics.shape
        self.shape = (num_systems, num_segments)
        self.lower_is_better = lower_is_better
        self._score = score
        self._statistics = statistics
        is_whole = (statistics == np.rint(statistics)).all()
        self._is_exact = is_whole and np.abs(statistics).max() * num_segments <= EXACT
        self.num_runs: tuple[int, ...] = ()
        self.sizes = np.ones(num_segments)
        """The number of segments of each unit, (units,)."""

    def pooled(self, rows: Sequence[Sequence[int]]) -> "SummedStatistics":
        """Return the same metric of systems whose runs are one corpus.

        The runs are rows of this one.
        """
        sums = np.stack([self._statistics[list(runs)].sum(axis=0) for runs in rows])
        return self._of(sums, tuple(map(len, rows)))

    def of_segments(self, segments: NDArray[np.int64]) -> "SummedStatistics":
        """Return the same metric of some segments alone, given their positions."""
        return self._of(self._statistics[:, segments], self.num_runs)

    def by_document(self, documents: NDArray[np.int64]) -> "SummedStatistics":
        """Return the same metric with documents as its units.

        The documents are those of the segments, (segments,).
        """
        metric = self._of(_summed(self._statistics, documents), self.num_runs)
        metric.sizes = np.bincount(documents).astype(np.float64)
        return metric

    def mean_of_groups(self, groups: NDArray[np.int64]) -> "SummedStatistics":
        """Return the metric whose score is the mean of the groups' scores.

        The groups are numbers, (segments,).
        """
        num_groups = int(groups.max()) + 1
        width = self._statistics.shape[2]
        is_of_group = groups[:, None] == np.arange(num_groups)  # (segments, groups)
        apart = self._statistics[:, :, None] * is_of_group[:, :, None]
        apart = apart.reshape(*self.shape, num_groups * width)

        def mean(sums: NDArray[np.floating]) -> float:
            scores = list(map(self._score, sums.reshape(num_groups, width)))
            return float(np.mean(scores))

        return SummedStatistics(apart, mean, lower_is_better=self.lower_is_better)

    def _of(self, statistics: NDArray[np.float64], num_runs: tuple[int, ...]) -> "SummedStatistics":
        metric = SummedStatistics(statistics, self._score, lower_is_better=self.lower_is_better)
        metric.num_runs = num_runs
        return metric

    def differing(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return in which units the systems of pairs differ, (pairs, units)."""
        differing = []
        for first, second in pairs:
            is_other = self._statistics[first] != self._statistics[second]
            differing.append(is_other.any(axis=1))
        return np.stack(differing)

    def observed(self) -> NDArray[np.float64]:
        """Return the corpus score of each system, (systems,)."""
        sums = reduce(np.add, self._statistics.transpose(1, 0, 2))  # in the order of sacreBLEU
        return self._scores(sums)

    def deltas(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the second score of each pair minus the first, (pairs,)."""
        score = self.observed()
        return score[pairs[:, 1]] - score[pairs[:, 0]]

    def rounding(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far equal differences of each pair may be apart, (pairs,)."""
        return ROUNDING * np.abs(self.observed()[pairs]).max(axis=1)

    def unit_values(self, pairs: NDArray[np.int64]) -> UnitValues:
        """Return the differences of pairs of systems unit by unit, by slopes.

        The pairs are (pairs, 2). A unit differs from the others as much as the score would change
        if there were a little more of it.
        """
        num_units = self.shape[1]
        linear = self._linear()
        values = num_units * (linear[pairs[:, 1]] - linear[pairs[:, 0]])

        # Slopes lack the part that all units share.
        values += (self.deltas(pairs) - values.mean(axis=1))[:, None]
        return UnitValues(values, np.ones(num_units))

    def largest_losses(
        self, pairs: NDArray[np.int64], score_range: tuple[float, float]
    ) -> NDArray[np.float64]:
        """Return the largest possible loss of each pair from the first one's score, (pairs,)."""
        low, high = score_range
        worst = high if self.lower_is_better else low
        return np.abs(self.observed()[pairs[:, 0]] - worst)

    def unit_scores(self) -> UnitValues:
        """Return the scores of the systems, unit by unit, linearised at the corpus score."""
        num_units = self.shape[1]
        linear = self._linear()
        values = num_units * (linear - linear.mean(axis=1, keepdims=True))
        values = values + self.observed()[:, None]
        return UnitValues(values, np.ones(num_units))

    def _linear(self) -> NDArray[np.float64]:
        """Return what units add to the scores by slopes, (systems, units)."""
        linear = []
        for statistics in self._statistics:
            slopes = self._slopes(statistics.sum(axis=0))
            linear.append(statistics @ slopes)
        return np.stack(linear)

    def _slopes(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slope of the score in each sum, by finite differences, (statistics,)."""
        step = np.abs(sums) * SLOPE_STEP
        if self._is_exact:
            step = np.maximum(np.rint(step), 1)  # counts stay counts
        else:
            step = np.where(step == 0, SLOPE_STEP, step)
        high = sums + step
        low = np.where(sums >= 0, np.maximum(sums - step, 0), sums - step)

        # In each row one of the sums is moved.
        is_moved = np.eye(len(sums), dtype=bool)
        above = self._scores(np.where(is_moved, high, sums))
        below = self._scores(np.where(is_moved, low, sums))
        return (above - below) / (high - low)

    def swapping(self, pairs: NDArray[np.int64]) -> Swapping:
        """Return the function that swaps units, and returns differences."""
        first, second = pairs.T
        systems = np.unique(pairs)  # others need no scores
        first_place, second_place = np.searchsorted(systems, pairs.T)

        def swapped(kept: NDArray[np.float64]) -> Swapped:
            of_kept = self._sums(kept)  # (swaps, systems, statistics)
            of_swapped = self._sums(1 - kept)
            second_scores = self._scores(of_kept[:, second] + of_swapped[:, first])
            first_scores = self._scores(of_kept[:, first] + of_swapped[:, second])

            # Where no unit is kept, or none is swapped, the score is that of all units.
            of_kept = of_kept[:, systems]
            of_swapped = of_swapped[:, systems]
            is_empty = np.stack([~kept.any(axis=1), kept.all(axis=1)])[:, :, None, None]
            sums = np.where(is_empty, of_kept + of_swapped, [of_kept, of_swapped])
            scores = self._scores(sums)  # (2, swaps, systems)
            differences = scores[:, :, second_place] - scores[:, :, first_place]
            return Swapped(second_scores - first_scores, *differences)

        return swapped

    def _sums(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the statistics, (rows, systems, statistics).

        Those of a segment count so many times, (rows, segments).
        """
        sums = [times @ statistics for statistics in self._statistics]  # each as in sacreBLEU
        return np.stack(sums, axis=1)

    def _scores(self, sums: NDArray[np.floating]) -> NDArray[np.float64]:
        """Score each row of sums, (…, statistics)."""
        rows = sums.reshape(-1, sums.shape[-1])
        scores = np.array(list(map(self._score, rows)), dtype=np.float64)
        return scores.reshape(sums.shape[:-1])


CorpusScores = SegmentMeans | SummedStatistics
"""The metrics that the paired tests take."""


def by_group(
    corpus: CorpusScores,
    groups: Sequence[str],
    documents: NDArray[np.int64] | None,
) -> Iterator[tuple[str, int, CorpusScores]]:
    """Yield each group's name, its number of segments, and its scores.

    The groups and the documents are those of the segments.
    """
    names = np.array(groups)
    for group in sorted(set(groups), key=natural_key):
        segments = np.flatnonzero(names == group)
        of_group = corpus.of_segments(segments)
        if documents is not None:
            _, numbers = np.unique(documents[segments], return_inverse=True)
            of_group = of_group.by_document(numbers)
        yield group, len(segments), of_group


def _summed(values: NDArray[np.float64], documents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum the values of segments, (systems, segments, …), by document, (systems, documents, …)."""
    sums = np.zeros((len(values), int(documents.max()) + 1, *values.shape[2:]))
    for system_sums, system_values in zip(sums, values, strict=True):
        np.add.at(system_sums, documents, system_values)
    return sums


def document_numbers(documents: Sequence[Hashable], num_segments: int) -> NDArray[np.int64]:
    """Return the document of each segment as a number, (segments,).

    Documents are numbered from 0, in the order of their first segments.

    Raises:
        InputError: there are more or fewer names than segments, or a single document.
    """
    numbers: dict[Hashable, int] = {}
    numbers_of_segments = [numbers.setdefault(name, len(numbers)) for name in documents]
    document_of = np.array(numbers_of_segments, dtype=np.int64)
    if len(document_of) != num_segments:
        named = f"There are documents for {len(document_of)} segments"
        raise InputError(f"{named}, and {num_segments} segments. Name one for each.")
    if len(numbers) < 2:
        raise InputError("All segments are of one document. A test by documents needs two or more.")
    return document_of


def _numbers(
    scores: ArrayLike | Sequence[ArrayLike],
    value: Value,
) -> ArrayLike | Sequence[ArrayLike]:
    """Return scores with the P, R or F of each `Scores` in its place."""
    if is_prf(scores):
        alone = "There is one system, whose P, R and F these are"
        raise InputError(f"{alone}; expected the scores of two or more.")
    if is_frame(scores):
        raise InputTypeError(
            f"scores is a {type(scores).__name__}; expected a row of numbers for each system. "
            "`compare(scores=…)` reads tables."
        )
    if not isinstance(scores, list | tuple):
        return in_order(scores, "scores")
    different_labels = {tuple(labels) for labels in map(row_labels, scores) if labels is not None}
    if len(different_labels) > 1:
        raise InputError(
            "The series of the systems have different indexes; expected the same in all. "
            "`compare(scores=…)` joins series by their index."
        )
    return [numbers_of(system, value, f"scores[{row}]") for row, system in enumerate(scores)]


def _means_of_runs(
    scores: ArrayLike | Sequence[ArrayLike],
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], ...]]:
    """Return the means of runs, (systems, segments), and the runs.

    The runs of each system are (runs, segments); there may be none.
    """
    systems = []
    if isinstance(scores, Sequence | np.ndarray):
        systems = list(map(np.asarray, scores))
    if not any(system.ndim == 2 for system in systems):
        return checked_scores(scores), ()  # type: ignore[arg-type]
    runs = tuple(_checked_runs(np.atleast_2d(system)) for system in systems)
    if len({system.shape[1] for system in runs}) > 1:
        counts = ", ".join(str(system.shape[1]) for system in runs)
        given = f"The systems have scores of {counts} segments"
        raise InputError(f"{given}; expected the same number for each.")
    means = [np.nanmean(system, axis=0) for system in runs]
    return np.stack(means), runs


def _checked_runs(runs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the checked scores of runs, (runs, segments); NaN where only some runs lack one."""
    is_missing = np.zeros(runs.shape, dtype=bool)
    if np.issubdtype(runs.dtype, np.floating):
        is_missing = np.isnan(runs)
    is_missing &= ~is_missing.all(axis=0)
    return np.where(is_missing, np.nan, checked_scores(np.where(is_missing, 0, runs)))


def checked_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """Return segment scores as finite float64, (systems, segments).

    Raises:
        InputError: they are anything else.
    """
    try:
        matrix = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        expected = "a row of as many numbers for each system"
        raise InputError(f"The scores are no matrix of numbers, {expected}.") from error
    if matrix.ndim != 2 or 0 in matrix.shape:
        expected = "Give a row for each system and a column for each segment."
        raise InputError(f"The scores have the shape {matrix.shape}. {expected}")
    missing = np.argwhere(~np.isfinite(matrix))
    if len(missing):
        system, segment = missing[0]
        place = f"System {system} has the score {matrix[system, segment]} for segment {segment}"
        remedy = "Leave out the segments that have no score for some system."
        raise InputError(f"{place}, both counted from 0. {remedy}")
    if np.abs(matrix).max() > LARGEST:
        beyond = f"A score is beyond ±{LARGEST:g}"
        raise InputError(f"{beyond}, and sums of squares would overflow. Scale the scores.")
    return matrix
