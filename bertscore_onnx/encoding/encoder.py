"""Encodes token ids to unit token embeddings: many texts, in batches of similar length."""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import GRAPH_FILE, Manifest
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.providers import Provider
from bertscore_onnx.encoding.session import OnnxSession, OptimizeFor
from bertscore_onnx.encoding.vectors import (
    DeviceVectors,
    HostPlace,
    HostVectors,
    Place,
    ReusedMemory,
    TokenEmbeddings,
    joined_ranges,
    uninitialized,
)
from bertscore_onnx.errors import ClosedError, GraphError, TokenizerError

# Batches hold texts of similar length, and are capped by their padded tokens. A batch of n sequences, the longest of t
# tokens, costs n × t padded tokens, whatever the others need. Sorting by length keeps that near the true number, and
# capping it, rather than the number of sequences, makes runs of short and of long texts need the same memory.


Batch = NDArray[np.int64]
"""The numbers of the items that are processed together, (batch,)."""


FEW_ROWS = (2, 8, 32, 256)
"""The rows of runs for the last texts, padding included."""

NARROW = 32
"""The widest texts with full runs. Runs of wider ones are a quarter of that: few sentences are longer, and shorter
texts fill such a run up."""

ROW_STEP = 8
"""The rows of a full run are a multiple of this."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """The few shapes of runs on a provider to which every new shape costs time and memory.

    A run is full, or has as few rows as `FEW_ROWS` allow for the last texts.
    """

    widths: NDArray[np.int64]
    """The tokens to which texts are padded, ascending."""

    max_tokens: int
    """The most tokens of a run, padding included, unless it is one longer text."""

    max_items: int | None = None
    """The most texts of a run."""

    @classmethod
    def of(cls, provider: Provider, manifest: Manifest) -> "Buckets | None":
        """Return the buckets of a model on a provider; None if it has none, or the model takes no padding."""
        if not provider.widths or not manifest.padding:
            return None
        widths = np.array(provider.widths, dtype=np.int64)
        if manifest.max_length is not None:
            widths = np.append(widths[widths < manifest.max_length], manifest.max_length)
        return cls(widths, provider.max_tokens(manifest.hidden_size))

    def widen(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the widths for texts of these lengths; one that is longer than all widths keeps its length."""
        places = np.searchsorted(self.widths, lengths)
        return np.where(places < len(self.widths), self.widths.take(places, mode="clip"), lengths)

    def num_rows(self, width: int, number: int) -> int:
        """Return the number of texts, padding included, in a run of this width if `number` texts are left."""
        max_tokens = self.max_tokens if width <= NARROW else self.max_tokens // 4
        full = max(1, min(max_tokens // width, self.max_items or max_tokens))
        if full > ROW_STEP:
            full -= full % ROW_STEP
        return next((rows for rows in FEW_ROWS if number <= rows < full), full)

    def shapes(self) -> list[tuple[int, int]]:
        """Return the shapes of all runs, (texts, tokens), the largest width first."""
        return [
            shape
            for width in self.widths[::-1].tolist()
            for shape in dict.fromkeys((self.num_rows(width, number), width) for number in (self.max_tokens, *FEW_ROWS))
        ]

    def plan(self, lengths: NDArray[np.int64]) -> Iterator[Batch]:
        """Group items of similar length, the longest first; a run is filled up with shorter ones."""
        order = np.argsort(-lengths, kind="stable")
        widths = self.widen(lengths[order])
        start = 0
        while start < len(order):
            width = int(widths[start])
            end = start + self.num_rows(width, len(order) - start)
            yield order[start:end]
            start = end


def plan_runs(
    lengths: NDArray[np.int64],
    max_tokens: int,
    max_items: int | None = None,
    *,
    concurrency: int,
    splits_little_work: bool = True,
    padding: bool = True,
    buckets: Buckets | None = None,
) -> list[Batch]:
    """Plan the batches of some texts as `plan_batches` does, or as the buckets are.

    With `splits_little_work` a few texts are split into a batch for each concurrent run, so that no thread is idle.
    """
    if buckets is not None:
        return list(buckets.plan(lengths))
    if splits_little_work:
        max_tokens = min(max_tokens, -(-len(lengths) // concurrency) * int(lengths.max(initial=1)))
    return list(plan_batches(lengths, max_tokens, max_items, padding=padding))


def plan_batches(
    lengths: NDArray[np.int64],
    max_tokens: int,
    max_items: int | None = None,
    *,
    padding: bool = True,
) -> Iterator[Batch]:
    """Group items of similar length, (items,), the longest first, so that memory peaks at the start.

    A batch has at most `max_tokens` padded tokens, or is one longer item; without `padding` its items have one length.
    Indices are stably sorted by descending length.
    """
    order = np.argsort(-lengths, kind="stable")
    ascending = -lengths[order]  # (items,), sorted
    start = 0
    while start < len(order):
        size = max(1, max_tokens // int(lengths[order[start]]))
        end = start + (size if max_items is None else min(size, max_items))
        if not padding:
            end = min(end, int(np.searchsorted(ascending, ascending[start], side="right")))
        yield order[start:end]
        start = end


class PaddedTexts:
    """The token ids of texts in batches, each batch padded to its longest text, one batch after the other.

    All are padded at once: one by one they would take as long as the runs of a small model.
    """

    def __init__(
        self,
        sequences: Sequence[NDArray[np.int64]],
        batches: Sequence[Batch],
        manifest: Manifest,
        buckets: Buckets | None = None,
    ) -> None:
        """Pad texts, of which every one is in one batch; raise a TokenizerError if the model lacks an id.

        With buckets, a batch has one of their shapes: the rows after its texts are padding.
        """
        self.sequences: Sequence[NDArray[np.int64]] = sequences
        self.lengths: NDArray[np.int64] = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        order, lengths = np.concatenate([_NONE, *batches]), self.lengths  # (texts,)
        numbers = np.array([len(batch) for batch in batches], dtype=np.int64)  # (batches,)
        begins = np.cumsum(numbers) - numbers
        self.amounts: NDArray[np.int64] = np.add.reduceat(lengths[order], begins) if len(begins) else _NONE
        """The tokens of each batch without padding, (batches,)."""
        widths = np.maximum.reduceat(lengths[order], begins) if len(begins) else _NONE  # (batches,)
        rows = numbers  # (batches,)
        if buckets is not None:
            widths = buckets.widen(widths)
            rows = np.array(list(map(buckets.num_rows, widths.tolist(), numbers.tolist())), dtype=np.int64)
        sizes = rows * widths  # (batches,)
        ends = np.cumsum(sizes)
        self.shapes: list[tuple[int, int]] = list(zip(rows.tolist(), widths.tolist(), strict=True))
        """The texts of each batch, and their tokens with padding."""
        self.spans: list[slice] = [slice(*span) for span in zip((ends - sizes).tolist(), ends.tolist(), strict=True)]
        """The range of each batch, in tokens with padding."""
        widths_in_order = np.repeat(widths, numbers)  # (texts,)
        self.starts: NDArray[np.int64] = np.empty_like(order)
        """The start of each text, in tokens with padding, (texts,)."""
        offsets = ends - sizes - begins * widths  # (batches,)
        self.starts[order] = np.arange(len(order)) * widths_in_order + np.repeat(offsets, numbers)
        self.num_tokens: int = int(sizes.sum())
        """The tokens of all batches, padding included."""
        self._ids = np.full(self.num_tokens, manifest.pad_id, dtype=np.int64)
        self._mask = np.zeros(self.num_tokens, dtype=np.int64)
        tokens = joined_ranges(self.starts, lengths)
        self._ids[tokens] = np.concatenate([_NONE, *sequences])
        self._mask[tokens] = 1
        if buckets is not None:  # a row without any token would have no maximum, and no mean
            for start, end in zip((ends - sizes + numbers * widths).tolist(), ends.tolist(), strict=True):
                self._mask[start:end] = 1
        if (largest := self._ids.max(initial=0)) >= manifest.vocab_size:
            raise TokenizerError(
                f"The tokenizer of {manifest.model_id} gives the id {largest}, and the model has "
                f"{manifest.vocab_size} ids. Export the model again."
            )

    def batch(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of a batch, and a mask that is 1 on tokens and 0 on padding, (texts, tokens) each."""
        span, shape = self.spans[number], self.shapes[number]
        return self._ids[span].reshape(shape), self._mask[span].reshape(shape)


_NONE = np.zeros(0, dtype=np.int64)


TURN_SECONDS = 0.005
"""How long a thread runs batches of one caller before it turns to the next. Waking a thread takes as long as a small
run, so that with a task for each run threads would wait more than they compute."""


def run_batches(
    run: Callable[[int], int],
    number: int,
    threads: ThreadPool,
    *,
    is_stopped: threading.Event | None = None,
    advance: Callable[[int], object] = lambda number: None,
) -> None:
    """Run batches in threads, given their number; raise a ClosedError if these were closed, or `is_stopped` is set.

    `run` takes the number of a batch and returns the amount of its work; `advance` is called with the sum after a run,
    or after some short ones.
    """
    waiting = deque(range(number))

    def turns() -> Iterator[None]:
        while waiting:
            yield

    def take_turn(_: None) -> int:
        """Run a batch, and more of them until the turn is over."""
        amount, end = 0, time.monotonic() + TURN_SECONDS
        while not (is_stopped is not None and is_stopped.is_set()):
            try:
                batch = waiting.popleft()
            except IndexError:  # there is none, or another thread took the last one
                break
            amount += run(batch)
            if time.monotonic() > end:
                break
        return amount

    for amount in threads.map(take_turn, turns()):
        advance(amount)
        if is_stopped is not None and is_stopped.is_set():
            raise ClosedError("The caller went away before all was encoded.")


_INPUTS = {"input_ids", "attention_mask"}


class Encoder:
    """The model of one bundle on one provider; threads may share it."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        device: object = None,
        num_threads: int | None = None,
        optimize_for: OptimizeFor = "throughput",
    ) -> None:
        """Load the model; device and threads are as for `OnnxSession`."""
        manifest = self._manifest = bundle.manifest
        if not {*manifest.inputs} <= _INPUTS:
            raise GraphError(
                f"By the manifest, the graph takes the inputs {manifest.inputs}; the runtime can give "
                f"{sorted(_INPUTS)}. Export the model again."
            )
        shape: list[int | str] = ["batch", "tokens", manifest.hidden_size]
        self._stacked_layers = bundle.stacked_layers
        output = {manifest.output: [bundle.stacked_layers, *shape] if bundle.stacked_layers else shape}
        self.session: OnnxSession = OnnxSession(
            bundle,
            bundle.path / GRAPH_FILE,
            manifest.inputs,
            output,
            device=device,
            num_threads=num_threads,
            optimize_for=optimize_for,
        )
        provider = self._provider = self.session.provider
        self.provider: str = provider.name
        self.precision: str = self.session.precision
        self._num_layers = len(manifest.layers)
        is_one_of_many = self._stacked_layers and self._num_layers == 1
        layers = [manifest.num_layers] if is_one_of_many else range(self._num_layers)
        self._layers = manifest.hidden_size, self._stacked_layers or 0, layers  # of vectors
        self.layers_on_device: int = bundle.stacked_layers or 1
        """The layers of a token's vectors on a device, which takes all that a run writes."""
        # a provider that prepares itself for each shape may do so in each thread, and keep the result
        has_threads = self.session.leaves_cpu_idle or provider.widths
        self.threads: ThreadPool = ThreadPool(self.session.concurrency if has_threads else 0, "bertscore-encode")
        """The threads for runs; none to run in the callers' threads."""
        self.matching_threads: ThreadPool = self.threads
        """The threads for matching vectors: the same as for runs, if each run keeps one of them busy."""
        if provider.concurrency is not None:
            threads = self.session.num_threads
            self.matching_threads = ThreadPool(threads if threads > 1 else 0, "bertscore-match")
        self.max_tokens: int = provider.max_tokens(manifest.hidden_size)
        """Padded tokens in a run of the model."""
        self.buckets: Buckets | None = Buckets.of(provider, manifest)
        """The shapes of runs; None if these may have any."""

    def plan(
        self, sequences: Sequence[NDArray[np.int64]], *, max_tokens: int | None = None, max_items: int | None = None
    ) -> PaddedTexts:
        """Put token sequences, at least one id each, into batches of similar length, limited as in `plan_batches`."""
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        max_tokens = max_tokens or self.max_tokens
        buckets = self.buckets and replace(self.buckets, max_tokens=max_tokens, max_items=max_items)
        batches = plan_runs(
            lengths,
            max_tokens,
            max_items,
            concurrency=self.session.concurrency,
            splits_little_work=self._provider.splits_little_work,
            padding=self._manifest.padding,
            buckets=buckets,
        )
        return PaddedTexts(sequences, batches, self._manifest, buckets)

    def run(
        self,
        texts: PaddedTexts,
        vectors: HostVectors | DeviceVectors | None = None,
        *,
        is_stopped: threading.Event | None = None,
        advance: Callable[[int], object] = lambda tokens: None,
    ) -> TokenEmbeddings:
        """Encode texts, batch by batch, into vectors behind those that are there; by default into new ones on the host.

        `is_stopped` ends the work between two batches with a ClosedError, and `advance` is called with the number of
        their tokens. Vectors that are not finite are found by matching.
        """
        vectors = self.host_vectors(texts.num_tokens) if vectors is None else vectors
        first, last = vectors.num_used, len(texts.shapes) - 1
        places = [vectors.take(*shape, is_awaited=number == last) for number, shape in enumerate(texts.shapes)]

        def run(number: int) -> int:
            self.run_batch(*texts.batch(number), places[number])
            return int(texts.amounts[number])

        try:
            run_batches(run, len(places), self.threads, is_stopped=is_stopped, advance=advance)
        except BaseException:
            with suppress(ClosedError):
                self.session.wait()  # runs on a device may still write there
            raise
        return TokenEmbeddings(texts.sequences, texts.lengths, vectors.table, texts.starts + first)

    def host_vectors(self, rows: int, memory: ReusedMemory | None = None) -> HostVectors:
        """Take memory for the vectors of this many tokens on the host."""
        return HostVectors(memory or ReusedMemory(), rows, *self._layers)

    def device_vectors(self, rows: int) -> DeviceVectors:
        """Take memory for the vectors of this many tokens on the device; raise an OutOfMemoryError if it lacks it."""
        return DeviceVectors(self._provider, rows, *self._layers)

    def wait(self) -> None:
        """Wait until all runs are over that have begun."""
        self.threads.submit(lambda _: self.session.wait(), None).result()

    def run_batch(self, input_ids: NDArray[np.int64], mask: NDArray[np.int64], place: Place) -> None:
        """Encode one padded batch, (batch, tokens), into unit vectors, (layers, batch, tokens, hidden).

        The mask is 1 on tokens and 0 on padding; the vectors of padding are arbitrary. On a device there are all layers
        of the graph's output, and no axis for a single one.
        """
        values = {"input_ids": input_ids, "attention_mask": mask}
        self.session.run({name: values[name] for name in self._manifest.inputs}, [place])

    def place(self, vectors: NDArray[np.float32]) -> HostPlace:
        """Return the place of a batch in vectors on the host, (layers, batch, tokens, hidden)."""
        _, stacked, layers = self._layers
        return HostPlace.of_layers(vectors, stacked, layers[0])

    def warm_up(self) -> None:
        """Run each shape that later runs may have, in each thread, if the provider prepares itself for every shape."""
        if self.buckets is not None:
            self.threads.run_in_each(partial(self._run_shapes, self.buckets.shapes()))

    def _run_shapes(self, shapes: Sequence[tuple[int, int]]) -> None:
        for texts, tokens in shapes:
            ids = np.full((texts, tokens), self._manifest.pad_id, dtype=np.int64)
            vectors = uninitialized((self._num_layers, texts, tokens, self._manifest.hidden_size))
            self.run_batch(ids, np.ones_like(ids), self.place(vectors))

    def release_memory(self) -> None:
        """Return memory that only large runs need to the system; later runs allocate it again."""
        self.session.release_memory()
        with suppress(AttributeError, OSError, TypeError):  # a C library other than glibc, or Windows
            ctypes.CDLL(None).malloc_trim(0)

    def close(self) -> None:
        """Release the model and its memory; runs in progress finish first."""
        self.threads.close()
        self.matching_threads.close()
        self.session.close()
