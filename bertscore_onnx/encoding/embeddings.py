"""A table of token embeddings: a row for each token in each layer, those of a text side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """The unit token embeddings of some texts."""

    sequences: Sequence[NDArray[np.int64]]
    """The vocabulary ids of each text, special tokens included, (tokens,)."""

    lengths: NDArray[np.int64]
    """How many tokens each text has, (texts,)."""

    vectors: NDArray[np.float32]
    """Unit vectors, (layers, rows, hidden); the rows of no text are padding, and mean nothing."""

    starts: NDArray[np.int64]
    """The row at which each text begins, (texts,)."""

    def vectors_of(self, layer: int, text: int) -> NDArray[np.float32]:
        """Return the vectors of one text in one of the layers, (tokens, hidden), without copying them."""
        start = self.starts[text]
        return self.vectors[layer, start : start + self.lengths[text]]

    def flat(
        self, layer: int, texts: NDArray[np.int64], token_weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        """Lay out some of the texts one after the other.

        Args:
            layer: which of the table's layers.
            texts: which texts, in which order, (texts,).
            token_weights: the weight of each vocabulary id, (vocab_size,).

        Returns:
            Embeddings (tokens, hidden), weights (tokens,), and where each text begins, (texts,).
        """
        ids, begins = self.flat_ids(texts)
        rows = joined_ranges(self.starts[texts], self.lengths[texts])
        return self.vectors[layer, rows], token_weights[ids], begins

    def flat_ids(self, texts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of some of the texts one after the other, (tokens,), and where each begins, (texts,)."""
        lengths = self.lengths[texts]  # (texts,)
        nothing = np.zeros(0, dtype=np.int64)  # there may be no texts
        return np.concatenate([nothing, *(self.sequences[text] for text in texts)]), np.cumsum(lengths) - lengths


def joined_ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of ranges one after the other, (numbers,), from where each starts and how long it is."""
    begins = np.cumsum(lengths) - lengths  # (ranges,)
    numbers: NDArray[np.int64] = np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
    return numbers
