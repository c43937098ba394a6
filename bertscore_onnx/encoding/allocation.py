"""Arrays for the embeddings of many texts, their memory used again, and memory that is not needed any more."""

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


class ReusedMemory:
    """Memory for arrays of which a few exist at a time, such as those of one chunk and the next.

    To get a page from the system takes as long as to copy ten: 3 µs of 4 kB were measured on a virtual machine.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._free: list[NDArray[np.float32]] = []

    def take(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return an array to be filled, in memory that was given back, if that is large enough."""
        size = math.prod(shape)
        try:
            block = self._free.pop()
        except IndexError:
            block = None
        if block is None or len(block) < size:
            del block  # before there is another
            block = uninitialized((size + size // 4,))  # the next array may be larger; what is not used takes no memory
        return block[:size].reshape(shape)

    def give_back(self, array: NDArray[np.float32]) -> None:
        """Let the memory of an array that `take` returned be used again; nobody may use the array any more."""
        block = array
        while isinstance(block.base, np.ndarray):
            block = block.base
        self._free.append(block.reshape(-1))


def trim_memory() -> None:
    """Give the system what the C library keeps of freed memory, where that is glibc."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another library, or Windows
        return
    trim(0)
