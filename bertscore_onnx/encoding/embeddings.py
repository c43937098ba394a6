"""Tables of token embeddings, and the windows of long texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.vectors import Vectors


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """The unit token embeddings of some texts: a row for each token in each layer, a text's tokens side by side."""

    sequences: Sequence[NDArray[np.int64]]
    """The vocabulary ids of each text, special tokens included, (tokens,)."""

    lengths: NDArray[np.int64]
    """The number of tokens of each text, (texts,)."""

    vectors: Vectors
    """Unit vectors, (layers, rows, hidden); rows that belong to no text are padding."""

    starts: NDArray[np.int64]
    """The row at which each text begins, (texts,)."""

    def vectors_of(self, layer: int, text: int) -> NDArray[np.float32]:
        """Return the vectors of one text in one of the layers, (tokens, hidden), without copying them."""
        start = self.starts[text]
        return self.vectors[layer, start : start + self.lengths[text]]


def joined_ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of ranges one after the other, (numbers,), given their starts and lengths."""
    begins = np.cumsum(lengths) - lengths  # (ranges,)
    return np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)


# Texts that are longer than the model's maximum are cut into overlapping windows, as long as the model allows, of which
# every token is kept once. Windows overlap by a quarter at least. A token's vector comes unchanged from the window in
# which it is farthest from both ends, so that it has at least an eighth of a window of context on either side, except
# at the ends of the text. The leading special tokens come from the first window, the trailing ones from the last.
# `docs/long_texts.md` gives the reasons and the costs.

OVERLAP = 0.25
"""The least overlap of neighbouring windows, as a share of a window's text; `docs/long_texts.md` compares others."""


class Windows:
    """The windows of some texts, in their order; a text that is not too long is one window."""

    def __init__(
        self,
        texts: Sequence[NDArray[np.int64]],
        max_length: int,
        frame: tuple[int, int],
        overlap: float = OVERLAP,
    ) -> None:
        """Cut texts, (tokens,) each, into windows of at most `max_length` tokens, special tokens included.

        The frame is the number of special tokens in front of every text and of every window, and the number behind.
        """
        self._texts = texts
        self.lengths: NDArray[np.int64] = np.array([len(ids) for ids in texts], dtype=np.int64)
        """The number of tokens of each text, (texts,)."""
        self.sequences: list[NDArray[np.int64]] = []
        """The ids of each window, special tokens included, (tokens,)."""
        self.kept: list[tuple[int, int]] = []
        """The first token that is kept of each window, and the one after the last."""
        self.first: list[int] = []
        """The first window of each text."""
        for ids in texts:
            self.first.append(len(self.sequences))
            if len(ids) <= max_length:
                self.sequences.append(ids)
                self.kept.append((0, len(ids)))
            else:
                self._cut(ids, max_length, frame, overlap)

    def join(self, windows: TokenEmbeddings) -> TokenEmbeddings:
        """Return the table of the texts, given the table of their windows, which it overwrites.

        The windows of a long text have one length, so that the encoder puts them one after the other: moved to the end
        of the window before, they become one text.
        """
        vectors, end = np.asarray(windows.vectors), 0
        starts = np.empty_like(windows.starts)
        for window in np.argsort(windows.starts):
            first, stop = self.kept[window]
            begin, number = windows.starts[window] + first, stop - first
            vectors[:, end : end + number] = vectors[:, begin : begin + number]
            starts[window] = end
            end += number
        return TokenEmbeddings(self._texts, self.lengths, vectors, starts[self.first])

    def _cut(self, ids: NDArray[np.int64], max_length: int, frame: tuple[int, int], overlap: float) -> None:
        """Append the windows of one long text."""
        before, after = frame
        room = max_length - before - after
        words = ids[before : len(ids) - after]
        starts = _starts(len(words), room, overlap)  # (windows,)
        middles = (starts[1:] + starts[:-1] + room) // 2  # (windows - 1,), in the middle of each overlap
        begins = before + np.concatenate(([-before], middles - starts[1:]))  # (windows,)
        ends = before + np.concatenate((middles - starts[:-1], [room + after]))  # (windows,)
        self.sequences.extend(
            np.concatenate((ids[:before], words[start : start + room], ids[len(ids) - after :])) for start in starts
        )
        self.kept.extend(zip(begins.tolist(), ends.tolist(), strict=True))


def _starts(length: int, room: int, overlap: float) -> NDArray[np.int64]:
    """Return where the windows of a text begin, evenly spread from its start to its end; (windows,)."""
    stride = max(1, room - int(np.ceil(room * overlap)))
    steps = -(-(length - room) // stride)
    return np.arange(steps + 1) * (length - room) // steps
