"""A table of token embeddings: a row for each token in each layer, those of a text side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


# Texts that were encoded once and can be scored many times.


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


# Cuts texts that are longer than the model's maximum into overlapping passages, of which every token is kept once. A
# passage is what users know as a window (`long_text="window"`). Passages are as long as the model allows and overlap
# by a quarter at least. A token's vector comes, as it is, from the passage in which it is farthest from both ends, so
# that it has an eighth of a passage of context on either side at least, but for the ends of the text. The special
# tokens in front are those of the first passage, the ones behind those of the last. Why so, and what it costs:
# `docs/long_texts.md`.


OVERLAP = 0.25
"""How much of its text a passage shares with the next one, at least; `benchmarks/studies/passages.py` measures what
this is worth."""


@dataclass(frozen=True, slots=True)
class Passages:
    """The passages of some texts, in their order; a text that is not too long is one passage."""

    sequences: list[NDArray[np.int64]]
    """The ids of each passage, special tokens included, (tokens,)."""

    kept: NDArray[np.int64]
    """The first token that is kept of each passage, and the one after the last, (passages, 2)."""

    first: NDArray[np.int64]
    """The first passage of each text, (texts,)."""

    def join(self, passages: TokenEmbeddings, texts: Sequence[NDArray[np.int64]]) -> TokenEmbeddings:
        """Make the table of the texts, (texts,), of that of their passages, which it overwrites.

        The passages of a long text have one length, so that the encoder lays them one after the other: as each of them
        moves to the end of the one before, those of a text become one.
        """
        vectors, end = passages.vectors, 0
        starts = np.empty_like(passages.starts)
        for passage in np.argsort(passages.starts):
            begin, number = passages.starts[passage] + self.kept[passage, 0], np.diff(self.kept[passage])[0]
            vectors[:, end : end + number] = vectors[:, begin : begin + number]
            starts[passage] = end
            end += number
        return TokenEmbeddings(texts, np.array([len(ids) for ids in texts]), vectors, starts[self.first])


def cut_passages(
    texts: Sequence[NDArray[np.int64]], max_length: int, frame: tuple[int, int], overlap: float = OVERLAP
) -> Passages:
    """Cut texts into passages.

    Args:
        texts: the ids of each text, special tokens included, (tokens,), at least one id each.
        max_length: the most tokens of a passage, special tokens included; more than the frame.
        frame: how many special tokens stand in front of every text and of every passage, and how many behind.
        overlap: how much of its text a passage shares with the next one, at least; from 0 to below 1.
    """
    sequences: list[NDArray[np.int64]] = []
    kept: list[tuple[int, int]] = []
    first = []
    for ids in texts:
        first.append(len(sequences))
        if len(ids) <= max_length:
            sequences.append(ids)
            kept.append((0, len(ids)))
        else:
            _cut_long_text(ids, max_length, frame, overlap, sequences, kept)
    return Passages(sequences, np.array(kept, dtype=np.int64).reshape(-1, 2), np.array(first, dtype=np.int64))


def _cut_long_text(
    ids: NDArray[np.int64],
    max_length: int,
    frame: tuple[int, int],
    overlap: float,
    sequences: list[NDArray[np.int64]],
    kept: list[tuple[int, int]],
) -> None:
    """Append the passages of one text, and what is kept of each."""
    before, after = frame
    room = max_length - before - after
    words = ids[before : len(ids) - after]
    starts = _starts(len(words), room, overlap)  # (passages,)
    middles = (starts[1:] + starts[:-1] + room) // 2  # (passages - 1,), in the middle of each overlap
    begins = before + np.concatenate(([-before], middles - starts[1:]))  # (passages,)
    ends = before + np.concatenate((middles - starts[:-1], [room + after]))  # (passages,)
    sequences.extend(
        np.concatenate((ids[:before], words[start : start + room], ids[len(ids) - after :])) for start in starts
    )
    kept.extend(zip(begins.tolist(), ends.tolist(), strict=True))


def _starts(length: int, room: int, overlap: float) -> NDArray[np.int64]:
    """Return where the passages of a text begin, evenly spread from its start to its end; (passages,)."""
    stride = max(1, room - int(np.ceil(room * overlap)))
    steps = -(-(length - room) // stride)
    return np.arange(steps + 1) * (length - room) // steps
