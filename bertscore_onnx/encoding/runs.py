"""The runs of the texts of a chunk. On a device they begin while other texts are still tokenised, so that it need not
wait for all of them.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.thread_pool import Task
from bertscore_onnx.encoding.encoder import Encoder, PaddedTexts
from bertscore_onnx.encoding.vectors import DeviceVectors, HostVectors, Place, ReusedMemory, TokenEmbeddings
from bertscore_onnx.errors import ClosedError, OutOfMemoryError

_log = logging.getLogger(__name__)

MOST_AT_A_TIME = 3
"""Runs that wait or are made at a time; those of other callers come in between."""

ROOM = 1.25
"""The vectors that there is room for, compared to the tokens of a chunk: they are padded."""


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


@dataclass(frozen=True, slots=True)
class Call:
    """What the chunks of one caller have in common."""

    max_items: int | None = None
    """The most texts of a run."""

    is_stopped: Event = field(default_factory=Event)
    """Whether the caller has gone; then nothing is run any more."""

    memory: ReusedMemory = field(default_factory=ReusedMemory)
    """The memory of vectors on the host."""


class HostRuns:
    """The runs of some texts into vectors on the host; those longer than the maximum are run in windows."""

    def __init__(self, encoder: Encoder, call: Call, max_length: int, frame: tuple[int, int]) -> None:
        """Prepare for texts; a window has `max_length` tokens at most, with those of the frame as in `Windows`."""
        self._encoder, self._call, self._max_length, self._frame = encoder, call, max_length, frame
        self.sequences: list[NDArray[np.int64]] = []
        """The ids of each text, (tokens,)."""
        self._windows: Windows | None = None
        self._texts: PaddedTexts
        self._vectors: HostVectors | None = None

    def add(self, sequences: Sequence[NDArray[np.int64]], *, in_context: bool = False) -> None:
        """Take more texts, (tokens,) each."""
        self.sequences += sequences

    def plan(self) -> None:
        """Plan the runs of all texts, which are complete now."""
        sequences: Sequence[NDArray[np.int64]] = self.sequences
        if any(len(ids) > self._max_length for ids in sequences):
            self._windows = Windows(sequences, self._max_length, self._frame)
            sequences = self._windows.sequences
        self._texts = self._encoder.plan(sequences, max_items=self._call.max_items)

    def finish(self, advance: Callable[[float], object] = lambda tokens: None) -> TokenEmbeddings:
        """Run the texts; `advance` is called with the numbers of tokens."""
        texts, windows = self._texts, self._windows
        self._vectors = self._encoder.host_vectors(texts.num_tokens, self._call.memory)
        run = partial(self._encoder.run, texts, self._vectors, is_stopped=self._call.is_stopped)
        if windows is None:
            return run(advance=advance)
        text_share = int(windows.lengths.sum()) / texts.lengths.sum()  # of a text, in a token of a window
        return windows.join(run(advance=lambda tokens: advance(tokens * text_share)))

    def release(self) -> None:
        """Give back the memory of the vectors, which nobody may use any more."""
        if self._vectors is not None:
            self._vectors.release()
            self._vectors = None


class DeviceRuns(HostRuns):
    """The runs of some texts into vectors on a device; on the host if that lacks memory, or for texts in contexts."""

    def __init__(
        self, encoder: Encoder, call: Call, max_length: int, frame: tuple[int, int], max_early_tokens: int = 0
    ) -> None:
        """Prepare for texts of about `max_early_tokens` at most, some of which run early; with 0 none does."""
        super().__init__(encoder, call, max_length, frame)
        self._is_on_device = True
        self._room = int(ROOM * max_early_tokens) if encoder.buckets else 0
        self._early: DeviceVectors | None = None
        self._waiting: dict[int, list[int]] = defaultdict(list)  # the numbers of texts, by width
        self._begun: list[Task[Any, None]] = []
        self._starts: dict[int, int] = {}  # of the texts in runs, in rows

    def add(self, sequences: Sequence[NDArray[np.int64]], *, in_context: bool = False) -> None:
        """Take more texts, (tokens,) each, and begin the runs that are full."""
        buckets, first = self._encoder.buckets, len(self.sequences)
        super().add(sequences)
        self._is_on_device &= not in_context
        if buckets is None or not self._room or not self._is_on_device:
            return
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
        for number, width in enumerate(buckets.widen(lengths).tolist(), first):
            self._waiting[width].append(number)
        for width, numbers in self._waiting.items():
            full = buckets.num_rows(width, buckets.max_tokens)
            while len(numbers) >= full and (vectors := self._vectors_for(full * width)) is not None:
                self._begin(numbers[:full], vectors)
                del numbers[:full]

    def plan(self) -> None:
        """Plan the runs of all texts that are in none; of all texts, if otherwise there were too little room."""
        if self._is_on_device and self._early is not None:
            others = [ids for number, ids in enumerate(self.sequences) if number not in self._starts]
            self._texts = self._encoder.plan(others)
            if self._early.num_used + self._texts.num_tokens <= self._early.num_rows:
                return
            self._starts.clear()
        super().plan()

    def finish(self, advance: Callable[[float], object] = lambda tokens: None) -> TokenEmbeddings:
        """Run the other texts too; on the host, if the device has too little memory."""
        if self._is_on_device:
            try:
                return self._finish(advance)
            except OutOfMemoryError as error:
                _log.warning("Vectors are matched on the host, which takes longer: %s", error)
            self._is_on_device = False
            self.plan()
        if self._begun:
            for task in self._begun:
                task.cancel()
            self._encoder.wait()  # runs may still write into their vectors
        self._early = None  # before there is other memory
        return super().finish(advance)

    def release(self) -> None:
        """Give back the memory of the vectors, which nobody may use any more."""
        super().release()
        self._early = None

    def _finish(self, advance: Callable[[float], object]) -> TokenEmbeddings:
        """Run the other texts into the vectors of the early runs, if there are any."""
        for task in self._begun:
            task.result()
        texts, is_early = self._texts, np.zeros(len(self.sequences), dtype=np.bool_)
        is_early[[*self._starts]] = True
        lengths = np.array([len(ids) for ids in self.sequences], dtype=np.int64)
        advance(int(lengths[is_early].sum()))
        vectors = self._early if self._starts else None
        if vectors is None:
            vectors = self._encoder.device_vectors(texts.num_tokens)
        table = self._encoder.run(texts, vectors, is_stopped=self._call.is_stopped, advance=advance)
        if not len(texts.shapes):
            self._encoder.session.wait()
        starts = np.empty_like(lengths)
        starts[~is_early] = table.starts
        starts[[*self._starts]] = [*self._starts.values()]
        return TokenEmbeddings(self.sequences, lengths, vectors, starts)

    def _vectors_for(self, rows: int) -> DeviceVectors | None:
        """Return the vectors for a run if it may begin."""
        if sum(not run.is_done for run in self._begun[-MOST_AT_A_TIME:]) == MOST_AT_A_TIME:
            return None
        if self._early is None and self._room:
            try:
                self._early = self._encoder.device_vectors(self._room)
            except OutOfMemoryError:  # there may be enough for fewer, when all texts are here
                self._room = 0
        vectors = self._early
        return None if vectors is None or vectors.num_used + rows > vectors.num_rows else vectors

    def _begin(self, numbers: list[int], vectors: DeviceVectors) -> None:
        """Begin a run of texts that fill it."""
        texts = self._encoder.plan([self.sequences[number] for number in numbers])
        self._starts.update(zip(numbers, (vectors.num_used + texts.starts).tolist(), strict=True))
        place = vectors.take(*texts.shapes[0], is_awaited=False)
        run = partial(_run_early, self._encoder, self._call.is_stopped)  # its error must not refer to the vectors
        self._begun.append(self._encoder.threads.submit(run, (*texts.batch(0), place)))


def _run_early(encoder: Encoder, is_stopped: Event, batch: tuple[NDArray[np.int64], NDArray[np.int64], Place]) -> None:
    if is_stopped.is_set():
        raise ClosedError("The caller went away before all was encoded.")
    encoder.run_batch(*batch)
