"""The supervisor: one thread that keeps deadlines and replaces a worker that broke down or stalled."""

import logging
import math
import threading
import time
from collections.abc import Callable

from bertscore_onnx.concurrency.timer import Timer
from bertscore_onnx.errors import WorkerError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.serving.limits import BatcherLimits
from bertscore_onnx.serving.queue import RequestQueue
from bertscore_onnx.serving.request import Request
from bertscore_onnx.serving.worker import SharedScorer, Worker

MAX_STALLED = 2
"""Stalled threads left behind at a time. A thread cannot be ended from outside; where replacements stall as well, the
batcher stays unready until one comes back, and no more than two scorers are alive."""

FIRST_PAUSE = 0.5
LAST_PAUSE = 30.0
"""Seconds before another try where a worker broke down before it ever scored; doubled each time, up to the last."""

JOIN_SECONDS = 1.0
"""Seconds that closing waits for each thread."""

_log = logging.getLogger(__name__)


class Supervisor:
    """Sleeps until a deadline passes, or the worker has ended or may have stalled."""

    def __init__(
        self,
        scorer: BERTScorer,
        queue: RequestQueue,
        limits: BatcherLimits,
        make_scorer: Callable[[], BERTScorer] | None,
    ) -> None:
        """Start the worker with a scorer that has scored a probe, and the supervisor."""
        self.timer: Timer = Timer()
        """Set it to the deadline of each request."""
        self._queue = queue
        self._limits = limits
        self._make_scorer = make_scorer
        self._first = SharedScorer(scorer)
        self._stalled: list[Worker] = []
        self._failed_starts = 0
        self._is_stopped = False
        self._worker = self._new_worker(self._first, has_scored=True)
        self._start_worker()
        self._thread = threading.Thread(target=self._run, name="bertscore-onnx-supervisor", daemon=True)
        self._thread.start()

    @property
    def is_healthy(self) -> bool:
        """Whether a request that is admitted now would be scored."""
        return self._thread.is_alive() and self._worker.is_healthy

    def stop(self) -> None:
        """End the supervisor and, once its run is over, the worker; the queue dismisses it."""
        self._is_stopped = True
        self.timer.fire()
        if self._thread is not threading.current_thread():
            self._thread.join(JOIN_SECONDS)
        self._worker.join(JOIN_SECONDS)
        if self._worker.shared is not self._first:
            self._worker.shared.give_up()

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                self.timer.set(self._step())
            except BaseException:  # from a caller's callback; the deadlines of the others must be kept
                _log.exception("The supervisor could not do its work; it tries again.")
                self.timer.set(time.monotonic() + FIRST_PAUSE)
            self.timer.wait()

    def _step(self) -> float:
        """Do what is due, and return when the next thing is, by `time.monotonic()`."""
        self._queue.expire(time.monotonic())
        next_check = self._check_worker(time.monotonic())
        return min(next_check, self._queue.next_deadline())

    def _check_worker(self, now: float) -> float:
        """Replace a worker that ended or stalled; return when to look at it again."""
        self._stalled = [worker for worker in self._stalled if not self._collect(worker)]
        if self._collect(self._worker):
            due = self._restart_time(self._worker)
            if now < due:
                return due
            self._replace_worker(fresh_scorer=True)
        elif self._worker.stalls_at <= now:
            if len(self._stalled) >= MAX_STALLED:
                return math.inf  # the end of a stalled worker fires the timer
            _log.error("A run has taken more than max_stall=%g s; another worker takes over.", self._limits.max_stall)
            self._stalled.append(self._worker)
            self._replace_worker(fresh_scorer=not self._worker.has_scored)  # most runs that stall are only long
        return self._worker.stalls_at

    def _collect(self, worker: Worker) -> bool:
        """Answer what an ended worker held; say whether it has ended."""
        if worker.ended_at is None:
            return False

        def worker_error(request: Request) -> WorkerError:
            error = WorkerError(f"The worker broke down while it scored: {worker.failure!r}. Another takes its place.")
            error.__cause__ = worker.failure
            return error

        batch, worker.batch = worker.batch, []
        self._queue.fail({piece.request.future: piece.request for piece in batch}.values(), worker_error)
        return True

    def _restart_time(self, worker: Worker) -> float:
        pause = 0.0 if worker.has_scored else min(FIRST_PAUSE * 2.0**self._failed_starts, LAST_PAUSE)
        return (worker.ended_at or 0.0) + pause

    def _replace_worker(self, *, fresh_scorer: bool) -> None:
        """Start another worker, with another scorer where there is a way to make one and it is asked for."""
        old = self._worker
        make_scorer = self._make_scorer if fresh_scorer else None
        if make_scorer is not None:
            old.shared.give_up()  # before another is made, since a device may not have room for two
        self._worker = self._new_worker(old.shared, has_scored=False, make_scorer=make_scorer)
        self._failed_starts = 0 if old.has_scored else min(self._failed_starts + 1, 16)
        self._queue.count("restarts")
        self._start_worker()

    def _new_worker(
        self, shared: SharedScorer, *, has_scored: bool, make_scorer: Callable[[], BERTScorer] | None = None
    ) -> Worker:
        return Worker(shared, self._queue, self.timer, self._limits, has_scored=has_scored, make_scorer=make_scorer)

    def _start_worker(self) -> None:
        """Start the worker; one whose thread cannot be started counts as ended."""
        self._queue.assign(self._worker)
        self._worker.start()
