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
        return self.ids[self.starts[text] : self.starts[text] + self.lengths[text]]

    def one(
        self, layer: int, text: int, token_weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return one text by itself, without copying its embeddings.

        Args:
            layer, token_weights: as in `padded`.
            text: which text.

        Returns:
            Embeddings (tokens, hidden) and weights (tokens,).
        """
        rows = slice(self.starts[text], self.starts[text] + self.lengths[text])
        return self.vectors[layer, rows], token_weights[self.ids[rows]]

    def padded(
        self, layer: int, texts: NDArray[np.int64], token_weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """Lay out some of the texts as one padded batch.

        Args:
            layer: which of the table's layers.
            texts: which texts, in which order, (batch,).
            token_weights: the weight of each vocabulary id, (vocab_size,).

        Returns:
            Embeddings (batch, tokens, hidden), weights (batch, tokens) with 0 on padding, and the mask of the real
            tokens (batch, tokens).
        """
        lengths = self.lengths[texts]  # (batch,)
        column = np.arange(lengths.max())  # (tokens,)
        mask = column < lengths[:, None]  # (batch, tokens)
        rows = np.where(mask, self.starts[texts][:, None] + column, 0)  # (batch, tokens)
        weights = np.where(mask, token_weights[self.ids[rows]], np.float32(0))  # (batch, tokens)
        return self.vectors[layer, rows], weights, mask

    def flat(
        self, layer: int, texts: NDArray[np.int64], token_weights: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        """Lay out some of the texts one after the other.

        Args:
            layer, texts, token_weights: as in `padded`.

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
