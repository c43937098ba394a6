"""Baseline rescaling: bert-score's `journal/rescale_baseline.md`, (s - b) / (1 - b) for each of P, R and F."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Baseline:
    """The mean scores of unrelated sentence pairs for one model, layer and language, each below 1."""

    precision: float
    recall: float
    f1: float


def rescale(scores: NDArray[np.float32], baseline: float | NDArray[np.float64]) -> NDArray[np.float32]:
    """Move `baseline` to 0 and keep 1 at 1.

    Args:
        scores: raw scores, any shape, at most 1.
        baseline: the raw score that becomes 0, below 1; or an array of them that broadcasts against `scores`.

    Returns:
        Rescaled scores of the same shape; negative where the raw score is below the baseline.
    """
    return ((scores - baseline) / (1 - baseline)).astype(np.float32)
