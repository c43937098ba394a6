"""Runs that begin while other texts are still tokenised, so that the device need not wait for all of them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.thread_pool import Task
from bertscore_onnx.encoding.device import DeviceArray, DeviceVectors
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.encoding.encoder import Encoder, PaddedTexts
from bertscore_onnx.errors import ClosedError, OutOfMemoryError

MOST_AT_A_TIME = 3
"""Runs that wait or are made at a time; those of other callers come in between."""

ROOM = 1.25
"""The vectors that there is room for, compared to the tokens of a chunk: they are padded."""


class EarlyRuns:
    """The texts of a chunk: those of one width are run as soon as they fill a run, and all others at the end."""

    def __init__(self, encoder: Encoder, max_tokens: int, is_stopped: Event) -> None:
        """Prepare for texts of about `max_tokens` at most; once stopped, nothing is run."""
        self._encoder, self._is_stopped = encoder, is_stopped
        self._room = int(ROOM * max_tokens)
        self._waiting: dict[int, list[int]] = defaultdict(list)  # the numbers of texts, by width
        self._runs: list[Task[Any, None]] = []
        self._vectors: DeviceVectors | None = None
        self._starts: dict[int, int] = {}  # of the texts in runs, in rows
        self._sequences: list[NDArray[np.int64]] = []

    @property
    def num_texts(self) -> int:
        """The number of texts so far."""
        return len(self._sequences)

    def add(self, sequences: Sequence[NDArray[np.int64]]) -> None:
        """Take more texts, (tokens,) each, and begin the runs that are full."""
        buckets, first = self._encoder.buckets, self.num_texts
        self._sequences += sequences
        if buckets is None:
            return
        lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
        for number, width in enumerate(buckets.widen(lengths).tolist(), first):
            self._waiting[width].append(number)
        for width, numbers in self._waiting.items():
            full = buckets.num_rows(width, buckets.max_tokens)
            while len(numbers) >= full and (vectors := self._vectors_for(full * width)) is not None:
                self._begin(numbers[:full], vectors)
                del numbers[:full]

    def plan_others(self) -> PaddedTexts:
        """Plan the runs of all texts that are in none; of all texts, if otherwise there were too little room."""
        others = [ids for number, ids in enumerate(self._sequences) if number not in self._starts]
        texts = self._encoder.plan(others)
        if self._vectors is None or self._vectors.num_used + texts.num_tokens <= self._vectors.num_rows:
            return texts
        self._starts.clear()
        return self._encoder.plan(self._sequences)

    def finish(self, others: PaddedTexts, advance: Callable[[int], object]) -> TokenEmbeddings:
        """Run the other texts too; raise an OutOfMemoryError if the device has too little memory.

        `advance` is called with the numbers of tokens, as in `Encoder.run`.
        """
        for run in self._runs:
            run.result()
        lengths = np.array([len(ids) for ids in self._sequences], dtype=np.int64)
        is_early = np.zeros(len(lengths), dtype=np.bool_)
        is_early[[*self._starts]] = True
        advance(int(lengths[is_early].sum()))
        vectors = self._vectors if self._starts else None
        if vectors is None:
            vectors = self._encoder.device_vectors(others.num_tokens)
        table = self._encoder.run(others, is_stopped=self._is_stopped, advance=advance, vectors=vectors)
        if not len(others.spans):
            self._encoder.session.wait()
        starts = np.empty_like(lengths)
        starts[~is_early] = table.starts
        starts[[*self._starts]] = [*self._starts.values()]
        return TokenEmbeddings(self._sequences, lengths, vectors, starts)

    def _vectors_for(self, rows: int) -> DeviceVectors | None:
        """Return the vectors for a run if it may begin."""
        if sum(not run.is_done for run in self._runs[-MOST_AT_A_TIME:]) == MOST_AT_A_TIME:
            return None
        if self._vectors is None and self._room:
            try:
                self._vectors = self._encoder.device_vectors(self._room)
            except OutOfMemoryError:  # there may be enough for fewer, when all texts are here
                self._room = 0
        vectors = self._vectors
        return None if vectors is None or vectors.num_used + rows > vectors.num_rows else vectors

    def _begin(self, numbers: list[int], vectors: DeviceVectors) -> None:
        """Begin a run of texts that fill it."""
        texts = self._encoder.plan([self._sequences[number] for number in numbers])
        self._starts.update(zip(numbers, (vectors.num_used + texts.starts).tolist(), strict=True))
        place = self._encoder.place(texts, 0, vectors, is_awaited=False)
        self._runs.append(self._encoder.threads.submit(lambda batch: self._run(batch, place), texts.batch(0)))

    def _run(self, batch: tuple[NDArray[np.int64], NDArray[np.int64]], place: DeviceArray) -> None:
        if self._is_stopped.is_set():
            raise ClosedError("The caller went away before all was encoded.")
        self._encoder.run_batch(*batch, place)
