"""The confidence interval of a corpus score, from its resamples: sacreBLEU's `significance.py:estimate_ci`."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError

CUT = 40
"""One of this many resamples is left out at each end: 2.5 %."""


def confidence_interval(resampled: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of the resamples and the half-width of the 95 % interval about it.

    The scores are sorted, and n // 40 left out at each end; the half-width is half the distance between the lowest
    and the highest of the rest.

    Args:
        resampled: corpus scores, (resamples, …), at least one.

    Returns:
        Mean and half-width, each (…).

    Raises:
        InputError: there is no resample.
    """
    ordered = np.sort(np.asarray(resampled, dtype=np.float64), axis=0)
    if ordered.ndim == 0 or len(ordered) == 0:
        raise InputError("There are no resamples to take an interval of. Give at least one score.")
    cut = len(ordered) // CUT
    return ordered.mean(axis=0), (ordered[len(ordered) - 1 - cut] - ordered[cut]) / 2
