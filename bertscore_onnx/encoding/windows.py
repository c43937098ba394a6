"""Windows of texts that are longer than the model's maximum.

They overlap, and are as long as the model allows; every token is kept once. A token's vector comes
unchanged from the window in which it is farthest from both ends, so that it has at least an eighth
of a window of context on either side, except at the ends of the text. The leading special tokens
come from the first window, the trailing ones from the last. `docs/long_texts.md` gives the reasons
and the costs.
"""

from collections.abc import Sequence

import numpy as np

from bertscore_onnx.arrays import Float32Array, Int64Array

OVERLAP = 0.25
"""The least overlap of neighbouring windows, as a share of a window's text; `docs/long_texts.md`
compares others.
"""


class Windows:
    """The windows of some texts, in their order.

    A text that is not too long is one window.
    """

    def __init__(
        self,
        texts: Sequence[Int64Array],
        max_length: int,
        frame: tuple[int, int],
        overlap: float = OVERLAP,
    ) -> None:
        """Cut texts, (tokens,) each, into windows.

        A window has at most `max_length` tokens, special tokens included. The frame is the number
        of special tokens in front of every text and of every window, and the number behind.
        """
        self.sequences: list[Int64Array] = []
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

    def join(self, vectors: Float32Array, starts: Int64Array) -> Int64Array:
        """Move the vectors of windows, and return where their texts begin.

        Vectors are (layers, rows, hidden), and are moved to those of their texts. The windows of a
        long text have one length, so that the encoder puts them one after the other: moved to the
        end of the window before, they become one text.
        """
        end = 0
        moved = np.empty_like(starts)
        for window in np.argsort(starts):
            first, stop = self.kept[window]
            begin = starts[window] + first
            number = stop - first
            vectors[:, end : end + number] = vectors[:, begin : begin + number]
            moved[window] = end
            end += number
        return moved[self.first]

    def _cut(
        self, ids: Int64Array, max_length: int, frame: tuple[int, int], overlap: float
    ) -> None:
        """Append the windows of one long text."""
        before, after = frame
        room = max_length - before - after
        text = ids[before : len(ids) - after]
        starts = _starts(len(text), room, overlap)  # (windows,)
        # (windows - 1,), in the middle of each overlap
        middles = (starts[1:] + starts[:-1] + room) // 2
        begins = before + np.concatenate(([-before], middles - starts[1:]))  # (windows,)
        ends = before + np.concatenate((middles - starts[:-1], [room + after]))  # (windows,)
        self.sequences.extend(
            np.concatenate((ids[:before], text[start : start + room], ids[len(ids) - after :]))
            for start in starts
        )
        self.kept.extend(zip(begins.tolist(), ends.tolist(), strict=True))


def _starts(length: int, room: int, overlap: float) -> Int64Array:
    """Return where the windows of a text begin, (windows,), spread evenly over the text."""
    stride = max(1, room - int(np.ceil(room * overlap)))
    steps = -(-(length - room) // stride)
    return np.arange(steps + 1) * (length - room) // steps
