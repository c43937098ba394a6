"""Scores of whole corpora, of resamples of them, and of systems that swapped segments: means, and functions of sums."""

from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError

ALL = slice(None)
"""All systems."""

ROUNDING = 1e-12
"""Relative to the scores; sums of 100,000 segments differ by less when they are added in another order."""

LARGEST = 1e150
"""Larger scores are refused."""

MIN_UNITS = 20
"""Segments or documents below which neither tests nor intervals can be relied on, and a result comes with a warning."""

SLOPE_STEP = 1e-3
"""Relative to a sum: the slope of a score is measured over twice this distance."""

EXACT = 1 << 24
"""Up to here every whole number is a float32, so that sums of whole numbers are exact in any order."""


class UnitValues(NamedTuple):
    """The differences of pairs of systems as ratios of sums over units: Σ values / Σ sizes."""

    values: NDArray[np.float64]
    """(pairs, units)."""

    sizes: NDArray[np.float64]
    """(units,)."""

    def deviations(self) -> NDArray[np.float64]:
        """Return how far each unit is from its part of the difference, (pairs, units)."""
        ratio = self.values.sum(axis=1, keepdims=True) / self.sizes.sum()
        deviations: NDArray[np.float64] = self.values - ratio * self.sizes
        return deviations

    def errors(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard errors of the differences on resamples, (resamples, pairs), by linearisation.

        Args:
            times: how often each unit is in each resample, (resamples, units).
        """
        deviations, sizes = self.deviations(), self.sizes
        total, sums = (times @ sizes)[:, None], times @ deviations.T
        ratio = sums / total  # about the observed difference, which loses no digits
        by_size = sums if (sizes == 1).all() else times @ (deviations * sizes).T
        squares = times @ (deviations**2).T - 2 * ratio * by_size + ratio**2 * (times @ sizes**2)[:, None]
        num_units = len(sizes)
        errors: NDArray[np.float64] = np.sqrt(np.maximum(squares, 0) * num_units / max(1, num_units - 1)) / total
        return errors


class SegmentMeans:
    """A metric whose corpus score is the mean over segments, such as BERTScore: resampling is one matrix product."""

    def __init__(self, scores: ArrayLike | Sequence[ArrayLike], *, lower_is_better: bool = False) -> None:
        """Take a matrix of scores.

        Args:
            scores: finite segment scores, (systems, segments); or (systems, runs, segments), where the score of a
                segment is the mean of its runs, and systems may have different numbers of them.
            lower_is_better: true for an error rate.

        Raises:
            InputError: the scores are no such matrix.
        """
        self._scores, self.runs = _means_of_runs(scores)
        self._sizes = np.ones(self._scores.shape[1])  # segments of each unit, (units,)
        self.shape = (len(self._scores), self._scores.shape[1])
        self.lower_is_better = lower_is_better
        self.rounding = ROUNDING * float(np.abs(self._scores).max())

    @property
    def segment_scores(self) -> NDArray[np.float64]:
        """The scores of segments, (systems, segments), or their sums in documents."""
        return self._scores

    @property
    def num_runs(self) -> tuple[int, ...]:
        """The number of runs of each system; none where there are no runs."""
        return tuple(map(len, self.runs))

    def pooled(self, rows: Sequence[Sequence[int]]) -> "SegmentMeans":
        """Return the same metric of systems whose runs are rows of this one."""
        return SegmentMeans([self._scores[list(of_runs)] for of_runs in rows], lower_is_better=self.lower_is_better)

    def of_segments(self, segments: NDArray[np.int64]) -> "SegmentMeans":
        """Return the same metric of some segments alone, given their positions."""
        scores = [runs[:, segments] for runs in self.runs] if self.runs else self._scores[:, segments]
        return SegmentMeans(scores, lower_is_better=self.lower_is_better)

    def by_document(self, documents: NDArray[np.int64]) -> "SegmentMeans":
        """Return the same metric with documents as its units, given the document of each segment, (segments,)."""
        metric = SegmentMeans(_summed(self._scores[:, :, None], documents)[:, :, 0])
        metric._sizes, metric.lower_is_better = np.bincount(documents).astype(np.float64), self.lower_is_better
        metric.runs = self.runs
        return metric

    def differing(self, first: int, second: int) -> NDArray[np.bool_]:
        """Return the units in which two systems differ, (units,)."""
        differ: NDArray[np.bool_] = np.abs(self._scores[first] - self._scores[second]) > self.rounding
        return differ

    def observed(self) -> NDArray[np.float64]:
        """Return the mean of each system, (systems,)."""
        means: NDArray[np.float64] = self._scores.sum(axis=1) / self._sizes.sum()
        return means

    def unit_values(self, pairs: NDArray[np.int64]) -> UnitValues:
        """Return the differences of pairs of systems, (pairs, 2), unit by unit."""
        return UnitValues(self._scores[pairs[:, 1]] - self._scores[pairs[:, 0]], self._sizes)

    def resampled(
        self, indices: NDArray[np.int64], systems: slice = ALL, times: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the means of some systems on resamples.

        Args:
            indices: the segments of each resample, (resamples, segments).
            systems: the rows of the systems.
            times: how often each segment is in each, if that has been counted.

        Returns:
            Means, (resamples, systems).
        """
        times = draw_counts(indices) if times is None else times
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
        self.num_runs: tuple[int, ...] = ()

    def pooled(self, rows: Sequence[Sequence[int]]) -> "SummedStatistics":
        """Return the same metric of systems whose runs, rows of this one, are one corpus."""
        sums = np.stack([self._statistics[list(of_runs)].sum(axis=0) for of_runs in rows])
        return self._of(sums, tuple(map(len, rows)))

    def of_segments(self, segments: NDArray[np.int64]) -> "SummedStatistics":
        """Return the same metric of some segments alone, given their positions."""
        return self._of(self._statistics[:, segments], self.num_runs)

    def by_document(self, documents: NDArray[np.int64]) -> "SummedStatistics":
        """Return the same metric with documents as its units, given the document of each segment, (segments,)."""
        return self._of(_summed(self._statistics, documents), self.num_runs)

    def _of(self, statistics: NDArray[np.float64], num_runs: tuple[int, ...]) -> "SummedStatistics":
        metric = SummedStatistics(statistics, self._score, lower_is_better=self.lower_is_better)
        metric.num_runs = num_runs
        return metric

    def differing(self, first: int, second: int) -> NDArray[np.bool_]:
        """Return the units in which two systems differ, (units,)."""
        differ: NDArray[np.bool_] = (self._statistics[first] != self._statistics[second]).any(axis=1)
        return differ

    def observed(self) -> NDArray[np.float64]:
        """Return the corpus score of each system, (systems,)."""
        return self._scores(reduce(np.add, self._statistics.transpose(1, 0, 2)))  # added in this order, as in sacreBLEU

    def unit_values(self, pairs: NDArray[np.int64]) -> UnitValues:
        """Return the differences of pairs of systems, (pairs, 2), unit by unit, by the slopes of the score.

        A unit counts as much as the score would change if there were a little more of it.
        """
        num_units = self.shape[1]
        linear = np.stack([of_units @ self._slopes(of_units.sum(axis=0)) for of_units in self._statistics])
        values = num_units * (linear[pairs[:, 1]] - linear[pairs[:, 0]])
        return UnitValues(values, np.ones(num_units))

    def _slopes(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slope of the score in each of the sums, (statistics,), by differences; counts stay counts."""
        step = np.abs(sums) * SLOPE_STEP
        step = np.maximum(np.rint(step), 1) if self._is_exact else np.where(step == 0, SLOPE_STEP, step)
        high, low = sums + step, np.where(sums >= 0, np.maximum(sums - step, 0), sums - step)
        above, below = (np.where(np.eye(len(sums), dtype=bool), moved, sums) for moved in (high, low))
        slopes: NDArray[np.float64] = (self._scores(above) - self._scores(below)) / (high - low)
        return slopes

    def resampled(
        self, indices: NDArray[np.int64], systems: slice = ALL, times: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the scores of some systems on resamples, as `SegmentMeans` does.

        Sums are in float32, as in sacreBLEU (`significance.py:_paired_bs_test`): with more bits a difference that is
        close to the observed one may fall on its other side, and p be another.
        """
        if self._is_exact:  # one matrix product has the same sums
            sums = self._sums(draw_counts(indices) if times is None else times)[:, systems].astype(np.float32)
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


def _means_of_runs(
    scores: ArrayLike | Sequence[ArrayLike],
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], ...]]:
    """Return the means of runs, (systems, segments), and those of each system, (runs, segments); or no runs."""
    systems = [np.asarray(one) for one in scores] if isinstance(scores, Sequence | np.ndarray) else []
    if not any(one.ndim == 2 for one in systems):
        return checked_scores(scores), ()  # type: ignore[arg-type]
    runs = tuple(checked_scores(np.atleast_2d(one)) for one in systems)
    if len({one.shape[1] for one in runs}) > 1:
        numbers = ", ".join(str(one.shape[1]) for one in runs)
        raise InputError(f"The systems have scores of {numbers} segments; expected the same number for each.")
    return np.stack([one.mean(axis=0) for one in runs]), runs


def run_variance(runs: NDArray[np.float64]) -> float:
    """Return the part of the variance of a system's mean that is due to its runs, (runs, segments); 0 for one run.

    E. Miller, "Adding Error Bars to Evals", arXiv:2411.00640, 2024, section 3: the mean variance within a segment, over
    the number of scores.
    """
    return float(runs.var(axis=0, ddof=1).mean()) / runs.size if len(runs) > 1 else 0.0


def run_effect(runs: NDArray[np.float64]) -> float:
    """Return p of the test whether runs, (runs, segments), differ as wholes: F of a two-way layout; 1 for one run.

    Needs scipy. If runs do differ as wholes, as those of models trained with other seeds may, they are few units
    themselves, and tests by segments hold for these runs only.
    """
    from scipy.special import fdtrc

    num_runs, num_segments = runs.shape
    freedom = (num_runs - 1) * (num_segments - 1)
    means = runs.mean(axis=1, keepdims=True)
    residual = ((runs - means - runs.mean(axis=0) + runs.mean()) ** 2).sum()
    effect = num_segments * ((means - runs.mean()) ** 2).sum()
    if not freedom or effect <= ROUNDING * float((runs**2).sum()):
        return 1.0
    if residual <= ROUNDING * float((runs**2).sum()):
        return 0.0
    return float(fdtrc(num_runs - 1, freedom, effect / (num_runs - 1) / (residual / freedom)))


def checked_scores(scores: ArrayLike) -> NDArray[np.float64]:
    """Return segment scores as a matrix of finite float64, (systems, segments); raise InputError for anything else."""
    try:
        matrix = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("The scores are no matrix of numbers, a row of as many numbers for each system.") from error
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
