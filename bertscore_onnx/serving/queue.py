"""The queue of a batcher: every request from its admission to its answer.

The first to claim a request answers it: the worker with its scores, the supervisor at its deadline, or a batcher that
closes; the others come too late and do nothing. A request waits until a batch takes a piece of it, and runs from then
on. All of it is behind one lock, and futures are answered outside of it, since that runs their callers' callbacks.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from enum import Enum

from bertscore_onnx.errors import ClosedError, DrainingError, QueueFullError
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.serving.request import BatcherLimits, BatchSize, Piece, Request, next_pieces
from bertscore_onnx.serving.stats import BatcherStats, StatsCounter


class _Phase(Enum):
    OPEN = "open"
    DRAINING = "draining"
    CLOSED = "closed"


class RequestQueue:
    """Admits requests, hands them to the worker in batches, and sees that each is answered once."""

    def __init__(self, limits: BatcherLimits, batch_size: BatchSize) -> None:
        # A Condition's own lock is reentrant, so that a signal handler may drain while the main thread submits.
        self._changed = threading.Condition()
        self._phase = _Phase.OPEN
        self._limits = limits
        self._batch_size = batch_size
        self._waiting: dict[Future[Scores], Request] = {}
        self._tokens_left = 0
        self._running: dict[Future[Scores], Request] = {}
        self._being_answered = 0
        self._worker: object = None
        self._oldest_first = False
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
        """Refuse one request where it would not be admitted.

        Raises:
            QueueFullError: as many as allowed are waiting.
            DrainingError, ClosedError: nothing is admitted any more.
        """
        with self._changed:
            if self._phase is _Phase.DRAINING:
                raise DrainingError("The batcher is draining: it finishes what it has and admits nothing more.")
            if self._phase is _Phase.CLOSED:
                raise ClosedError("The batcher was closed. Make a new one.")
            if len(self._waiting) < self._limits.max_queue:
                return
            self._stats.count("rejected")
            retry_after = self._tokens_left * self._stats.seconds_per_token or 1.0
            raise QueueFullError(
                f"{len(self._waiting)} requests are waiting, as many as max_queue allows. Try again in about "
                f"{retry_after:.2g} s.",
                retry_after=retry_after,
            )

    def admit(self, request: Request) -> None:
        """Let a request wait.

        Raises:
            QueueFullError, DrainingError, ClosedError: as `check_room` says.
        """
        request.future.add_done_callback(self._forget_cancelled)
        with self._changed:
            self.check_room()
            self._stats.count("submitted")
            self._waiting[request.future] = request
            self._tokens_left += request.tokens_left
            self._changed.notify_all()

    def assign(self, worker: object) -> None:
        """Hand batches to this worker and to no other from now on."""
        with self._changed:
            if self._phase is not _Phase.CLOSED:
                self._worker = worker
                self._changed.notify_all()

    def await_requests(self, worker: object, timeout: float) -> bool:
        """Wait until there is something to take or the worker is not assigned any more; say whether that came about."""
        with self._changed:
            return self._changed.wait_for(lambda: self._has_more() or self._worker is not worker, timeout)

    def take(self, worker: object) -> list[Piece]:
        """Wait for requests and hand over a batch of their pieces.

        Where batch-mates are likely, because the last batch had several requests or this first request came while it
        was being scored, wait up to `max_delay` for more. A request that comes to an idle batcher goes at once.

        Args:
            worker: who asks.

        Returns:
            The batch; empty where the worker is not assigned any more.
        """

        def is_dismissed() -> bool:
            return self._worker is not worker

        def is_enough() -> bool:
            return is_dismissed() or not self.is_open or self._tokens_left >= self._batch_size.tokens

        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._has_more() or is_dismissed())
                if self._should_wait():
                    self._changed.wait_for(is_enough, self._limits.max_delay)
                if is_dismissed():
                    return []
                if batch := self._next_batch():
                    self._last_size = len({piece.request.future for piece in batch})
                    return batch

    def count_batch(self, pieces: Sequence[Piece], pairs: Pairs, started: float) -> None:
        """Count a call of the scorer that is just over."""
        with self._changed:
            self._last_scored = time.monotonic()
            tokens = self._stats.count_batch(pieces, pairs, started, self._last_scored)
            self._batch_size.learn(tokens, self._last_scored - started)

    def answer_piece(self, piece: Piece, scores: Scores) -> None:
        """Give a request its scores, where this was the last of it that was to be scored."""
        with self._changed:
            complete = piece.request.join(piece, scores)
        if complete is not None:
            self.answer(piece.request, complete)

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

    def _has_more(self) -> bool:
        return bool(self._waiting) or any(request.has_more for request in self._running.values())

    def _should_wait(self) -> bool:
        first = next((request for request in self._unanswered() if request.has_more), None)
        return first is not None and (self._last_size > 1 or first.submitted < self._last_scored)

    def _next_batch(self) -> list[Piece]:
        for future in [future for future in self._waiting if future.cancelled()]:
            self._claim(future)
        self._oldest_first = not self._oldest_first
        batch = next_pieces(self._unanswered(), self._batch_size.tokens, oldest_first=self._oldest_first)
        self._tokens_left -= sum(piece.tokens for piece in batch)
        return [piece for piece in batch if self._begin(piece.request)]

    def _begin(self, request: Request) -> bool:
        """Let a request run of which a batch takes a piece; say whether it was not cancelled."""
        if request.future not in self._running and self._claim(request.future):
            self._running[request.future] = request
            self._tokens_left += request.tokens_left
        return request.future in self._running

    def _claim(self, future: "Future[Scores]") -> bool:
        """Take a request out of the queue; say whether it was there and not cancelled."""
        is_running = future in self._running
        request = self._running.pop(future, None) or self._waiting.pop(future, None)
        if request is None:
            return False
        self._tokens_left -= request.tokens_left
        if is_running or future.set_running_or_notify_cancel():
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
