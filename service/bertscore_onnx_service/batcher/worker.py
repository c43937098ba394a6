"""The worker, a thread that scores batches, and the supervisor, which keeps deadlines and replaces broken workers."""

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from bertscore_onnx.concurrency.shared import Shared
from bertscore_onnx.errors import BertScoreOnnxError, EncodingError, InputError, WorkerError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx.scoring.text_stats import TextStats
from bertscore_onnx_service.batcher.queue import Request, RequestQueue, SubBatch, Wakeup, join_batch, split_scores

IDLE_SECONDS = 20.0
"""Time without requests after which memory that only large batches need is released."""

MAX_STALLED = 2
"""Stalled threads left behind at a time: none can be ended from outside. If more stall, the batcher is not ready."""

FIRST_PAUSE, LAST_PAUSE = 0.5, 30.0
"""Seconds between two tries if a worker breaks down before it ever scored; doubled each time, up to the last."""

JOIN_SECONDS = 1.0
"""Seconds that closing waits for each thread."""

_UNDEFINED = "The scorer gave undefined scores. Run `bertscore-onnx inspect` on its bundle."
_log = logging.getLogger(__name__)


def probe(scorer: BERTScorer) -> None:
    """Score one pair, or raise the error that prevents it."""
    try:
        scores, _ = scorer.score_pairs(collect_pairs(["a probe"], ["a probe"]))
    except InputError:  # a table of idf weights may lack these words; it is looked up after the model has run
        return
    if not is_finite(scores):
        raise EncodingError(_UNDEFINED)


def count_warnings(counts: TextStats, scorer: BERTScorer, queue: RequestQueue) -> None:
    """Count truncated texts, and count and log the warnings that a scorer would show its caller."""
    queue.count("truncated", counts.truncated)
    for message in counts.messages(scorer.max_length):
        queue.count("warnings")
        _log.debug("%s", message)


def is_finite(scores: Scores) -> bool:
    """Return whether every P, R and F is a number."""
    return all(np.isfinite(part).all() for part in scores)


class Worker(threading.Thread):
    """A thread that scores batches until it is dismissed, breaks down, or stalls; the supervisor watches it."""

    def __init__(self, supervisor: "Supervisor", shared: Shared[BERTScorer], *, has_scored: bool) -> None:
        """Set up a worker, which acquires the scorer in its thread; unless it `has_scored`, it scores a probe first."""
        super().__init__(name="bertscore-onnx-worker", daemon=True)
        self._supervisor, self._queue = supervisor, supervisor.queue
        self.shared, self.has_scored = shared, has_scored
        self.batch: list[SubBatch] = []  # some of whose requests may be answered already
        self.failure: BaseException | None = None
        self.stalls_at = math.inf  # when its current run, if any, will have taken too long
        self._is_over = False

    @property
    def has_ended(self) -> bool:
        """Whether it scores no more, or its thread could not be started."""
        return self._is_over or not self.is_alive()

    def run(self) -> None:
        """Score batches; the supervisor answers for any error."""
        try:
            self._start_clock()
            scorer = self.shared.acquire()
            try:
                if not self.has_scored:
                    scorer.warm_up()
                    probe(scorer)
                    self.has_scored = True
                self.stalls_at = math.inf
                while batch := self._next_batch(scorer):
                    self.batch = batch
                    self._answer(scorer, batch)
                    self.batch = []
                    self.stalls_at = math.inf
            finally:
                self.shared.release(scorer)
        except BaseException as error:  # SystemExit too: the supervisor answers the rest and starts another worker
            self.failure = error
            _log.exception("The worker broke down.")
        finally:
            self._is_over = True
            self._supervisor.wake_at(-math.inf)

    def _next_batch(self, scorer: BERTScorer) -> list[SubBatch]:
        batch = self._queue.next_batch(self, IDLE_SECONDS)
        if batch is None:
            with suppress(BertScoreOnnxError):  # a scorer that cannot do that fails again when it has to score
                scorer.release_memory()
            batch = self._queue.next_batch(self)
        return batch or []

    def _answer(self, scorer: BERTScorer, batch: Sequence[SubBatch]) -> None:
        """Score sub-batches together; if that fails, one by one, so that each gets its own error or scores."""
        self._queue.expire(time.monotonic())
        batch = [sub_batch for sub_batch in batch if not sub_batch.request.future.done()]
        if not batch:
            return
        try:
            parts = self._score(scorer, batch)
        except Exception as error:
            if not isinstance(error, InputError):
                probe(scorer)  # a scorer that cannot score at all ends this worker
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
            self._answer(scorer, [sub_batch])

    def _score(self, scorer: BERTScorer, batch: Sequence[SubBatch]) -> list[Scores]:
        self._start_clock()
        started = time.monotonic()
        pairs = join_batch(batch)
        try:
            scores, counts = scorer.score_pairs(pairs)
        finally:
            self._queue.count_batch(batch, pairs, started)
        count_warnings(counts, scorer, self._queue)
        return split_scores(scores, batch)

    def _start_clock(self) -> None:
        self.stalls_at = time.monotonic() + self._supervisor.max_stall
        self._supervisor.wake_at(self.stalls_at)


class Supervisor:
    """A thread that sleeps until a deadline passes, or the worker has ended or may have stalled."""

    def __init__(
        self, scorer: BERTScorer, queue: RequestQueue, max_stall: float, make_scorer: Callable[[], BERTScorer] | None
    ) -> None:
        """Start the supervisor and a worker; the scorer has scored a probe."""
        self._wakeup, self._due = Wakeup(), math.inf
        self.queue, self.max_stall, self._make_scorer = queue, max_stall, make_scorer
        self._signature = scorer.signature
        self._first = Shared(lambda: scorer)
        self._stalled: list[Worker] = []
        self._pause, self._next_start = FIRST_PAUSE / 2, 0.0
        self._is_stopped = False
        self._start_worker(self._first, has_scored=True)
        self._thread = threading.Thread(target=self._run, name="bertscore-onnx-supervisor", daemon=True)
        self._thread.start()

    @property
    def is_healthy(self) -> bool:
        """Whether a request that is admitted now would be scored."""
        worker = self._worker
        is_worker_healthy = worker.has_scored and not worker.has_ended and time.monotonic() < worker.stalls_at
        return is_worker_healthy and self._thread.is_alive()

    def stop(self) -> None:
        """End the supervisor and, after its current run, the worker; the queue has dismissed it."""
        self._is_stopped = True
        self._wakeup.set()
        for thread in (self._thread, self._worker):
            if thread is not threading.current_thread():  # that of a callback
                thread.join(JOIN_SECONDS)
        if self._worker.shared is not self._first:  # which is the caller's to close
            self._worker.shared.close()

    def wake_at(self, at: float) -> None:
        """Wake the supervisor at a deadline, by `time.monotonic()`, or before."""
        if at < self._due:
            self._wakeup.set()

    def _run(self) -> None:
        while not self._is_stopped:
            self._due = math.inf  # what changes from here on wakes it
            try:
                next_deadline = self.queue.expire(time.monotonic())
                due = min(next_deadline, self._check_worker(time.monotonic()))
            except BaseException:  # from a caller's callback; the deadlines of the others must be kept
                _log.exception("The supervisor could not do its work; it tries again.")
                due = time.monotonic() + FIRST_PAUSE
            self._due = due
            self._wakeup.wait(due - time.monotonic())

    def _check_worker(self, now: float) -> float:
        """Replace a worker that ended or stalled; return when to check it again."""
        self._stalled = [worker for worker in self._stalled if not self._collect(worker)]
        if self._collect(self._worker):
            if self._worker.has_scored:
                self._pause = FIRST_PAUSE / 2
            elif now < self._next_start:
                return self._next_start
            self._replace_worker(fresh_scorer=True)
        elif self._worker.stalls_at <= now:
            if len(self._stalled) >= MAX_STALLED:
                return math.inf  # the end of a stalled worker wakes the supervisor
            _log.error("A run has taken more than max_stall=%g s; another worker takes over.", self.max_stall)
            self._stalled.append(self._worker)
            self._replace_worker(fresh_scorer=not self._worker.has_scored)  # most runs that stall are only long
        return self._worker.stalls_at

    def _collect(self, worker: Worker) -> bool:
        """Fail the requests of a worker that has ended; return whether it has."""
        if not worker.has_ended:
            return False

        def worker_error(request: Request) -> WorkerError:
            error = WorkerError(f"The worker broke down while it scored: {worker.failure!r}. Another takes its place.")
            error.__cause__ = worker.failure
            return error

        batch, worker.batch = worker.batch, []
        self.queue.fail({sub_batch.request: None for sub_batch in batch}, worker_error)
        return True

    def _replace_worker(self, *, fresh_scorer: bool) -> None:
        """Start another worker, with a fresh scorer if it needs one and there is a way to make one."""
        shared = self._worker.shared
        if fresh_scorer and self._make_scorer is not None:
            shared.close()  # before another is made, since a device may not have memory for two
            shared = Shared(partial(self._fresh_scorer, self._make_scorer))
        self._pause = min(2 * self._pause, LAST_PAUSE)
        self._next_start = time.monotonic() + self._pause
        self.queue.count("restarts")
        self._start_worker(shared, has_scored=False)

    def _fresh_scorer(self, make_scorer: Callable[[], BERTScorer]) -> BERTScorer:
        """Make a scorer with the signature of the replaced scorer."""
        fresh = make_scorer()
        if fresh.signature != self._signature:
            fresh.close()
            raise WorkerError(
                f"make_scorer returned a scorer with another signature: {fresh.signature}, expected {self._signature}."
            )
        return fresh

    def _start_worker(self, shared: Shared[BERTScorer], *, has_scored: bool) -> None:
        """Start a worker; if its thread cannot be started, it counts as ended."""
        self._worker = Worker(self, shared, has_scored=has_scored)
        self.queue.assign(self._worker)
        self._worker.start()
