"""The types of arrays, and arrays of sequences that follow each other.

Shapes stand in docstrings and comments, such as (texts, tokens).
"""

from collections.abc import Iterable, Sequence, Sized

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
Int64Array = NDArray[np.int64]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]

Shape = Sequence[int | str]
"""The shape of an output of a graph; a size that varies is a string."""


def lengths_of(sequences: Iterable[Sized]) -> Int64Array:
    """Return the length of each sequence, (sequences,)."""
    return np.array([len(sequence) for sequence in sequences], dtype=np.int64)


def starts_of(lengths: Int64Array) -> Int64Array:
    """Return where each of some sequences starts, (sequences,), if they follow each other."""
    return np.cumsum(lengths) - lengths


def joined(sequences: Iterable[Int64Array]) -> Int64Array:
    """Return the numbers of all sequences, (numbers,); there may be no sequence."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *sequences])


def joined_ranges(starts: Int64Array, lengths: Int64Array) -> Int64Array:
    """Return the numbers of ranges one after the other, (numbers,).

    Ranges are given by their starts and lengths, (ranges,).
    """
    return np.arange(lengths.sum()) + np.repeat(starts - starts_of(lengths), lengths)
