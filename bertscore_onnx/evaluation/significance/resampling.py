"""The random draws of the paired tests, a block at a time: for one seed, those of sacreBLEU (`significance.py`).

A generator of numpy goes on where it stopped, so that blocks hold the same numbers as one draw of all of them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SEED = 12345
"""The seed where none is given, as in sacreBLEU."""

NUM_RESAMPLES = 1000
"""The bootstrap resamples where no number is given, as in sacreBLEU."""

NUM_SWAPS = 10_000
"""The trials of approximate randomization where no number is given, as in sacreBLEU."""

BLOCK_CELLS = 1 << 20
"""Draws in memory at a time: 8 MB of indices."""

DRAWN_BITS = 32
"""numpy draws booleans 32 at a time and drops what is left of the last; blocks of 32 rows leave nothing."""


def bootstrap_indices(rng: np.random.Generator, num_segments: int, num_resamples: int) -> Iterator[NDArray[np.int64]]:
    """Yield the segments of each resample, drawn with replacement, in blocks of (rows, num_segments)."""
    rows = max(1, BLOCK_CELLS // num_segments)
    for start in range(0, num_resamples, rows):
        yield rng.choice(num_segments, size=(min(rows, num_resamples - start), num_segments), replace=True)


def kept_segments(rng: np.random.Generator, num_segments: int, num_swaps: int) -> Iterator[NDArray[np.bool_]]:
    """Yield which segments two systems keep, while they swap the others, in blocks of (rows, num_segments)."""
    rows = max(1, BLOCK_CELLS // num_segments // DRAWN_BITS) * DRAWN_BITS
    for start in range(0, num_swaps, rows):
        yield rng.integers(2, size=(min(rows, num_swaps - start), num_segments), dtype=bool)
