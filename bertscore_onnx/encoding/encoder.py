"""Token ids to unit token embeddings: many texts, in batches of similar length."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.allocation import ReusedMemory, trim_memory
from bertscore_onnx.encoding.batching import plan_runs
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.encoding.model import OnnxModel
from bertscore_onnx.encoding.onnx_runtime.sessions import OptimizeFor
from bertscore_onnx.encoding.padding import PaddedTexts
from bertscore_onnx.encoding.running import run_batches


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
        max_tokens: int | None = None,
        max_items: int | None = None,
        is_stopped: threading.Event | None = None,
        advance: Callable[[int], object] = lambda tokens: None,
        memory: ReusedMemory | None = None,
    ) -> TokenEmbeddings:
        """Encode token sequences in batches of similar length.

        Args:
            sequences: the ids of each text, (tokens,), at least one id each.
            max_tokens, max_items: the size of a batch, as in `plan_batches`; None for `self.max_tokens` and no bound.
            is_stopped: ends the work between two batches once it is set.
            advance: called after a batch, or after some short ones, with the number of their tokens.
            memory: where the vectors go; None for memory of their own.

        Returns:
            The embeddings, text i being `sequences[i]`. Whether they are finite shows where they are matched.

        Raises:
            EncodingError: a run failed, or did not give vectors of the manifest's size.
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
        padded = PaddedTexts(sequences, batches, self._manifest, self._provider.length_multiple)
        layers, hidden_size = len(self._manifest.layers), self._manifest.hidden_size
        vectors = (memory or ReusedMemory()).take((layers, padded.num_tokens, hidden_size))

        def run(number: int) -> int:
            block = vectors[:, padded.spans[number]].reshape(layers, *padded.shapes[number], hidden_size)
            self._model.run(*padded.batch(number), block)
            return int(lengths[batches[number]].sum())

        run_batches(run, range(len(batches)), self._threads, is_stopped=is_stopped, advance=advance)
        return TokenEmbeddings(sequences, lengths, vectors, padded.starts)

    def release_memory(self) -> None:
        """Give memory that only large runs need back to the system; the next runs ask for it again."""
        self._graph.release_memory()
        trim_memory()

    def close(self) -> None:
        """Release the model and its memory; runs in progress finish first."""
        self._threads.close()
        self.matching_threads.close()
        self._graph.close()
