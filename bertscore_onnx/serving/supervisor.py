"""The supervisor: one thread that keeps deadlines and replaces a worker that broke down or stalled."""

import logging
import math
import threading
import time
from collections.abc import Callable

from bertscore_onnx.errors import WorkerError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.serving.limits import Limits
from bertscore_onnx.serving.queue import Book
from bertscore_onnx.serving.request import Item
from bertscore_onnx.serving.timer import Alarm
from bertscore_onnx.serving.worker import Worker

MAX_STALLED = 4
"""Stalled threads left behind at a time. A thread cannot be ended from outside; where replacements stall as well, the
batcher stays unready until one comes back."""

FIRST_PAUSE = 0.5
LAST_PAUSE = 30.0
"""Seconds before another try where a worker broke down before it ever scored; doubled each time, up to the last."""

PATIENCE = 1.0
"""Seconds that closing waits for each thread."""

_log = logging.getLogger(__name__)


class Supervisor:
    """Sleeps until a deadline passes, or the worker has ended or may have stalled."""

    def __init__(
        self, scorer: BERTScorer, book: Book, limits: Limits, make_scorer: Callable[[], BERTScorer] | None
    ) -> None:
        """Start the worker with a scorer that has been proved, and the supervisor."""
        self.alarm = Alarm()
        """Set it to the deadline of each item."""
        self._book = book
        self._limits = limits
        self._make_scorer = make_scorer
        self._stalled: list[Worker] = []
        self._unproved = 0
        self._is_stopped = False
        self._worker = self._new_worker(scorer, is_proved=True)
        self._start_worker()
        self._thread = threading.Thread(target=self._run, name="bertscore-onnx-supervisor", daemon=True)
        self._thread.start()

    @property
    def is_fit(self) -> bool:
        """Whether an item that is admitted now would be scored."""
        return self._thread.is_alive() and self._worker.is_fit

    def stop(self) -> None:
        """End the supervisor and, once its run is over, the worker; the book dismisses it."""
        self._is_stopped = True
        self.alarm.ring()
        if self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)
        self._worker.join(PATIENCE)

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                self.alarm.set(self._step())
            except BaseException:  # from a caller's callback; the deadlines of the others must be kept
                _log.exception("The supervisor could not do its work; it tries again.")
                self.alarm.set(time.monotonic() + FIRST_PAUSE)
            self.alarm.wait()

    def _step(self) -> float:
        """Do what is due, and return when the next thing is, by `time.monotonic()`."""
        self._book.expire(time.monotonic())
        next_check = self._mind_worker(time.monotonic())
        return min(next_check, self._book.next_deadline())

    def _mind_worker(self, now: float) -> float:
        """Replace a worker that ended or stalled; return when to look at it again."""
        self._stalled = [worker for worker in self._stalled if not self._bury(worker)]
        if self._bury(self._worker):
            due = self._restart_time(self._worker)
            if now < due:
                return due
            self._replace_worker()
        elif self._worker.stalls_at <= now:
            if len(self._stalled) >= MAX_STALLED:
                return math.inf  # the end of a stalled worker rings the alarm
            _log.error("A run has taken more than max_stall=%g s; another worker takes over.", self._limits.max_stall)
            self._stalled.append(self._worker)
            self._replace_worker()
        return self._worker.stalls_at

    def _bury(self, worker: Worker) -> bool:
        """Answer what an ended worker held; say whether it has ended."""
        if worker.ended_at is None:
            return False

        def worker_error(item: Item) -> WorkerError:
            error = WorkerError(f"The worker broke down while it scored: {worker.failure!r}. Another takes its place.")
            error.__cause__ = worker.failure
            return error

        batch, worker.batch = worker.batch, []
        self._book.fail(batch, worker_error)
        return True

    def _restart_time(self, worker: Worker) -> float:
        pause = 0.0 if worker.is_proved else min(FIRST_PAUSE * 2.0**self._unproved, LAST_PAUSE)
        return (worker.ended_at or 0.0) + pause

    def _replace_worker(self) -> None:
        old = self._worker
        self._worker = self._new_worker(old.scorer, is_proved=False)
        self._unproved = 0 if old.is_proved else min(self._unproved + 1, 16)
        self._book.count("restarts")
        self._start_worker()

    def _new_worker(self, scorer: BERTScorer, *, is_proved: bool) -> Worker:
        make_scorer = None if is_proved else self._make_scorer
        return Worker(scorer, self._book, self.alarm, self._limits, is_proved=is_proved, make_scorer=make_scorer)

    def _start_worker(self) -> None:
        """Start the worker; one whose thread cannot be started counts as ended."""
        self._book.employ(self._worker)
        self._worker.start()
