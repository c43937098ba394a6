"""The worker: one thread that takes batches, scores them and answers their requests."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from bertscore_onnx.concurrency.timer import Timer
from bertscore_onnx.errors import BertScoreOnnxError, EncodingError, InputError, WorkerError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import TextStats, collect_pairs
from bertscore_onnx.serving.queue import RequestQueue
from bertscore_onnx.serving.request import BatcherLimits, Piece, Request, is_finite, join_pieces, split_scores

IDLE_SECONDS = 20.0
"""Without requests, after which memory that only large batches need is given back."""

PROBE_TEXT = "a probe"
TIMED_TEXT = "one two three four five six seven eight nine ten " * 20

_UNDEFINED = "The scorer gave undefined scores. Run `bertscore-onnx inspect` on its bundle."

_log = logging.getLogger(__name__)


def probe(scorer: BERTScorer) -> None:
    """Score one pair, or raise what keeps the scorer from it."""
    try:
        scores, _ = scorer.score_pairs(collect_pairs([PROBE_TEXT], [PROBE_TEXT]))
    except InputError:  # a table of idf weights may lack these words; it is looked at after the model has run
        return
    if not is_finite(scores):
        raise EncodingError("The scorer gives a probe undefined scores. Run `bertscore-onnx inspect` on its bundle.")


def time_batch(scorer: BERTScorer) -> tuple[int, float]:
    """Score a small batch; return its tokens, and the seconds it took."""
    pairs, _ = scorer.tokenise(collect_pairs([TIMED_TEXT], [f"Again {TIMED_TEXT}"]))
    begun = time.monotonic()
    with suppress(InputError):  # as in `probe`
        scorer.score_pairs(pairs)
    return sum(map(len, (pairs.token_ids or {}).values())), time.monotonic() - begun


def count_warnings(counts: TextStats, scorer: BERTScorer, queue: RequestQueue) -> None:
    """Count and log what a caller should know of texts."""
    for message in counts.messages(scorer.max_length):
        queue.count("warnings")
        _log.debug("%s", message)


class SharedScorer:
    """A scorer and the workers that use it; once it is given up, the last of them closes it."""

    def __init__(self, scorer: BERTScorer) -> None:
        """Take a scorer that nobody uses yet."""
        self.scorer = scorer
        self._users = 0
        self._is_given_up = False
        self._changing = threading.Lock()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Be one of its users."""
        self._change(users=1)
        try:
            yield
        finally:
            self._change(users=-1)

    def give_up(self) -> None:
        """Close it as soon as nobody uses it."""
        self._change(gives_up=True)

    def _change(self, *, users: int = 0, gives_up: bool = False) -> None:
        with self._changing:
            self._users += users
            self._is_given_up |= gives_up
            is_over = self._is_given_up and not self._users
        if is_over:
            self.scorer.close()


class Worker:
    """A thread that scores batches until it is dismissed, breaks down, or stalls; the supervisor watches it."""

    def __init__(
        self,
        shared: SharedScorer,
        queue: RequestQueue,
        timer: Timer,
        limits: BatcherLimits,
        *,
        has_scored: bool,
        make_scorer: Callable[[], BERTScorer] | None = None,
    ) -> None:
        """Set up a worker; `start` starts it.

        Args:
            shared: the scorer.
            queue: where the batches come from and the answers go.
            timer: wakes the supervisor when this worker has ended or may have stalled.
            limits: those of the batcher.
            has_scored: whether the scorer has just scored; if not, the worker probes it before it takes a batch.
            make_scorer: makes a scorer to use instead, with the same signature.
        """
        self.shared: SharedScorer = shared
        """The scorer in use."""
        self.batch: list[Piece] = []
        """What it holds; not all of the requests need be unanswered."""
        self.has_scored: bool = has_scored
        """Whether it has ever scored."""
        self.failure: BaseException | None = None
        """What it broke down with."""
        self._queue = queue
        self._timer = timer
        self._limits = limits
        self._make_scorer = make_scorer
        self._busy_since = math.inf
        self._ended_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="bertscore-onnx-worker", daemon=True)

    @property
    def scorer(self) -> BERTScorer:
        """The scorer in use."""
        return self.shared.scorer

    @property
    def ended_at(self) -> float | None:
        """When its thread was found to have ended, by `time.monotonic()`."""
        if self._ended_at is None and not self._thread.is_alive():
            self._ended_at = time.monotonic()
        return self._ended_at

    @property
    def stalls_at(self) -> float:
        """When the run in progress will have taken too long, by `time.monotonic()`; infinity where there is none."""
        return self._busy_since + self._limits.max_stall

    @property
    def is_healthy(self) -> bool:
        """Whether it has scored, is alive, and is not stalled."""
        return self.has_scored and self.ended_at is None and time.monotonic() < self.stalls_at

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait for the thread to end, unless it is the caller's own."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._start_clock()
            if self._make_scorer is not None:
                self.shared = SharedScorer(self._fresh_scorer(self._make_scorer))
            with self.shared.used():
                self._prepare()
                self._serve()
        except BaseException as error:  # SystemExit too: the supervisor answers what is left and takes a new worker
            self.failure = error
            _log.exception("The worker broke down.")
        finally:
            self._ended_at = time.monotonic()
            self._timer.fire()

    def _fresh_scorer(self, make_scorer: Callable[[], BERTScorer]) -> BERTScorer:
        """Make a scorer with the signature of the one that is replaced."""
        fresh = make_scorer()
        if fresh.signature != self.scorer.signature:
            fresh.close()
            raise WorkerError(
                f"make_scorer gave a scorer that scores otherwise than the first: {fresh.signature}, expected "
                f"{self.scorer.signature}."
            )
        return fresh

    def _prepare(self) -> None:
        if not self.has_scored:
            probe(self.scorer)
            self.has_scored = True
        self._stop_clock()

    def _serve(self) -> None:
        while batch := self._next_batch():
            self.batch = batch
            self._answer(batch)
            self.batch = []
            self._stop_clock()

    def _next_batch(self) -> list[Piece]:
        if not self._queue.await_requests(self, IDLE_SECONDS):
            with suppress(BertScoreOnnxError):  # a scorer that cannot do that tells when it is to score
                self.scorer.release_memory()
        return self._queue.take(self)

    def _answer(self, batch: Sequence[Piece]) -> None:
        """Score pieces together; where that fails, one by one, so that none fails for the fault of another."""
        pieces = [piece for piece in batch if not self._is_late(piece.request)]
        if not pieces:
            return
        try:
            parts = self._score(pieces)
        except Exception as error:
            if not isinstance(error, InputError):
                probe(self.scorer)  # a scorer that cannot score at all ends this worker
            if len(pieces) == 1:
                self._queue.answer(pieces[0].request, error)
                return
        else:
            for piece, part in zip(pieces, parts, strict=True):
                if is_finite(part):
                    self._queue.answer_piece(piece, part)
                else:
                    self._queue.answer(piece.request, EncodingError(_UNDEFINED))
            return
        for piece in pieces:
            self._answer([piece])

    def _score(self, pieces: Sequence[Piece]) -> list[Scores]:
        self._start_clock()
        started = time.monotonic()
        pairs = join_pieces(pieces)
        try:
            scores, counts = self.scorer.score_pairs(pairs)
        finally:
            self._queue.count_batch(pieces, pairs, started)
        count_warnings(counts, self.scorer, self._queue)
        return split_scores(scores, pieces)

    def _is_late(self, request: Request) -> bool:
        if request.deadline > time.monotonic():
            return False
        self._queue.answer(request, request.deadline_error())
        return True

    def _start_clock(self) -> None:
        self._busy_since = time.monotonic()
        self._timer.set(self.stalls_at)

    def _stop_clock(self) -> None:
        self._busy_since = math.inf


# The supervisor: one thread that keeps deadlines and replaces a worker that broke down or stalled.


MAX_STALLED = 2
"""Stalled threads left behind at a time. A thread cannot be ended from outside; where replacements stall as well, the
batcher stays unready until one comes back, and no more than two scorers are alive."""

FIRST_PAUSE = 0.5
LAST_PAUSE = 30.0
"""Seconds before another try where a worker broke down before it ever scored; doubled each time, up to the last."""

JOIN_SECONDS = 1.0
"""Seconds that closing waits for each thread."""


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
