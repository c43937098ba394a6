"""What devices need: runs of few shapes, and vectors in their memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from bertscore_onnx.arrays import Float32Array, Int64Array
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.encoding.places import DevicePlace
from bertscore_onnx.encoding.providers import Provider, load_onnxruntime, memory_limit
from bertscore_onnx.errors import OutOfMemoryError, is_interrupt, one_line

FEW_ROWS = (2, 8, 32, 256)
"""The rows of runs for the last texts, padding included."""

NARROW = 32
"""The widest texts with full runs. Runs of wider ones are a quarter of that: few sentences are
longer, and shorter texts fill such a run up."""

ROW_STEP = 8
"""The rows of a full run are a multiple of this."""

FEW_RUNS = 4
"""The full runs per thread up to which runs on a CPU have few shapes. A new shape takes 12 ms,
as long as 8 % of a full run of MiniLM, which padding to widths costs."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The shapes of the runs of a model on a provider.

    A run is full, or has as few rows as `FEW_ROWS` allow for the last texts.
    """

    widths: Int64Array
    """The tokens to which texts are padded, ascending."""

    max_tokens: int
    """The most tokens of a run, padding included, unless it is one longer text."""

    max_items: int | None = None
    """The most texts of a run."""

    is_for_few: bool = False
    """Whether only a few texts have such runs, some for each thread."""

    @classmethod
    def of(cls, provider: Provider, manifest: Manifest) -> "Buckets | None":
        """Return the buckets of a model on a provider.

        None if it has none, or the model takes no padding.
        """
        if not provider.widths or not manifest.padding:
            return None
        widths = np.array(provider.widths, dtype=np.int64)
        if manifest.max_length is not None:
            widths = np.append(widths[widths < manifest.max_length], manifest.max_length)
        max_tokens = provider.max_tokens(manifest.hidden_size)
        return cls(widths, max_tokens, is_for_few=provider.splits_little_work)

    def for_texts(
        self, lengths: Int64Array, max_items: int | None, concurrency: int
    ) -> "Buckets | None":
        """Return the buckets of texts of these lengths; None if they are too many."""
        if self.is_for_few:
            share = max(1, len(lengths) // concurrency)
            if share * int(lengths.max(initial=1)) > FEW_RUNS * self.max_tokens:
                return None
            rows = max(rows for rows in (1, *FEW_ROWS) if rows <= share)
            max_items = min(rows, max_items or rows)
        return replace(self, max_items=max_items)

    def widen(self, lengths: Int64Array) -> Int64Array:
        """Return the widths for texts of these lengths.

        One that is longer than all widths keeps its length.
        """
        places = np.searchsorted(self.widths, lengths)
        return np.where(places < len(self.widths), self.widths.take(places, mode="clip"), lengths)

    def num_rows(self, width: int, number: int) -> int:
        """Return the number of texts in a run of this width, padding included.

        `number` texts are left.
        """
        is_wide = width > NARROW and not self.is_for_few
        max_tokens = self.max_tokens // 4 if is_wide else self.max_tokens
        full = max(1, min(max_tokens // width, self.max_items or max_tokens))
        if full > ROW_STEP:
            full -= full % ROW_STEP
        for rows in FEW_ROWS:
            if number <= rows < full:
                return rows
        return full

    def shapes(self) -> list[tuple[int, int]]:
        """Return the shapes of all runs, (texts, tokens), the largest width first."""
        shapes: dict[tuple[int, int], None] = {}
        for width in self.widths[::-1].tolist():
            for number in (self.max_tokens, *FEW_ROWS):
                shapes[self.num_rows(width, number), width] = None
        return list(shapes)

    def plan(self, lengths: Int64Array) -> Iterator[Int64Array]:
        """Group items of similar length, (batch,), the longest first.

        A run is filled up with shorter ones.
        """
        order = np.argsort(-lengths, kind="stable")
        widths = self.widen(lengths[order])
        start = 0
        while start < len(order):
            width = int(widths[start])
            end = start + self.num_rows(width, len(order) - start)
            yield order[start:end]
            start = end


class DeviceVectors:
    """The vectors of some runs of a model, in one buffer.

    Indexed like an array (layers, rows, hidden) of the host.

    Each run writes a block, (written layers, rows, hidden).
    """

    itemsize = np.dtype(np.float32).itemsize

    def __init__(
        self,
        provider: Provider,
        spans: Sequence[slice],
        hidden_size: int,
        stacked: int,
        layers: Sequence[int],
    ) -> None:
        """Take memory for runs with these ranges of rows, one after the other.

        A run stacks some layers, or none, of which those numbered are wanted. Raises an
        OutOfMemoryError if there is too little memory.
        """
        self._provider = provider
        self._hidden_size = hidden_size
        self._stacked = stacked
        self._layers = layers
        written = self._written = stacked or 1
        # (runs,), as `_sizes`
        self._begins = np.array([span.start for span in spans], dtype=np.int64)
        self._sizes = np.array([span.stop for span in spans], dtype=np.int64) - self._begins
        rows = self._num_rows = int(self._sizes.sum())
        limit = memory_limit()
        # two chunks, and the model
        if limit is not None and 4 * self.itemsize * written * rows * hidden_size > limit:
            raise OutOfMemoryError(
                f"{written * rows:,} vectors would take more than a quarter of {limit:,} bytes."
            )
        try:
            self.buffer: Any = load_onnxruntime().OrtValue.ortvalue_from_shape_and_type(
                [written * rows, hidden_size], np.float32, provider.device, provider.index
            )
            """The OrtValue, (written rows, hidden)."""
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            if is_interrupt(error):
                raise
            raise OutOfMemoryError(
                f"{provider.name} has too little memory for vectors: {one_line(error)}"
            ) from error

    @property
    def table(self) -> "DeviceVectors":
        """These vectors."""
        return self

    def place(self, span: slice, shape: tuple[int, int]) -> DevicePlace:
        """Return the place for the output of a run.

        The run has these rows and this shape; the last one is awaited.
        """
        offset = self.itemsize * span.start * self._written * self._hidden_size
        address = self.buffer.data_ptr() + offset
        written = (self._stacked,) if self._stacked else ()
        output = (*written, *shape, self._hidden_size)
        is_last = span.stop == self._num_rows
        return DevicePlace(self._provider.device, self._provider.index, address, output, is_last)

    def rows(self, layer: int, starts: Int64Array) -> Int64Array:
        """Return the rows of the buffer where texts begin in one of the layers.

        `starts` is where they would begin in an array, (texts,).
        """
        runs = np.searchsorted(self._begins, starts, side="right") - 1
        return (
            starts
            + self._begins[runs] * (self._written - 1)
            + self._layers[layer] * self._sizes[runs]
        )

    @property
    def nbytes(self) -> int:
        """The memory of the buffer, in bytes."""
        return self.itemsize * prod(self.buffer.shape())

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self._layers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Float32Array:
        """Return the vectors on the host, (layers, rows, hidden)."""
        return self._on_host

    def __getitem__(self, key: Any) -> Float32Array:
        """Return some of the vectors; all are copied to the host once."""
        return self._on_host[key]

    @cached_property
    def _on_host(self) -> Float32Array:
        written = self.buffer.numpy()  # (written rows, hidden)
        if self._written == 1:
            return written[None]
        layers = list(self._layers)
        blocks = np.split(written, self._begins[1:] * self._written)
        by_run = [block.reshape(self._written, -1, self._hidden_size)[layers] for block in blocks]
        return np.concatenate(by_run, axis=1)
