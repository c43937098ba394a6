"""Segments that are like their neighbours, and so not independent."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS

FALSE_ALARMS = 0.04
"""How often independent rows are called alike, in any difference."""


def alike_neighbours(differences: Sequence[NDArray[np.float64]]) -> str:
    """Warn if neighbouring segments are alike in one of the differences.

    These are (segments,) each. It goes by the rank autocorrelation of lag 1, in the order of the
    ids, or else of the rows.
    """
    num_segments = len(differences[0])
    if num_segments < MIN_UNITS:
        return ""
    found = max(map(_autocorrelation, differences))
    deviation = (found + 1 / num_segments) * num_segments**0.5
    if deviation <= NormalDist().inv_cdf(1 - FALSE_ALARMS / len(differences)):
        return ""
    return (
        f"Neighbouring segments are alike (autocorrelation {found:.2f}), so that p may be too "
        "small: if they belong to documents, give these (--documents)."
    )


def _autocorrelation(values: NDArray[np.float64]) -> float:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    ranks = ranks - ranks.mean()
    total = float(ranks @ ranks)
    if not total:
        return 0.0
    return float(ranks[1:] @ ranks[:-1]) / total
