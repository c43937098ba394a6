"""Token ids to unit token embeddings: batches of similar length, several of them side by side."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.concurrency.thread_pool import WorkerThreads
from bertscore_onnx.encoding.allocation import uninitialized
from bertscore_onnx.encoding.batching import plan_batches
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.encoding.model import OnnxModel
from bertscore_onnx.encoding.providers import CUDA
from bertscore_onnx.errors import EncodingError

Batch = NDArray[np.int64]
"""Which texts are encoded together, (batch,)."""


class Padded(NamedTuple):
    """A batch, ready to be encoded."""

    batch: Batch

    input_ids: NDArray[np.int64]
    """Token ids, (batch, tokens)."""

    mask: NDArray[np.bool_]
    """True on real tokens, (batch, tokens)."""


class Encoder:
    """The graph of one bundle on one device; threads may share it."""

    def __init__(self, bundle: Bundle, *, device: object = None, num_threads: int | None = None) -> None:
        """Load the graph; arguments and errors are those of `OnnxModel`."""
        self._manifest = bundle.manifest
        self._runner = OnnxModel(bundle, device=device, num_threads=num_threads)
        self._device = self._runner.device
        self._threads = WorkerThreads(self._runner.side_by_side, "bertscore-encode")
        self._shares = 1 if self.provider == CUDA else self._runner.side_by_side
        """Into how many batches a little work is cut, so that no thread is idle; a GPU likes it whole."""
        per_size = self._device.batch_values // self._manifest.hidden_size
        self.max_tokens = min(max(64, per_size), self._device.batch_tokens)
        """Padded tokens in a run of the graph."""

    @property
    def provider(self) -> str:
        """The execution provider in use."""
        return self._device.provider

    @property
    def precision(self) -> str:
        """The arithmetic in use."""
        return self._device.precision or self._manifest.precision

    def encode(
        self,
        sequences: Sequence[NDArray[np.int64]],
        *,
        kept: NDArray[np.int64] | None = None,
        max_tokens: int | None = None,
        max_items: int | None = None,
        advance: Callable[[int], object] = lambda tokens: None,
    ) -> TokenEmbeddings:
        """Encode token sequences in batches of similar length.

        Args:
            sequences: the ids of each text, (tokens,), at least one id each.
            kept: the first token of each text that the table is to have, and the one after the last, (texts, 2);
                None for all.
            max_tokens, max_items: the size of a batch, as in `plan_batches`; None for `self.max_tokens` and no bound.
            advance: called after each batch with the number of tokens kept of it; what it raises ends the work.

        Returns:
            The embeddings, text i being `sequences[i]`. Texts of one length lie side by side, in their order.

        Raises:
            EncodingError: the model gave something other than finite vectors of the manifest's size.
            OutOfMemoryError, ClosedError, DeviceError: as `OnnxModel.run` says.
        """
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        alone = 2 * len(sequences) < self._shares  # too few to give every thread one
        share = -(-len(sequences) // (1 if alone else self._shares)) * int(lengths.max(initial=1))  # padded tokens
        share = min(share, max_tokens or self.max_tokens)
        plan = list(plan_batches(lengths, share, max_items, padding=self._manifest.padding))
        first = np.zeros_like(lengths) if kept is None else kept[:, 0]  # (texts,)
        table = self._empty_table(lengths if kept is None else kept[:, 1] - first, plan)

        def encode_batch(padded: Padded) -> int:
            output = self._runner.run(padded.input_ids, padded.mask, alone=alone)
            return self._fill(table, padded, output, first[padded.batch])

        batches = (self._pad(batch, [sequences[text] for text in batch], lengths[batch]) for batch in plan)
        if alone:
            done: Iterable[int] = map(encode_batch, batches)
        elif len(sequences) <= self._shares and 0 < share <= self.max_tokens // 4:  # a short text each
            done = self._threads.share(encode_batch, list(batches))
        else:
            done = self._threads.map(encode_batch, batches)
        for tokens in done:
            advance(tokens)
        return table

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        self._threads.close()
        self._runner.close()

    def _pad(self, batch: Batch, sequences: Sequence[NDArray[np.int64]], lengths: NDArray[np.int64]) -> Padded:
        longest, multiple = int(lengths.max()), self._device.length_multiple
        rounded = -(-longest // multiple) * multiple
        width = max(longest, min(rounded, self._manifest.max_length or rounded))
        mask = np.arange(width) < lengths[:, None]  # (batch, tokens)
        input_ids = np.full(mask.shape, self._manifest.pad_id, dtype=np.int64)  # (batch, tokens)
        input_ids[mask] = np.concatenate(sequences)
        return Padded(batch, input_ids, mask)

    def _empty_table(self, lengths: NDArray[np.int64], plan: Sequence[Batch]) -> TokenEmbeddings:
        """Return a table with room for all texts, those of a batch side by side."""
        order = np.concatenate(plan) if plan else np.zeros(0, dtype=np.int64)  # (texts,)
        starts = np.zeros_like(lengths)
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        layers, tokens = len(self._manifest.layers), int(lengths.sum())
        vectors = uninitialized((layers, tokens, self._manifest.hidden_size))
        return TokenEmbeddings(vectors, np.empty(tokens, dtype=np.int64), starts, lengths)

    def _fill(
        self,
        table: TokenEmbeddings,
        padded: Padded,
        output: NDArray[np.float32],
        first: NDArray[np.int64],
    ) -> int:
        """Put the vectors of a batch, (layers, batch, tokens, hidden), and its ids into the table; count its tokens."""
        begin = end = int(table.starts[padded.batch[0]])
        for position, (length, skipped) in enumerate(zip(table.lengths[padded.batch], first, strict=True)):
            start, end = end, end + int(length)
            table.vectors[:, start:end] = output[:, position, skipped : skipped + length]
            table.ids[start:end] = padded.input_ids[position, skipped : skipped + length]
        if not np.isfinite(table.vectors[:, begin:end].sum()):  # unit vectors cannot overflow it
            raise EncodingError(
                f"The model gave infinite or undefined vectors on {self.provider} for a batch of {len(padded.batch)} "
                "texts. Its weights may be damaged: run `bertscore-onnx inspect` on the bundle."
            )
        return end - begin
