"""Arrays for the embeddings of many texts, and memory that is not needed any more."""

import ctypes
import math
import mmap

import numpy as np
from numpy.typing import NDArray

OWN_PAGES = 1_000_000
"""Bytes from which an array gets pages of its own."""


def uninitialized(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return an array to be filled; the memory of a large one goes back to the system as soon as nobody refers to it.

    What the C library is given back it keeps and hands out in parts, so that chunks of varying sizes would not fit
    into what earlier ones left, and memory would creep up.
    """
    size = np.dtype(np.float32).itemsize * math.prod(shape)
    if size < OWN_PAGES:
        return np.empty(shape, dtype=np.float32)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return np.frombuffer(mmap.mmap(-1, size, **private), dtype=np.float32).reshape(shape)


def trim_memory() -> None:
    """Give the system what the C library keeps of freed memory, where that is glibc."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another library, or Windows
        return
    trim(0)
