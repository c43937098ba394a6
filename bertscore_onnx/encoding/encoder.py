"""Unit token embeddings of token ids.

An `Encoder` encodes many texts, in batches of similar length; `Runs` has those of one chunk.
"""

import ctypes
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import prod
from threading import Event, Lock

import numpy as np

from bertscore_onnx.arrays import (
    BoolArray,
    Float32Array,
    Int64Array,
    joined,
    joined_ranges,
    lengths_of,
    starts_of,
)
from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import GRAPH_FILE, Manifest
from bertscore_onnx.concurrency.threads import Threads
from bertscore_onnx.encoding.device import Buckets, DeviceVectors
from bertscore_onnx.encoding.places import HostPlace, Place, uninitialized
from bertscore_onnx.encoding.session import OnnxSession, OptimizeFor
from bertscore_onnx.encoding.windows import Windows
from bertscore_onnx.errors import ClosedError, GraphError, OutOfMemoryError, TokenizerError
from bertscore_onnx.text.tokenizer import TextTokenizer

_log = logging.getLogger(__name__)

# Batches hold texts of similar length, and are capped by their padded tokens. A batch of n
# sequences, the longest of t tokens, costs n × t padded tokens, whatever the others need. Sorting
# by length keeps that near the true number, and capping it, rather than the number of sequences,
# makes runs of short and of long texts need the same memory.


Advance = Callable[[float], object]
"""Takes how much work is done."""

Batch = Int64Array
"""The numbers of the items that are processed together, (batch,)."""


def plan_runs(
    lengths: Int64Array,
    max_tokens: int,
    max_items: int | None = None,
    *,
    concurrency: int,
    splits_little_work: bool = True,
    padding: bool = True,
    buckets: Buckets | None = None,
) -> list[Batch]:
    """Plan the batches of texts as `plan_batches` does, or as the buckets are.

    With `splits_little_work` a few texts are split into a batch for each concurrent run, so that no
    thread is idle.
    """
    if buckets is not None:
        return list(buckets.plan(lengths))
    if splits_little_work:
        max_tokens = min(max_tokens, -(-len(lengths) // concurrency) * int(lengths.max(initial=1)))
    return list(plan_batches(lengths, max_tokens, max_items, padding=padding))


def plan_batches(
    lengths: Int64Array,
    max_tokens: int,
    max_items: int | None = None,
    *,
    padding: bool = True,
) -> Iterator[Batch]:
    """Group items of similar length, (items,).

    The longest come first, so that memory peaks at the start. A batch has at most `max_tokens`
    padded tokens, or is one longer item; without `padding` its items have one length. Indices are
    stably sorted by descending length.
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
    """The token ids of texts in batches, one batch after the other.

    Each batch is padded to its longest text. All are padded at once: one by one they would take as
    long as the runs of a small model.
    """

    def __init__(
        self,
        sequences: Sequence[Int64Array],
        batches: Sequence[Batch],
        manifest: Manifest,
        buckets: Buckets | None = None,
    ) -> None:
        """Pad texts, of which every one is in one batch.

        Raise a TokenizerError if the model lacks an id.

        With buckets, a batch has one of their shapes: the rows after its texts are padding.
        """
        self.sequences: Sequence[Int64Array] = sequences
        lengths = self.lengths = lengths_of(sequences)  # (texts,)
        order = joined(batches)  # (texts,)
        numbers = lengths_of(batches)  # (batches,)
        begins = starts_of(numbers)
        amounts = np.add.reduceat(lengths[order], begins) if len(begins) else _NONE
        self.amounts: list[int] = amounts.tolist()
        """The tokens of each batch without padding."""
        widths = np.maximum.reduceat(lengths[order], begins) if len(begins) else _NONE  # (batches,)
        rows = numbers  # (batches,)
        if buckets is not None:
            widths = buckets.widen(widths)
            rows_of_batches = map(buckets.num_rows, widths.tolist(), numbers.tolist())
            rows = np.array(list(rows_of_batches), dtype=np.int64)
        sizes = rows * widths  # (batches,)
        ends = np.cumsum(sizes)
        self.shapes: list[tuple[int, int]] = list(zip(rows.tolist(), widths.tolist(), strict=True))
        """The texts of each batch, and their tokens with padding."""
        self.spans: list[slice] = list(map(slice, (ends - sizes).tolist(), ends.tolist()))
        """The range of each batch, in tokens with padding."""
        widths_in_order = np.repeat(widths, numbers)  # (texts,)
        self.starts: Int64Array = np.empty_like(order)
        """The start of each text, in tokens with padding, (texts,)."""
        offsets = ends - sizes - begins * widths  # (batches,)
        self.starts[order] = np.arange(len(order)) * widths_in_order + np.repeat(offsets, numbers)
        self.num_tokens: int = int(sizes.sum())
        """The tokens of all batches, padding included."""
        self._ids = np.full(self.num_tokens, manifest.pad_id, dtype=np.int64)
        self._mask = np.zeros(self.num_tokens, dtype=np.int64)
        tokens = joined_ranges(self.starts, lengths)
        self._ids[tokens] = joined(sequences)
        self._mask[tokens] = 1
        if buckets is not None:  # a row without any token would have no maximum, and no mean
            ends_of_texts = ends - sizes + numbers * widths  # (batches,)
            for start, end in zip(ends_of_texts.tolist(), ends.tolist(), strict=True):
                self._mask[start:end] = 1
        largest = self._ids.max(initial=0)
        if largest >= manifest.vocab_size:
            raise TokenizerError(
                f"The tokenizer of {manifest.model_id} gives the id {largest}, and the model has "
                f"{manifest.vocab_size} ids. Export the model again."
            )

    def batch(self, number: int) -> tuple[Int64Array, Int64Array]:
        """Return the ids of a batch, and its mask, (texts, tokens) each.

        The mask is 1 on tokens and 0 on padding.
        """
        span = self.spans[number]
        shape = self.shapes[number]
        return self._ids[span].reshape(shape), self._mask[span].reshape(shape)


_NONE = np.zeros(0, dtype=np.int64)


TURN_SECONDS = 0.005
"""How long a thread runs batches of one caller before it turns to the next. Waking a thread takes
as long as a small run, so that with a task for each run threads would wait more than they
compute."""

NEVER = Event()
"""Stops nothing."""


class ReusedMemory:
    """Reusable memory for arrays.

    Few of them exist at a time, such as those of one chunk and the next. Getting a page from the
    system takes as long as copying ten: 3 µs for 4 kB, measured on a virtual machine.
    """

    def __init__(self) -> None:
        self._free: list[Float32Array] = []

    def take(self, shape: tuple[int, ...]) -> Float32Array:
        """Return an array to be filled.

        It lies in memory that was given back if that is large enough.
        """
        size = prod(shape)
        try:
            block = self._free.pop()
        except IndexError:
            block = None
        if block is None or len(block) < size:
            del block  # before there is another
            # the next array may be larger; unused pages take no memory
            block = uninitialized((size + size // 4,))
        return block[:size].reshape(shape)

    def give_back(self, array: Float32Array) -> None:
        """Reuse the memory of an array from `take`, which nobody may use any more."""
        block = array
        while isinstance(block.base, np.ndarray):
            block = block.base
        self._free.append(block.reshape(-1))


class HostVectors:
    """The vectors of some runs of a model in an array, (layers, rows, hidden)."""

    def __init__(
        self, memory: ReusedMemory, rows: int, hidden_size: int, stacked: int, layers: Sequence[int]
    ) -> None:
        """Take memory for this many rows.

        A run stacks some layers, or none, of which those numbered are wanted.
        """
        self._stacked = stacked
        self._layer = layers[0]
        self.table: Float32Array = memory.take((len(layers), rows, hidden_size))

    def place(self, span: slice, shape: tuple[int, int]) -> HostPlace:
        """Return the place for the output of a run, given its range of rows.

        The shape of the run is (texts, tokens).
        """
        layers, _, hidden_size = self.table.shape
        rows = self.table[:, span].reshape(layers, *shape, hidden_size)
        return HostPlace.of_layers(rows, self._stacked, self._layer)


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """The unit token embeddings of texts.

    There is a row for each token in each layer; the tokens of a text stand side by side.
    """

    sequences: Sequence[Int64Array]
    """The vocabulary ids of each text, special tokens included, (tokens,)."""

    lengths: Int64Array
    """The number of tokens of each text, (texts,)."""

    vectors: Float32Array | DeviceVectors
    """Unit vectors, (layers, rows, hidden); rows that belong to no text are padding."""

    starts: Int64Array
    """The row at which each text begins, (texts,)."""

    documents: Sequence[Int64Array] | None = None
    """The ids of each whole text, in which idf counts tokens, (tokens,); None if every token is
    matched.
    """

    num_weightless: Int64Array | None = None
    """How many tokens at the start of each text weigh nothing, (texts,); None if all weigh."""

    is_excluded: BoolArray | None = None
    """Which texts had tokens but none to match, (texts,); None if there is no such text."""

    def vectors_of(self, layer: int, text: int) -> Float32Array:
        """Return the vectors of one text in one of the layers.

        They are (tokens, hidden), and not copied.
        """
        start = self.starts[text]
        return self.vectors[layer, start : start + self.lengths[text]]


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
                f"By the manifest, the graph takes the inputs {manifest.inputs}; the runtime can "
                f"give {sorted(_INPUTS)}. Export the model again."
            )
        shape: list[int | str] = ["batch", "tokens", manifest.hidden_size]
        stacked = bundle.stacked_layers
        if stacked:
            shape.insert(0, stacked)
        self.session: OnnxSession = OnnxSession(
            bundle,
            bundle.path / GRAPH_FILE,
            manifest.inputs,
            {manifest.output: shape},
            device=device,
            num_threads=num_threads,
            optimize_for=optimize_for,
        )
        provider = self._provider = self.session.provider
        self.provider: str = provider.name
        self.precision: str = self.session.precision
        # Where layers are stacked, their numbers are their places; a single one is in place 0.
        layers = manifest.layers if stacked else range(1)
        self.layers: tuple[int, int, Sequence[int]] = (manifest.hidden_size, stacked, layers)
        """The hidden size, the layers that a run stacks, or 0, and the numbers of those that are
        scored.
        """
        self.layers_on_device: int = stacked or 1
        """The layers of a token's vectors on a device, which takes all that a run writes."""
        number = self.session.concurrency if self.session.leaves_cpu_idle else 0
        self.threads: Threads = Threads(number, "bertscore-encode")
        """The threads for runs; none to run in the callers' threads."""
        self.matching_threads: Threads = self.threads
        """The threads for matching vectors: the same as for runs, if each run keeps one of them
        busy.
        """
        if provider.concurrency is not None:
            threads = self.session.num_threads
            self.matching_threads = Threads(threads if threads > 1 else 0, "bertscore-match")
        self.max_tokens: int = provider.max_tokens(manifest.hidden_size)
        """Padded tokens in a run of the model."""
        self.buckets: Buckets | None = Buckets.of(provider, manifest)
        """The shapes of runs, at least of a few texts; None if these may have any."""

    def plan(self, sequences: Sequence[Int64Array], max_items: int | None = None) -> PaddedTexts:
        """Put token sequences into batches of similar length.

        A sequence has at least one id. Batches are limited as in `plan_batches`.
        """
        lengths = lengths_of(sequences)  # (texts,)
        concurrency = self.session.concurrency
        buckets = self.buckets and self.buckets.for_texts(lengths, max_items, concurrency)
        batches = plan_runs(
            lengths,
            self.max_tokens,
            max_items,
            concurrency=concurrency,
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
        is_stopped: Event = NEVER,
        advance: Callable[[int], object] = lambda tokens: None,
    ) -> TokenEmbeddings:
        """Encode texts, batch by batch, into vectors with room for them.

        By default into new ones on the host.

        `is_stopped` ends the work between two batches with a ClosedError, and `advance` is called
        with the number of their tokens. Vectors that are not finite are found by matching.
        """
        if vectors is None:
            vectors = HostVectors(ReusedMemory(), texts.num_tokens, *self.layers)
        places = [
            vectors.place(span, shape)
            for span, shape in zip(texts.spans, texts.shapes, strict=True)
        ]
        waiting = deque(range(len(places)))

        def take_turn(_: int) -> int:
            """Run a batch, and more of them until the turn is over.

            Return the number of their tokens.
            """
            tokens = 0
            end = time.monotonic() + TURN_SECONDS
            while not is_stopped.is_set():
                try:
                    batch = waiting.popleft()
                except IndexError:  # there is none, or another thread took the last one
                    break
                self.run_batch(*texts.batch(batch), places[batch])
                tokens += texts.amounts[batch]
                if time.monotonic() > end:
                    break
            return tokens

        try:
            for tokens in self.threads.map(take_turn, iter(waiting.__len__, 0)):
                advance(tokens)
                if is_stopped.is_set():
                    raise ClosedError("The caller went away before all was encoded.")
        except BaseException:
            waiting.clear()
            if isinstance(vectors, DeviceVectors):
                with suppress(ClosedError):
                    # runs may still write there
                    list(self.threads.map(OnnxSession.wait, [self.session]))
            raise
        return TokenEmbeddings(texts.sequences, texts.lengths, vectors.table, texts.starts)

    def run_batch(self, input_ids: Int64Array, mask: Int64Array, place: Place) -> None:
        """Encode one padded batch, (batch, tokens), into unit vectors.

        They are (layers, batch, tokens, hidden). The mask is 1 on tokens and 0 on padding; the
        vectors of padding are arbitrary. On a device there are all layers of the graph's output,
        and no axis for a single one.
        """
        values = {"input_ids": input_ids, "attention_mask": mask}
        self.session.run({name: values[name] for name in self._manifest.inputs}, [place])

    def unit_vectors(self, input_ids: Int64Array, mask: Int64Array) -> Float32Array:
        """Encode one padded batch as `run_batch` does, and return its vectors on the host."""
        hidden_size, stacked, layers = self.layers
        vectors = uninitialized((len(layers), *input_ids.shape, hidden_size))
        self.run_batch(input_ids, mask, HostPlace.of_layers(vectors, stacked, layers[0]))
        return vectors

    def warm_up(self) -> None:
        """Run each shape that later runs may have.

        Nothing is run unless all runs have few shapes.
        """
        if self.buckets is not None and not self.buckets.is_for_few:
            deque(self.threads.map(self._run_shape, self.buckets.shapes()), maxlen=0)

    def _run_shape(self, shape: tuple[int, int]) -> None:
        ids = np.full(shape, self._manifest.pad_id, dtype=np.int64)
        self.unit_vectors(ids, np.ones_like(ids))

    def release_memory(self) -> None:
        """Return memory that only large runs need to the system.

        Later runs allocate it again.
        """
        self.session.release_memory()
        # a C library other than glibc, or Windows
        with suppress(AttributeError, OSError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)

    def close(self) -> None:
        """Release the model and its memory; runs in progress finish first."""
        self.threads.close()
        self.matching_threads.close()
        self.session.close()


@dataclass(frozen=True, slots=True)
class Call:
    """What the chunks of one caller have in common."""

    max_items: int | None = None
    """The most texts of a run."""

    is_stopped: Event = field(default_factory=Event)
    """Whether the caller has gone; then nothing is run any more."""

    memory: ReusedMemory = field(default_factory=ReusedMemory)
    """The memory of vectors on the host."""

    encoding: Lock = field(default_factory=Lock)
    """Held while a chunk is encoded: they are encoded one after the other."""


class Runs:
    """The runs of some texts into vectors on a device, or on the host."""

    def __init__(
        self,
        encoder: Encoder,
        call: Call,
        sequences: Sequence[Int64Array],
        tokenizer: TextTokenizer,
        *,
        on_device: bool,
    ) -> None:
        """Plan the runs of texts, (tokens,) each.

        On the host, those that are too long for the model become windows.
        """
        self._encoder = encoder
        self._call = call
        self._sequences = sequences
        self._on_device = on_device
        self._windows: Windows | None = None
        planned = sequences
        if any(len(ids) > tokenizer.max_length for ids in sequences):
            self._windows = Windows(sequences, tokenizer.max_length, tokenizer.num_special_tokens)
            planned = self._windows.sequences
        self._texts = encoder.plan(planned, max_items=call.max_items)
        self._vectors: HostVectors | None = None

    def finish(self, advance: Advance = lambda tokens: None) -> TokenEmbeddings:
        """Run the texts, on the host if the device lacks memory.

        `advance` is called with the numbers of tokens.
        """
        if self._on_device:
            try:
                return self._finish_on_device(advance)
            except OutOfMemoryError as error:
                # not the error itself: a log may keep that, whose traceback refers to the vectors
                _log.warning("Vectors are matched on the host, which takes longer: %s", str(error))
        texts = self._texts
        windows = self._windows
        self._vectors = HostVectors(self._call.memory, texts.num_tokens, *self._encoder.layers)
        run = partial(self._encoder.run, texts, self._vectors, is_stopped=self._call.is_stopped)
        if windows is None:
            return run(advance=advance)
        lengths = lengths_of(self._sequences)
        share = int(lengths.sum()) / texts.lengths.sum()  # of a text, in a token of a window
        starts = run(advance=lambda tokens: advance(tokens * share)).starts
        return TokenEmbeddings(
            self._sequences, lengths, self._vectors.table, windows.join(self._vectors.table, starts)
        )

    def _finish_on_device(self, advance: Advance) -> TokenEmbeddings:
        vectors = DeviceVectors(
            self._encoder.session.provider, self._texts.spans, *self._encoder.layers
        )
        return self._encoder.run(
            self._texts, vectors, is_stopped=self._call.is_stopped, advance=advance
        )

    def release(self) -> None:
        """Give back the memory of vectors on the host.

        Nobody may use them any more.
        """
        if self._vectors is not None:
            self._call.memory.give_back(self._vectors.table)
            self._vectors = None
