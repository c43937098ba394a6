"""Comparison with bert-score."""

from typing import Any

import numpy as np
import pytest

TOLERANCE = 1e-5

KNOWN_WARNINGS = [
    pytest.mark.filterwarnings("ignore:.* 0 because :UserWarning"),
    pytest.mark.filterwarnings("ignore:.* longer than .* truncated:UserWarning"),
    pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning"),  # bert-score's baselines
]
"""Marks of tests that score empty and long texts by both libraries."""


def assert_same_scores(ours: Any, theirs: Any) -> float:
    """Compare where bert-score gives a number; its NaN, from a text without weights, is our 0.

    Returns:
        The largest absolute difference.
    """
    theirs = np.stack([array.numpy() for array in theirs])
    ours = np.stack(ours)
    defined = np.isfinite(theirs).all(axis=0)
    assert defined.sum() > len(defined) / 2
    difference = float(np.abs(ours - theirs)[:, defined].max())
    assert difference <= TOLERANCE
    assert (ours[:, ~defined] == 0).all()
    return difference
