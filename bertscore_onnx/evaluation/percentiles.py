"""The standing of scores among those of unrelated pairs; a module of its own, since `score` imports it on each run."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError


def percentile(f1: ArrayLike, unrelated: ArrayLike) -> NDArray[np.float64]:
    """Return how many percent of unrelated pairs score lower.

    Args:
        f1: scores, of any shape; with several layers the layers come first.
        unrelated: evenly spaced quantiles of F of unrelated pairs in ascending order, or all their scores in that
            order, such as `BERTScorer.unrelated_scores` returns: (quantiles,) or (layers, quantiles), at least two.

    Returns:
        Percentages from 0 to 100, shaped like `f1`; between two quantiles they are interpolated, and of equal ones the
        middle counts. 100 is a score higher than all that were measured.

    Raises:
        InputError: something is not finite, not in ascending order, or does not fit.
    """
    scores, quantiles = np.asarray(f1, dtype=np.float64), np.asarray(unrelated, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise InputError("A score is not finite; expected numbers only.")
    if quantiles.ndim == 2:
        if scores.ndim == 0 or len(scores) != len(quantiles):
            raise InputError(
                f"There are unrelated scores of {len(quantiles)} layers, and scores of shape {scores.shape}; expected "
                "as many layers first."
            )
        return np.stack([percentile(one, of_layer) for one, of_layer in zip(scores, quantiles, strict=True)])
    if quantiles.ndim != 1 or len(quantiles) < 2 or not np.isfinite(quantiles).all() or (np.diff(quantiles) < 0).any():
        raise InputError(
            f"Unrelated scores of shape {quantiles.shape}; expected two or more finite numbers in ascending order."
        )
    values, place, counts = np.unique(quantiles, return_inverse=True, return_counts=True)
    middle = np.bincount(place, weights=np.linspace(0, 100, len(quantiles))) / counts
    return np.asarray(np.interp(scores, values, middle, left=0, right=100))


HIGH_SHARE = 0.99
"""The quantile of unrelated pairs above which a score counts as high: one in a hundred of them exceeds it."""


def high_unrelated(unrelated: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the score that 99 % of unrelated pairs do not exceed, () or (layers,), from evenly spaced quantiles."""
    return np.asarray(np.quantile(unrelated, HIGH_SHARE, axis=-1))
