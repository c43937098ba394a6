"""Vectors that stay in the memory of a device, where the model wrote them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.providers import Provider, load_onnxruntime, memory_limit
from bertscore_onnx.errors import OutOfMemoryError, is_interrupt, one_line


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """The place on a device for the output of a run, which is fp32."""

    device: str
    index: int
    address: int
    shape: tuple[int, ...]

    is_awaited: bool
    """Whether the run ends when its output is there; if not, it is there after a later run that is awaited."""


class DeviceVectors:
    """The vectors of some runs of a model, in one buffer; indexed like an array (layers, rows, hidden) of the host.

    Each run writes a block, (written layers, rows, hidden), behind that of the run before.
    """

    itemsize = np.dtype(np.float32).itemsize

    def __init__(self, provider: Provider, rows: int, hidden_size: int, written: int, layers: Sequence[int]) -> None:
        """Take memory for this many rows.

        A run writes `written` layers, of which those numbered `layers` are wanted. Raises an OutOfMemoryError if there
        is too little memory.
        """
        self._provider, self._hidden_size, self._written, self._layers = provider, hidden_size, written, layers
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

    def take(self, shape: tuple[int, ...], *, is_awaited: bool) -> DeviceArray:
        """Return the place for the output of another run, (written layers if there is such an axis, texts, tokens,
        hidden).
        """
        begin, rows = self.num_used, shape[-3] * shape[-2]
        self._begins.append(begin)
        self._sizes.append(rows)
        address = self.buffer.data_ptr() + self.itemsize * begin * self._written * self._hidden_size
        return DeviceArray(self._provider.device, self._provider.index, address, shape, is_awaited)

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
