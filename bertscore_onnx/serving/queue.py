"""The queue of a batcher: every request from its admission to its answer.

The first to claim a request answers it: the worker with its scores, the supervisor at its deadline, or a batcher that
closes; the others come too late and do nothing. All of it is behind one lock, and futures are answered outside of it,
since that runs their callers' callbacks.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from enum import Enum

from bertscore_onnx.errors import ClosedError, DrainingError, QueueFullError
from bertscore_onnx.scores import Scores
from bertscore_onnx.serving.request import Request
from bertscore_onnx.serving.stats import BatcherStats, StatsCounter


class _Phase(Enum):
    OPEN = "open"
    DRAINING = "draining"
    CLOSED = "closed"


class RequestQueue:
    """Admits requests, hands them to the worker in batches, and sees that each is answered once."""

    def __init__(self, max_waiting: int) -> None:
        # A Condition's own lock is reentrant, so that a signal handler may drain while the main thread submits.
        self._changed = threading.Condition()
        self._phase = _Phase.OPEN
        self._max_waiting = max_waiting
        self._waiting: dict[Future[Scores], Request] = {}
        self._waiting_tokens = 0
        self._running: dict[Future[Scores], Request] = {}
        self._being_answered = 0
        self._worker: object = None
        self._last_size = 0
        self._last_scored = 0.0
        self._stats = StatsCounter()

    @property
    def is_open(self) -> bool:
        """Whether requests are admitted."""
        return self._phase is _Phase.OPEN

    @property
    def depth(self) -> int:
        """How many requests are waiting."""
        return len(self._waiting)

    def check_room(self) -> None:
        """Refuse one request where there is no room for it.

        Raises:
            QueueFullError: as many as allowed are waiting.
        """
        with self._changed:
            if len(self._waiting) < self._max_waiting:
                return
            self._stats.count("rejected")
            retry_after = self._waiting_tokens * self._stats.seconds_per_token or 1.0
            raise QueueFullError(
                f"{len(self._waiting)} requests are waiting, as many as max_queue allows. Try again in about "
                f"{retry_after:.2g} s.",
                retry_after=retry_after,
            )

    def admit(self, request: Request) -> None:
        """Let a request wait.

        Raises:
            QueueFullError: as many as allowed are waiting.
            DrainingError, ClosedError: nothing is admitted any more.
        """
        request.future.add_done_callback(self._forget_cancelled)
        with self._changed:
            if self._phase is _Phase.DRAINING:
                raise DrainingError("The batcher is draining: it finishes what it has and admits nothing more.")
            if self._phase is _Phase.CLOSED:
                raise ClosedError("The batcher was closed. Make a new one.")
            self.check_room()
            self._stats.count("submitted")
            self._waiting[request.future] = request
            self._waiting_tokens += request.padded_tokens
            self._changed.notify_all()

    def assign(self, worker: object) -> None:
        """Hand batches to this worker and to no other from now on."""
        with self._changed:
            if self._phase is not _Phase.CLOSED:
                self._worker = worker
                self._changed.notify_all()

    def take(self, worker: object, *, max_tokens: int, max_delay: float) -> list[Request]:
        """Wait for requests and hand them over as a batch.

        Where batch-mates are likely, because the last batch had several requests or this first request came while it
        was being scored, wait up to `max_delay` for more. A request that comes to an idle batcher goes at once.

        Args:
            worker: who asks.
            max_tokens: the most padded tokens in a batch; a larger request makes a batch of its own.
            max_delay: in seconds.

        Returns:
            The batch, in the order of submission; empty where the worker is not assigned any more.
        """

        def is_dismissed() -> bool:
            return self._worker is not worker

        def is_enough() -> bool:
            return is_dismissed() or not self.is_open or self._waiting_tokens >= max_tokens

        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or is_dismissed())
                if self._waiting and self._should_wait():
                    self._changed.wait_for(is_enough, max_delay)
                if is_dismissed():
                    return []
                if batch := self._next_batch(max_tokens):
                    self._last_size = len(batch)
                    return batch

    def count_batch(self, requests: Sequence[Request], started: float) -> None:
        """Count a call of the scorer that is just over."""
        with self._changed:
            self._last_scored = time.monotonic()
            self._stats.count_batch(requests, started, self._last_scored)

    def count(self, name: str) -> None:
        """Count a restart or a warning."""
        with self._changed:
            self._stats.count(name)

    def answer(self, request: Request, answer: Scores | BaseException) -> None:
        """Give a request its scores or its error; do nothing where it has been answered or cancelled."""
        with self._changed:
            if not self._claim(request.future):
                return
            self._stats.count_answer(answer)
            self._being_answered += 1
        try:
            if isinstance(answer, BaseException):
                request.future.set_exception(answer)
            else:
                request.future.set_result(answer)
        finally:
            with self._changed:
                self._being_answered -= 1
                self._changed.notify_all()

    def fail(self, requests: Iterable[Request], make_error: Callable[[Request], Exception]) -> None:
        """Give every request an error of its own, even where a caller's callback raises; raise that at the end."""
        raised = None
        for request in requests:
            try:
                self.answer(request, make_error(request))
            except BaseException as error:  # SystemExit in a callback must not cost the others their answer
                raised = error
        if raised is not None:
            raise raised

    def expire(self, now: float) -> None:
        """Give every request whose deadline has passed a DeadlineError."""
        with self._changed:
            late = [request for request in self._unanswered() if request.deadline <= now]
        self.fail(late, Request.deadline_error)

    def next_deadline(self) -> float:
        """Return the earliest deadline of all requests, by `time.monotonic()`; infinity where there are none."""
        with self._changed:
            return min((request.deadline for request in self._unanswered()), default=math.inf)

    def drain(self, timeout: float) -> bool:
        """Admit nothing more, wait until all is answered, and fail what is not after `timeout` seconds.

        Returns:
            Whether nothing had to be failed.
        """
        with self._changed:
            if self._phase is _Phase.OPEN:
                self._phase = _Phase.DRAINING
                self._changed.notify_all()
            self._changed.wait_for(lambda: not (self._unanswered() or self._being_answered), timeout)
            left = self._unanswered()
        self.fail(left, lambda request: ClosedError("The batcher was closed before this was scored. Make a new one."))
        return not left

    def close(self) -> None:
        """Dismiss the worker, for good."""
        with self._changed:
            self._phase = _Phase.CLOSED
            self._worker = None
            self._changed.notify_all()

    def stats(self) -> BatcherStats:
        """Return all counts as they are at this moment."""
        with self._changed:
            return self._stats.stats(waiting=len(self._waiting), in_flight=len(self._running))

    def _should_wait(self) -> bool:
        first = next(iter(self._waiting.values()))
        return self._last_size > 1 or first.submitted < self._last_scored

    def _next_batch(self, max_tokens: int) -> list[Request]:
        batch: list[Request] = []
        room = max_tokens
        for future, request in [*self._waiting.items()]:
            if batch and request.padded_tokens > room:
                break
            if self._claim(future):
                self._running[future] = request
                batch.append(request)
                room -= request.padded_tokens
        return batch

    def _claim(self, future: "Future[Scores]") -> bool:
        """Take a request out of the queue; say whether it was there and not cancelled."""
        if self._running.pop(future, None) is not None:
            return True
        request = self._waiting.pop(future, None)
        if request is None:
            return False
        self._waiting_tokens -= request.padded_tokens
        if future.set_running_or_notify_cancel():
            return True
        self._stats.count("cancelled")
        return False

    def _forget_cancelled(self, future: "Future[Scores]") -> None:
        """Make room as soon as a waiting request is cancelled."""
        if future.cancelled():
            with self._changed:
                self._claim(future)
                self._changed.notify_all()

    def _unanswered(self) -> list[Request]:
        return [*self._running.values(), *self._waiting.values()]
