"""Where the vectors of runs are: on the host, or in the memory of a device, where the model writes them."""

import mmap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.providers import Provider, load_onnxruntime, memory_limit
from bertscore_onnx.errors import OutOfMemoryError, is_interrupt, one_line

OWN_PAGES = 1_000_000
"""Bytes from which an array gets pages of its own."""


def uninitialized(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return an array to be filled; the memory of a large one returns to the system with its last reference.

    The C library would keep freed memory and reuse it in parts, so that arrays of varying sizes would not fit into what
    earlier ones left, and memory would creep up. Linux is asked for pages of 2 MB, in which the first use of memory
    takes a fifth of the time.
    """
    size = np.dtype(np.float32).itemsize * prod(shape)
    if size < OWN_PAGES:
        return np.empty(shape, dtype=np.float32)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    pages = mmap.mmap(-1, size, **private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.float32).reshape(shape)


class ReusedMemory:
    """Reusable memory for the few arrays that exist at a time, such as those of one chunk and the next.

    Getting a page from the system takes as long as copying ten: 3 µs for 4 kB, measured on a virtual machine.
    """

    def __init__(self) -> None:
        self._free: list[NDArray[np.float32]] = []

    def take(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return an array to be filled, in memory that was given back if it is large enough."""
        size = prod(shape)
        try:
            block = self._free.pop()
        except IndexError:
            block = None
        if block is None or len(block) < size:
            del block  # before there is another
            block = uninitialized((size + size // 4,))  # the next array may be larger; unused pages take no memory
        return block[:size].reshape(shape)

    def give_back(self, array: NDArray[np.float32]) -> None:
        """Reuse the memory of an array from `take`, which nobody may use any more."""
        block = array
        while isinstance(block.base, np.ndarray):
            block = block.base
        self._free.append(block.reshape(-1))


Binding = tuple[str, int, type, tuple[int, ...], int]
"""The device of a place, its number, the type, the shape and the address, as ONNX Runtime binds an output."""


class HostPlace:
    """A place in an array on the host."""

    is_awaited = can_be_halved = True  # a run ends when its output is there, and a batch can be run in halves

    def __init__(self, array: NDArray[np.float32], written: int = 0, layer: int = 0) -> None:
        """Let a run fill the array, or with `written` layers only the given one of them, (1, …)."""
        self._array, self._written, self._layer = array, written, layer
        self._output: NDArray[np.float32] | None = None

    @classmethod
    def of_layers(cls, array: NDArray[np.float32], stacked: int, layer: int) -> "HostPlace":
        """Return the place of layers, (layers, …): all that a run stacks, one of them, or the only one."""
        if not stacked:
            return cls(array[0])
        return cls(array) if stacked == len(array) else cls(array, stacked, layer)

    def half(self, axis: int, items: slice) -> "HostPlace":
        """Return the place of some of the batch, given its axis."""
        return HostPlace(self._array[(*[slice(None)] * axis, items)], self._written, self._layer)

    def bind(self) -> Binding:
        """Prepare for a run, which writes directly into an array that is contiguous."""
        if self._written:
            self._output = uninitialized((self._written, *self._array.shape[1:]))
        else:
            self._output = self._array if self._array.flags.c_contiguous else np.empty_like(self._array, order="C")
        return "cpu", 0, np.float32, self._output.shape, self._output.ctypes.data

    def done(self) -> None:
        """Take over what a run has written."""
        output, self._output = self._output, None
        if output is not None and output is not self._array:
            self._array[...] = output[self._layer] if self._written else output


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """A place in the memory of a device."""

    device: str
    index: int
    address: int
    shape: tuple[int, ...]
    is_awaited: bool  # whether the run ends when its output is there; if not, after a later run that is awaited
    can_be_halved: bool = False

    def half(self, axis: int, items: slice) -> "DevicePlace":
        """Raise an error: such a batch is not halved."""
        raise NotImplementedError

    def bind(self) -> Binding:
        """Prepare for a run."""
        return self.device, self.index, np.float32, self.shape, self.address

    def done(self) -> None:
        """Leave what a run has written on the device."""


Place = HostPlace | DevicePlace
"""Where a run writes one of its outputs, which is fp32."""


class HostVectors:
    """The vectors of some runs of a model in an array, (layers, rows, hidden)."""

    def __init__(self, memory: ReusedMemory, rows: int, hidden_size: int, stacked: int, layers: Sequence[int]) -> None:
        """Take memory for this many rows; a run stacks some layers, or none, of which those numbered are wanted."""
        self._memory, self._stacked, self._layer = memory, stacked, layers[0]
        self.table: NDArray[np.float32] = memory.take((len(layers), rows, hidden_size))
        self.num_used = 0
        """The rows of all runs."""

    def take(self, texts: int, tokens: int, *, is_awaited: bool) -> HostPlace:
        """Return the place for the output of another run."""
        begin, self.num_used = self.num_used, self.num_used + texts * tokens
        layers, _, hidden_size = self.table.shape
        rows = self.table[:, begin : self.num_used].reshape(layers, texts, tokens, hidden_size)
        return HostPlace.of_layers(rows, self._stacked, self._layer)

    def release(self) -> None:
        """Give the memory to the next vectors; nobody may use these any more."""
        self._memory.give_back(self.table)


class DeviceVectors:
    """The vectors of some runs of a model, in one buffer; indexed like an array (layers, rows, hidden) of the host.

    Each run writes a block, (written layers, rows, hidden), behind that of the run before.
    """

    itemsize = np.dtype(np.float32).itemsize

    def __init__(self, provider: Provider, rows: int, hidden_size: int, stacked: int, layers: Sequence[int]) -> None:
        """Take memory for this many rows.

        A run stacks some layers, or none, of which those numbered are wanted. Raises an OutOfMemoryError if there is
        too little memory.
        """
        self._provider, self._hidden_size, self._stacked, self._layers = provider, hidden_size, stacked, layers
        written = self._written = stacked or 1
        self._begins: list[int] = []  # of the runs, in rows, as `_sizes`
        self._sizes: list[int] = []
        self.num_rows: int = rows  # that there is room for
        limit = memory_limit()
        if limit is not None and 4 * self.itemsize * written * rows * hidden_size > limit:  # two chunks, and the model
            raise OutOfMemoryError(f"{written * rows:,} vectors would take more than a quarter of {limit:,} bytes.")
        try:
            self.buffer: Any = load_onnxruntime().OrtValue.ortvalue_from_shape_and_type(
                [written * rows, hidden_size], np.float32, provider.device, provider.index
            )
            """The OrtValue, (written rows, hidden)."""
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            if is_interrupt(error):
                raise
            raise OutOfMemoryError(f"{provider.name} has too little memory for vectors: {one_line(error)}") from error

    @property
    def num_used(self) -> int:
        """The rows of all runs."""
        return self._begins[-1] + self._sizes[-1] if self._sizes else 0

    @property
    def table(self) -> "DeviceVectors":
        """These vectors."""
        return self

    def take(self, texts: int, tokens: int, *, is_awaited: bool) -> DevicePlace:
        """Return the place for the output of another run."""
        begin, rows = self.num_used, texts * tokens
        self._begins.append(begin)
        self._sizes.append(rows)
        address = self.buffer.data_ptr() + self.itemsize * begin * self._written * self._hidden_size
        shape = (*[self._stacked] * (self._stacked > 0), texts, tokens, self._hidden_size)
        return DevicePlace(self._provider.device, self._provider.index, address, shape, is_awaited)

    def release(self) -> None:
        """Do nothing: the memory is free when nobody uses it any more."""

    def rows(self, layer: int, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the buffer where texts begin in one of the layers, given their rows in an array."""
        begins, sizes = np.array(self._begins), np.array(self._sizes)
        runs = np.searchsorted(begins, starts, side="right") - 1
        return starts + begins[runs] * (self._written - 1) + self._layers[layer] * sizes[runs]

    @property
    def nbytes(self) -> int:
        """The memory of the buffer, in bytes."""
        return self.itemsize * prod(self.buffer.shape())

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self._layers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float32]:
        """Return the vectors on the host, (layers, rows, hidden)."""
        return self._on_host

    def __getitem__(self, key: Any) -> NDArray[np.float32]:
        """Return some of the vectors; all are copied to the host once."""
        return self._on_host[key]

    @cached_property
    def _on_host(self) -> NDArray[np.float32]:
        written = self.buffer.numpy()[: self.num_used * self._written]  # (written rows, hidden)
        if self._written == 1:
            return written[None]
        layers, ends = list(self._layers), np.cumsum(self._sizes)
        blocks = np.split(written, ends[:-1] * self._written)
        by_run = [block.reshape(self._written, -1, self._hidden_size)[layers] for block in blocks]
        return np.concatenate(by_run, axis=1)


Vectors = NDArray[np.float32] | DeviceVectors
"""Vectors of tokens, (layers, rows, hidden), on the host or on a device."""


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """The unit token embeddings of some texts: a row for each token in each layer, a text's tokens side by side."""

    sequences: Sequence[NDArray[np.int64]]
    """The vocabulary ids of each text, special tokens included, (tokens,)."""

    lengths: NDArray[np.int64]
    """The number of tokens of each text, (texts,)."""

    vectors: Vectors
    """Unit vectors, (layers, rows, hidden); rows that belong to no text are padding."""

    starts: NDArray[np.int64]
    """The row at which each text begins, (texts,)."""

    def vectors_of(self, layer: int, text: int) -> NDArray[np.float32]:
        """Return the vectors of one text in one of the layers, (tokens, hidden), without copying them."""
        start = self.starts[text]
        return self.vectors[layer, start : start + self.lengths[text]]


def joined_ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of ranges one after the other, (numbers,), given their starts and lengths."""
    begins = np.cumsum(lengths) - lengths  # (ranges,)
    return np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
