"""Texts that were encoded once and can be scored many times."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.embeddings import TokenEmbeddings


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTexts:
    """What `BERTScorer.encode` returns: texts as token embeddings, equal ones stored once.

    `BERTScorer.score` and `pairwise` of the same model take it in place of the strings. It holds 4 bytes × hidden size
    for each token of the distinct texts and for some padding, in each layer; `nbytes` tells how many that are.
    """

    embeddings: TokenEmbeddings
    """The distinct texts."""

    rows: NDArray[np.int64]
    """Which of the distinct texts each text is, (texts,)."""

    counts: NDArray[np.int64]
    """How many texts each item has, (items,): 1, or the number of references where an item was a list of them."""

    model: str
    """What encoded them; only the same may score them."""

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.counts)

    def __getitem__(self, items: slice) -> "EncodedTexts":
        """Return some of the items, without copying embeddings."""
        counts = self.counts[items]
        starts = (np.cumsum(self.counts) - self.counts)[items]  # (some items,)
        texts = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)  # (some texts,)
        return self.part(texts, counts)

    def part(self, texts: slice | NDArray[np.int64], counts: NDArray[np.int64]) -> "EncodedTexts":
        """Return some of the texts, with their number in each item."""
        return replace(self, rows=self.rows[texts], counts=counts)

    @property
    def nbytes(self) -> int:
        """The memory that the embeddings take, in bytes."""
        return self.embeddings.vectors.nbytes

    def __repr__(self) -> str:
        """Tell the size rather than the content."""
        return f"EncodedTexts({len(self)} items, {self.nbytes / 1e6:.1f} MB, {self.model})"
