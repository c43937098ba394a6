"""Holm's correction for several tests: Holm, "A simple sequentially rejective multiple test procedure", 1979."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError


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
