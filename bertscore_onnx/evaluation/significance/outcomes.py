"""Segment by segment: how often a system wins, loses or ties against the baseline."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.significance.corpus_scores import checked_scores


@dataclass(frozen=True, slots=True, eq=False)
class SegmentOutcomes:
    """How many segments each system won, lost and tied against the baseline; together all of them."""

    won: NDArray[np.int64]
    """Segments on which the system is better, (systems,)."""

    lost: NDArray[np.int64]
    """Segments on which the baseline is better, (systems,)."""

    tied: NDArray[np.int64]
    """Segments on which neither is, (systems,); all of them for the baseline itself."""


def segment_outcomes(
    scores: ArrayLike, *, baseline: int = 0, tolerance: float = 0.0, lower_is_better: bool = False
) -> SegmentOutcomes:
    """Count the segments that each system wins, loses and ties against the baseline.

    Args:
        scores: finite segment scores, (systems, segments).
        baseline: the row of the system that the others are compared with.
        tolerance: scores that differ by no more than this tie; by default only equal ones do.
        lower_is_better: true for an error rate such as TER.

    Raises:
        InputError: the scores are no such matrix, there is no such baseline, or the tolerance is negative.
    """
    matrix = checked_scores(scores)
    if not 0 <= baseline < len(matrix):
        raise InputError(f"The baseline is row {baseline}, and there are {len(matrix)} systems. Count them from 0.")
    if not tolerance >= 0:
        raise InputError(f"The tolerance is {tolerance}. Give 0 or a positive number.")
    better = matrix - matrix[baseline]  # (systems, segments)
    if lower_is_better:
        better = -better
    won, lost = (better > tolerance).sum(axis=1), (better < -tolerance).sum(axis=1)
    return SegmentOutcomes(won, lost, matrix.shape[1] - won - lost)
