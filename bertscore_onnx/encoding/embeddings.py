"""A ragged table of token embeddings: in each layer one row a token, the tokens of a text side by side."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """The unit token embeddings of some texts, without padding."""

    vectors: NDArray[np.float32]
    """Unit vectors, (layers, tokens, hidden)."""

    ids: NDArray[np.int64]
    """The vocabulary id of each token, (tokens,)."""

    starts: NDArray[np.int64]
    """The row at which each text begins, (texts,)."""

    lengths: NDArray[np.int64]
    """How many tokens each text has, special tokens included, (texts,)."""

    def ids_of(self, text: int) -> NDArray[np.int64]:
        """Return the ids of one text, (tokens,)."""
        return self.ids[self.rows_of(text)]

    def rows_of(self, text: int) -> slice:
        """Return where one text lies."""
        start = int(self.starts[text])
        return slice(start, start + int(self.lengths[text]))

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
        rows, begins = self._rows(texts)
        return self.vectors[layer, rows], token_weights[self.ids[rows]], begins

    def flat_ids(self, texts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of some of the texts one after the other, (tokens,), and where each begins, (texts,)."""
        rows, begins = self._rows(texts)
        return self.ids[rows], begins

    def _rows(self, texts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lengths = self.lengths[texts]  # (texts,)
        begins = np.cumsum(lengths) - lengths  # (texts,)
        return np.arange(lengths.sum()) + np.repeat(self.starts[texts] - begins, lengths), begins
