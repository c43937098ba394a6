"""Where a run of a graph writes its outputs.

These are arrays on the host, or memory of a device.
"""

import mmap
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import numpy as np

from bertscore_onnx.arrays import Float32Array
from bertscore_onnx.errors import EncodingError

OWN_PAGES = 1_000_000
"""Bytes from which an array gets pages of its own."""


def uninitialized(shape: tuple[int, ...]) -> Float32Array:
    """Return an array to be filled.

    The memory of a large one returns to the system with its last reference.

    The C library would keep freed memory and reuse it in parts, so that arrays of varying sizes
    would not fit into what earlier ones left, and memory would creep up. Linux is asked for pages
    of 2 MB, in which the first use of memory takes a fifth of the time.
    """
    size = np.dtype(np.float32).itemsize * prod(shape)
    if size < OWN_PAGES:
        return np.empty(shape, dtype=np.float32)
    private: dict[str, int] = {}
    if hasattr(mmap, "MAP_PRIVATE"):
        private["flags"] = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    pages = mmap.mmap(-1, size, **private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.float32).reshape(shape)


Binding = tuple[str, int, type, tuple[int, ...], int]
"""The device of a place, its number, the type, the shape and the address, as ONNX Runtime binds an
output.
"""


class HostPlace:
    """A place in an array on the host."""

    is_awaited = True  # a run ends when its output is there

    def __init__(self, array: Float32Array, written: int = 0, layer: int = 0) -> None:
        """Let a run fill the array.

        Of the `written` layers of a run, if any, the array gets only the given one, (1, …).
        """
        self._array = array
        self._written = written
        self._layer = layer
        self._output: Float32Array | None = None

    @classmethod
    def of_layers(cls, array: Float32Array, stacked: int, layer: int) -> "HostPlace":
        """Return the place of layers, (layers, …).

        The layers are all that a run stacks, one of them, or the only one.
        """
        if not stacked:
            return cls(array[0])
        if stacked == len(array):
            return cls(array)
        return cls(array, stacked, layer)

    def half(self, axis: int, items: slice) -> "HostPlace":
        """Return the place of some of the batch, given its axis."""
        return HostPlace(self._array[(*[slice(None)] * axis, items)], self._written, self._layer)

    def fill(self, output: Float32Array) -> None:
        """Copy the output of a run, which has the shape that the graph gave it."""
        wanted = self._array.shape
        if self._written:
            wanted = (self._written, *wanted[1:])
        if output.shape != wanted:
            raise EncodingError(f"The graph gives the shape {output.shape}; expected {wanted}.")
        self._array[...] = output[self._layer] if self._written else output

    def bind(self) -> Binding:
        """Prepare for a run.

        The run writes directly into an array that is contiguous.
        """
        if self._written:
            self._output = uninitialized((self._written, *self._array.shape[1:]))
        elif self._array.flags.c_contiguous:
            self._output = self._array
        else:
            self._output = np.empty_like(self._array, order="C")
        return "cpu", 0, np.float32, self._output.shape, self._output.ctypes.data

    def done(self) -> None:
        """Take over what a run has written."""
        output = self._output
        self._output = None
        if output is not None and output is not self._array:
            self.fill(output)


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """A place in the memory of a device."""

    device: str
    index: int
    address: int
    shape: tuple[int, ...]
    # whether the run ends when its output is there; if not, after a later run that is awaited
    is_awaited: bool

    def bind(self) -> Binding:
        """Prepare for a run."""
        return self.device, self.index, np.float32, self.shape, self.address

    def done(self) -> None:
        """Leave what a run has written on the device."""


Place = HostPlace | DevicePlace
"""Where a run writes one of its outputs, which is fp32."""
