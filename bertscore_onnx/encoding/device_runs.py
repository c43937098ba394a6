"""The runs of texts on a device, of which some begin while other texts are still tokenised."""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.thread_pool import Task
from bertscore_onnx.encoding.device import DeviceVectors
from bertscore_onnx.encoding.encoder import Call, Encoder, HostRuns, TokenEmbeddings
from bertscore_onnx.encoding.session import Place
from bertscore_onnx.errors import ClosedError, OutOfMemoryError

_log = logging.getLogger(__name__)

MOST_AT_A_TIME = 3
"""Runs that wait or are made at a time; those of other callers come in between."""

ROOM = 1.25
"""The vectors that there is room for, compared to the tokens of a chunk: they are padded."""


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
            vectors = self._device_vectors(texts.num_tokens)
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
                self._early = self._device_vectors(self._room)
            except OutOfMemoryError:  # there may be enough for fewer, when all texts are here
                self._room = 0
        vectors = self._early
        return None if vectors is None or vectors.num_used + rows > vectors.num_rows else vectors

    def _device_vectors(self, rows: int) -> DeviceVectors:
        return DeviceVectors(self._encoder.session.provider, rows, *self._encoder.layers)

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
