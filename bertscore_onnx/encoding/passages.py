"""Cuts texts that are longer than the model's maximum into overlapping passages, of which every token is kept once.

A passage is what users know as a window (`long_text="window"`). Passages are as long as the model allows and overlap by
a quarter at least. A token's vector comes, as it is, from the passage in which it is farthest from both ends, so that
it has an eighth of a passage of context on either side at least, but for the ends of the text. The special tokens in
front are those of the first passage, the ones behind those of the last. Why so, and what it costs:
`docs/long_texts.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.embeddings import TokenEmbeddings

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
