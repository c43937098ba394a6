"""Pads the token ids of texts, all batches at once: one by one they would take as long as the runs of a small model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.encoding.batching import Batch
from bertscore_onnx.encoding.embeddings import joined_ranges
from bertscore_onnx.errors import TokenizerError


class PaddedTexts:
    """The token ids of texts in batches, each batch padded to its longest text; batch follows batch."""

    def __init__(
        self,
        sequences: Sequence[NDArray[np.int64]],
        batches: Sequence[Batch],
        manifest: Manifest,
        multiple: int = 1,
    ) -> None:
        """Pad texts.

        Args:
            sequences: the ids of each text, (tokens,), at least one each.
            batches: which texts are in each batch, at least one; every text is in one of the batches.
            manifest: the model's.
            multiple: what the width of a batch is to be a multiple of, where the model takes as many tokens.

        Raises:
            TokenizerError: an id is none of the model's.
        """
        order = np.concatenate([_NONE, *batches])  # (texts,)
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
        numbers = np.array([len(batch) for batch in batches], dtype=np.int64)  # (batches,)
        begins = np.cumsum(numbers) - numbers
        longest = np.maximum.reduceat(lengths[order], begins) if len(begins) else _NONE
        rounded = -(-longest // multiple) * multiple
        widths = np.maximum(longest, np.minimum(rounded, manifest.max_length or rounded))  # (batches,)
        sizes = numbers * widths  # (batches,)
        ends = np.cumsum(sizes)
        self.shapes: list[tuple[int, int]] = list(zip(numbers.tolist(), widths.tolist(), strict=True))
        """The texts of each batch, and its tokens with padding."""
        self.spans: list[slice] = [slice(*span) for span in zip((ends - sizes).tolist(), ends.tolist(), strict=True)]
        """Where each batch is, in tokens with padding."""
        widths_in_order = np.repeat(widths, numbers)  # (texts,)
        self.starts: NDArray[np.int64] = np.empty_like(order)
        """Where each text begins, in tokens with padding, (texts,)."""
        self.starts[order] = np.cumsum(widths_in_order) - widths_in_order
        self.num_tokens: int = int(sizes.sum())
        """The tokens of all batches, padding included."""
        self._ids = np.full(self.num_tokens, manifest.pad_id, dtype=np.int64)
        self._mask = np.zeros(self.num_tokens, dtype=np.int64)
        tokens = joined_ranges(self.starts, lengths)
        self._ids[tokens] = np.concatenate([_NONE, *sequences])
        self._mask[tokens] = 1
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
