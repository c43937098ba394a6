"""The threads of a batcher: its worker, and the keeper of deadlines.

The worker scores batches.
"""

import logging
import math
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from bertscore_onnx.errors import BertScoreOnnxError, EncodingError, InputError, WorkerError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx.scoring.text_stats import TextStats
from bertscore_onnx_service.batcher.queue import (
    Request,
    RequestQueue,
    SubBatch,
    Wakeup,
    join_batch,
    split_scores,
)

IDLE_SECONDS = 20.0
"""Time without requests after which memory that only large batches need is released."""

_UNDEFINED = "The scorer gave undefined scores. Run `bertscore-onnx inspect` on its bundle."
_log = logging.getLogger(__name__)


def probe(scorer: BERTScorer) -> None:
    """Score one pair, or raise the error that prevents it."""
    try:
        scores, _ = scorer.score_pairs(collect_pairs(["a probe"], ["a probe"]))
    # a table of idf weights may lack these words; it is looked up after the model has run
    except InputError:
        return
    if not is_finite(scores):
        raise EncodingError(_UNDEFINED)


def count_warnings(counts: TextStats, scorer: BERTScorer, queue: RequestQueue) -> None:
    """Count truncated texts, and count and log warnings.

    The warnings are those that a scorer would show its caller.
    """
    queue.count("truncated", counts.truncated)
    for message in counts.messages(scorer.max_length):
        queue.count("warnings")
        _log.debug("%s", message)


def is_finite(scores: Scores) -> bool:
    """Return whether every P, R and F is a number."""
    return all(np.isfinite(part).all() for part in scores)


class Worker(threading.Thread):
    """A thread that scores batches until the queue is closed."""

    def __init__(self, scorer: BERTScorer, queue: RequestQueue, max_seconds: float) -> None:
        """Set up a worker.

        It is stalled once a call of the scorer takes longer than `max_seconds`.
        """
        super().__init__(name="bertscore-onnx-worker", daemon=True)
        self._scorer = scorer
        self._queue = queue
        self._max_seconds = max_seconds
        self._called_at = math.inf  # when its current call of the scorer began, if there is one
        # whether its scorer could not even score a probe, and nothing since
        self._is_broken = False

    @property
    def is_working(self) -> bool:
        """Whether a batch that it took now would be scored."""
        is_stalled = time.monotonic() - self._called_at > self._max_seconds
        return self.is_alive() and not self._is_broken and not is_stalled

    def run(self) -> None:
        """Score batches.

        The requests of a batch that cannot be scored get a WorkerError.
        """
        while batch := self._next_batch():
            try:
                self._answer(batch)
            # SystemExit too: without this thread nothing would be scored
            except BaseException as error:
                self._is_broken = True
                _log.exception("The worker could not score.")
                self._queue.fail(
                    [sub_batch.request for sub_batch in batch], partial(_worker_error, error)
                )
            self._called_at = math.inf

    def _next_batch(self) -> list[SubBatch]:
        batch = self._queue.next_batch(IDLE_SECONDS)
        if batch is None:
            # a scorer that cannot do that fails again when it has to score
            with suppress(BertScoreOnnxError):
                self._scorer.release_memory()
            batch = self._queue.next_batch()
        return batch or []

    def _answer(self, batch: Sequence[SubBatch]) -> None:
        """Score sub-batches together.

        If that fails, one by one, so that each gets its own error or scores.
        """
        self._queue.expire(time.monotonic())
        batch = [sub_batch for sub_batch in batch if sub_batch.request.is_open]
        if not batch:
            return
        try:
            parts = self._score(batch)
        except Exception as error:
            if not isinstance(error, InputError):
                probe(self._scorer)
            if len(batch) == 1:
                self._queue.answer(batch[0].request, error)
                return
        else:
            for sub_batch, scores in zip(batch, parts, strict=True):
                if is_finite(scores):
                    self._queue.answer_sub_batch(sub_batch, scores)
                else:
                    self._queue.answer(sub_batch.request, EncodingError(_UNDEFINED))
            return
        for sub_batch in batch:
            self._answer([sub_batch])

    def _score(self, batch: Sequence[SubBatch]) -> list[Scores]:
        started = time.monotonic()
        self._called_at = started
        pairs = join_batch(batch)
        try:
            scores, counts = self._scorer.score_pairs(pairs)
        finally:
            self._queue.count_batch(batch, pairs, started)
        self._is_broken = False
        count_warnings(counts, self._scorer, self._queue)
        return split_scores(scores, batch)


def _worker_error(cause: BaseException, request: Request) -> WorkerError:
    error = WorkerError(
        f"The worker could not score: {cause!r}. If this lasts, restart the process."
    )
    error.__cause__ = cause
    return error


class DeadlineKeeper(threading.Thread):
    """A thread that answers requests whose deadline passes.

    It sleeps until then.
    """

    def __init__(self, queue: RequestQueue) -> None:
        super().__init__(name="bertscore-onnx-deadlines", daemon=True)
        self._queue = queue
        self._wakeup = Wakeup()
        self._due = math.inf  # when the thread wakes by itself
        self._is_stopped = False

    def run(self) -> None:
        """Answer requests whose deadline has passed, until stopped."""
        while not self._is_stopped:
            self._due = math.inf  # a request that comes from here on wakes the thread
            self._due = self._queue.expire(time.monotonic())
            self._wakeup.wait(self._due - time.monotonic())

    def wake_at(self, deadline: float) -> None:
        """Wake the thread at a deadline, by `time.monotonic()`, or before."""
        if deadline < self._due:
            self._wakeup.set()

    def stop(self) -> None:
        """End the thread."""
        self._is_stopped = True
        self._wakeup.set()
