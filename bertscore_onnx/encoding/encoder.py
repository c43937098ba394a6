"""Token ids to unit token embeddings: many texts, in batches of similar length."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.allocation import ReusedMemory, trim_memory
from bertscore_onnx.encoding.batching import Batch, plan_runs
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.encoding.model import OnnxModel
from bertscore_onnx.encoding.onnx_runtime.sessions import OptimizeFor
from bertscore_onnx.encoding.padding import pad_texts
from bertscore_onnx.encoding.running import run_batches
from bertscore_onnx.errors import EncodingError


class PaddedBatch(NamedTuple):
    """A batch, ready to be encoded."""

    batch: Batch

    input_ids: NDArray[np.int64]
    """Token ids, (batch, tokens)."""

    mask: NDArray[np.bool_]
    """True on real tokens, (batch, tokens)."""


class Encoder:
    """The model of one bundle on one provider, for any number of texts; threads may share it."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        device: object = None,
        num_threads: int | None = None,
        optimize_for: OptimizeFor = "throughput",
    ) -> None:
        """Load the model; arguments and errors are those of `OnnxModel`."""
        self._manifest = bundle.manifest
        self._model = OnnxModel(bundle, device=device, num_threads=num_threads, optimize_for=optimize_for)
        self._graph = self._model.graph
        self._provider = self._graph.provider
        self._threads = ThreadPool(self._graph.concurrency if self.leaves_cpu_idle else 0, "bertscore-encode")
        self.matching_threads: ThreadPool = self._threads
        """Where the vectors are to be matched: in the threads of the runs, where each run keeps one of these busy."""
        if self._provider.concurrency is not None:
            self.matching_threads = ThreadPool(self.num_threads if self.num_threads > 1 else 0, "bertscore-match")
        self.max_tokens: int = self._provider.max_tokens(self._manifest.hidden_size)
        """Padded tokens in a run of the model."""

    @property
    def num_threads(self) -> int:
        """CPU threads to use."""
        return self._graph.num_threads

    @property
    def leaves_cpu_idle(self) -> bool:
        """Whether other work may go on beside a run: the model runs elsewhere, or there are more CPU threads."""
        return self._graph.concurrency > 1

    @property
    def provider(self) -> str:
        """The execution provider in use."""
        return self._provider.name

    @property
    def precision(self) -> str:
        """The compute precision."""
        return self._provider.compute_precision() or self._manifest.precision

    def encode(
        self,
        sequences: Sequence[NDArray[np.int64]],
        *,
        kept: NDArray[np.int64] | None = None,
        max_tokens: int | None = None,
        max_items: int | None = None,
        is_stopped: threading.Event | None = None,
        advance: Callable[[int], object] = lambda tokens: None,
        memory: ReusedMemory | None = None,
    ) -> TokenEmbeddings:
        """Encode token sequences in batches of similar length.

        Args:
            sequences: the ids of each text, (tokens,), at least one id each.
            kept: the first token of each text that the table is to have, and the one after the last, (texts, 2);
                None for all.
            max_tokens, max_items: the size of a batch, as in `plan_batches`; None for `self.max_tokens` and no bound.
            is_stopped: ends the work between two batches once it is set.
            advance: called after each batch with the number of tokens kept of it.
            memory: where the vectors go; None for memory of their own.

        Returns:
            The embeddings, text i being `sequences[i]`. Texts of one length lie side by side, in their order.

        Raises:
            EncodingError: a run failed, or did not give finite vectors of the manifest's size.
            OutOfMemoryError: not even a single text fits into the device's memory.
            ClosedError: the encoder was closed, or `is_stopped` was set.
            DeviceError: the process was forked and the provider cannot follow.
            TokenizerError: an id is none of the model's.
        """
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        batches = plan_runs(
            lengths,
            max_tokens or self.max_tokens,
            max_items,
            concurrency=self._graph.concurrency,
            splits_little_work=self._provider.splits_little_work,
            padding=self._manifest.padding,
        )
        first = np.zeros_like(lengths) if kept is None else kept[:, 0]  # (texts,)
        table = self._empty_table(lengths if kept is None else kept[:, 1] - first, batches, memory)

        def run(batch: Batch) -> int:
            padded = self._pad(batch, [sequences[text] for text in batch])
            output = self._model.run(padded.input_ids, padded.mask)
            return self._fill(table, padded, output, first[batch])

        run_batches(run, batches, self._threads, is_stopped=is_stopped, advance=advance)
        return table

    def release_memory(self) -> None:
        """Give memory that only large runs need back to the system; the next runs ask for it again."""
        self._graph.release_memory()
        trim_memory()

    def close(self) -> None:
        """Release the model and its memory; runs in progress finish first."""
        self._threads.close()
        self.matching_threads.close()
        self._graph.close()

    def _pad(self, batch: Batch, sequences: Sequence[NDArray[np.int64]]) -> PaddedBatch:
        return PaddedBatch(batch, *pad_texts(sequences, self._manifest, self._provider.length_multiple))

    def _empty_table(
        self, lengths: NDArray[np.int64], batches: Sequence[Batch], memory: ReusedMemory | None
    ) -> TokenEmbeddings:
        """Return a table with room for all texts, those of a batch side by side."""
        order = np.concatenate(batches) if batches else np.zeros(0, dtype=np.int64)  # (texts,)
        starts = np.zeros_like(lengths)
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        layers, tokens = len(self._manifest.layers), int(lengths.sum())
        vectors = (memory or ReusedMemory()).take((layers, tokens, self._manifest.hidden_size))
        return TokenEmbeddings(vectors, np.empty(tokens, dtype=np.int64), starts, lengths)

    def _fill(
        self,
        table: TokenEmbeddings,
        padded: PaddedBatch,
        output: NDArray[np.float32],
        first: NDArray[np.int64],
    ) -> int:
        """Copy the vectors of a batch, (layers, batch, tokens, hidden), and its ids to the table; count its tokens."""
        begin, lengths = int(table.starts[padded.batch[0]]), table.lengths[padded.batch]
        end, column = begin + int(lengths.sum()), np.arange(output.shape[2])
        is_kept = (column >= first[:, None]) & (column < (first + lengths)[:, None])  # (batch, tokens)
        kept = np.flatnonzero(is_kept)
        table.ids[begin:end] = padded.input_ids[is_kept]
        for vectors, rows in zip(output, table.vectors[:, begin:end], strict=True):
            np.take(vectors.reshape(-1, vectors.shape[-1]), kept, axis=0, out=rows, mode="clip")  # "raise" would buffer
        squares = (np.vdot(rows, rows) for rows in table.vectors[:, begin:end])  # those of a unit vector add up to 1
        if not all(map(np.isfinite, squares)):
            raise EncodingError(
                f"The model gave infinite or undefined vectors on {self.provider} for a batch of {len(padded.batch)} "
                "texts. Its weights may be damaged: run `bertscore-onnx inspect` on the bundle."
            )
        return end - begin
