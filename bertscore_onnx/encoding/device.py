"""Vectors that stay in the memory of a device, where the model wrote them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.providers import Provider, load_onnxruntime, memory_limit
from bertscore_onnx.errors import OutOfMemoryError, one_line


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

    Each run wrote a block, (written layers, rows, hidden), behind that of the run before.
    """

    def __init__(
        self, provider: Provider, spans: Sequence[slice], hidden_size: int, written: int, layers: Sequence[int]
    ) -> None:
        """Take memory for runs with these ranges of rows.

        A run writes `written` layers, of which those numbered `layers` are wanted. Raises an OutOfMemoryError if there
        is too little memory.
        """
        self._provider, self._hidden_size, self._written, self._layers = provider, hidden_size, written, layers
        self._begins = np.array([span.start for span in spans], dtype=np.int64)  # (runs,), as `_sizes`
        self._sizes = np.array([span.stop - span.start for span in spans], dtype=np.int64)
        rows = int(self._sizes.sum()) * written
        limit = memory_limit()
        if limit is not None and 4 * self.itemsize * rows * hidden_size > limit:  # two chunks, the model and its runs
            raise OutOfMemoryError(f"{rows:,} vectors would take more than a quarter of {limit:,} bytes.")
        try:
            self.buffer: Any = load_onnxruntime().OrtValue.ortvalue_from_shape_and_type(
                [rows, hidden_size], np.float32, provider.device, provider.index
            )
            """The OrtValue, (written rows, hidden)."""
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            raise OutOfMemoryError(f"{provider.name} has too little memory for vectors: {one_line(error)}") from error

    itemsize = np.dtype(np.float32).itemsize

    def block(self, run: int, shape: tuple[int, ...]) -> DeviceArray:
        """Return the place for the output of a run, which has this shape; only the last run is awaited."""
        begin = int(self._begins[run]) * self._written * self._hidden_size * self.itemsize
        address, is_last = self.buffer.data_ptr() + begin, run == len(self._begins) - 1
        return DeviceArray(self._provider.device, self._provider.index, address, shape, is_last)

    def rows(self, layer: int, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the buffer where texts begin in one of the layers, given their rows in an array."""
        runs = np.searchsorted(self._begins, starts, side="right") - 1
        return starts + self._begins[runs] * (self._written - 1) + self._layers[layer] * self._sizes[runs]

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
        written = self.buffer.numpy()  # (written rows, hidden)
        if self._written == 1:
            return written[None]
        sizes, layers = self._sizes, list(self._layers)
        blocks = np.split(written, np.cumsum(sizes[:-1]) * self._written)
        by_run = [block.reshape(self._written, -1, self._hidden_size)[layers] for block in blocks]
        return np.concatenate(by_run, axis=1)


Vectors = NDArray[np.float32] | DeviceVectors
"""Vectors of tokens, (layers, rows, hidden), on the host or on a device."""
