"""The queue of a batcher: every request from its admission to its answer.

A request is one caller's submission; a sub-batch is the part of it that one batch scores. The first to claim a request
answers it: the worker with its scores, the supervisor at its deadline, or a batcher that closes; later answers are
dropped. A request waits until a batch takes a sub-batch of it, and runs from then on. One lock protects all of it.
Futures are answered outside of the lock, since that runs the callbacks of their callers.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum

import numpy as np

from bertscore_onnx.errors import ClosedError, DeadlineError, DrainingError, InputTypeError, QueueFullError
from bertscore_onnx.scores import Scores, arrays_of, best_of_references, join_scores
from bertscore_onnx.scoring.inputs import Pairs, Texts, singles
from bertscore_onnx.text.texts import Text
from bertscore_onnx.text.tokenised import TokenisedText
from bertscore_onnx_service.batcher.stats import BatcherStats, StatsCounter

TOKENS_MATCHED = 8
"""The tokens of a pair that are matched in the time that one is encoded, at least."""


class Request:
    """Candidates and references that are answered together, though several batches may score them.

    Batches take pairs of a candidate and one reference, so that one candidate with many references does not make a
    batch too large; the best over the references is found at the end.
    """

    def __init__(self, pairs: Pairs, seconds: float, client: Hashable = None) -> None:
        """Create a request of tokenised pairs; without a `client` it is a client of its own."""
        candidates, references = pairs.candidates, pairs.references
        if not (isinstance(candidates, Texts) and isinstance(references, Texts) and pairs.tokenised is not None):
            raise InputTypeError(
                "A batcher scores the texts of many callers together; submit strings, not encoded texts."
            )
        self.seconds = seconds
        self.client: Hashable = self if client is None else client
        self.submitted: float = time.monotonic()
        self.deadline: float = self.submitted + seconds
        self.future: Future[Scores] = Future()
        self.has_begun: bool = False
        self.tokenised: Mapping[Text, TokenisedText] = pairs.tokenised
        # one candidate for each reference; the references of a candidate are side by side
        self.candidates: list[Text] = np.repeat(np.array(candidates.texts, dtype=object), references.counts).tolist()
        self.references: Sequence[Text] = references.texts
        self._counts = references.counts  # (candidates,)
        sides = (self.candidates, self.references)
        lengths = np.array([[len(self.tokenised[text].ids) for text in side] for side in sides], dtype=np.int64)
        tokens = lengths.sum(axis=0)  # (pairs,)
        self._matching_costs: list[int] = (-(-tokens // TOKENS_MATCHED)).tolist()
        self._ends = np.cumsum([0, *tokens])  # (pairs + 1,)
        self._num_taken = 0
        self._scored: list[tuple[int, Scores]] = []

    @property
    def has_more(self) -> bool:
        """Whether pairs remain that no batch has taken."""
        return not self.has_begun or self._num_taken < len(self.references)

    @property
    def tokens_left(self) -> int:
        """The tokens of the pairs that no batch has taken."""
        return self.tokens_between(self._num_taken, len(self.references))

    def tokens_between(self, start: int, stop: int) -> int:
        """Return the tokens of some pairs; those of a candidate count for each of its references."""
        return int(self._ends[stop] - self._ends[start])

    def next_sub_batch(self, max_cost: int, batch_texts: set[Text], *, at_least_one: bool) -> "SubBatch | None":
        """Take as many of the remaining pairs as cost at most `max_cost`; None if the next pair costs more.

        A pair costs the tokens of its texts that are not in the batch yet, which are encoded, and the cost of matching
        it. The texts of the sub-batch are added to `batch_texts`. With `at_least_one` the first pair is taken at any
        cost.
        """
        start = stop = self._num_taken
        cost = 0
        while stop < len(self.references):
            texts = {self.candidates[stop], self.references[stop]} - batch_texts
            pair_cost = sum(len(self.tokenised[text].ids) for text in texts) + self._matching_costs[stop]
            if cost + pair_cost > max_cost and not (at_least_one and stop == start):
                break
            batch_texts |= texts
            cost += pair_cost
            stop += 1
        if stop == start and self.references:
            return None
        self.has_begun, self._num_taken = True, stop
        return SubBatch(self, start, stop, cost)

    def add_scores(self, sub_batch: "SubBatch", scores: Scores) -> Scores | None:
        """Add the scores of a sub-batch, and return those of all candidates once they are complete."""
        self._scored.append((sub_batch.start, scores))
        if sum(part.F.shape[-1] for _, part in self._scored) < len(self.references):
            return None
        parts = [part for _, part in sorted(self._scored, key=lambda scored: scored[0])]
        return best_of_references(join_scores(parts, 1), self._counts)

    def deadline_error(self) -> DeadlineError:
        """Return the error of a request whose deadline has passed."""
        return DeadlineError(
            f"There was no score within {self.seconds:g} s. Allow more time, or submit fewer texts at once: the "
            f"request has {len(self._counts)} candidates."
        )


@dataclass(frozen=True, slots=True, eq=False)
class SubBatch:
    """Some pairs of one request, from `start` to before `stop`, and their cost in tokens."""

    request: Request
    start: int
    stop: int
    cost: int

    @property
    def tokens(self) -> int:
        """The tokens of its pairs."""
        return self.request.tokens_between(self.start, self.stop)

    @property
    def texts(self) -> tuple[list[Text], Sequence[Text]]:
        """The candidates and the references of its pairs."""
        pairs = slice(self.start, self.stop)
        return self.request.candidates[pairs], self.request.references[pairs]


def join_batch(batch: Sequence[SubBatch]) -> Pairs:
    """Concatenate sub-batches, each pair with a candidate of its own."""
    candidates: list[Text] = []
    references: list[Text] = []
    tokenised: dict[Text, TokenisedText] = {}
    for sub_batch in batch:
        texts = sub_batch.texts
        candidates += texts[0]
        references += texts[1]
        tokenised.update((text, sub_batch.request.tokenised[text]) for side in texts for text in side)
    return Pairs(singles(candidates), singles(references), tokenised=tokenised)


def split_scores(scores: Scores, batch: Sequence[SubBatch]) -> list[Scores]:
    """Split the scores of a batch by sub-batch."""
    parts, end = [], 0
    for sub_batch in batch:
        start, end = end, end + sub_batch.stop - sub_batch.start
        copies = (array[..., start:end].copy() for array in arrays_of(scores))  # a view would keep the whole batch
        parts.append(Scores(*copies))
    return parts


# The scheduler: the size of the next batch, and the requests that it takes sub-batches from.

MIN_BATCH_TOKENS = 512
"""The least size limit of a batch, on the slowest of models; smaller batches are not worth their overhead."""


class BatchSize:
    """The number of tokens that can be scored in `batch_seconds`, estimated from the batches before."""

    def __init__(self, max_tokens: int, batch_seconds: float, tokens: int, seconds: float) -> None:
        """Begin with the tokens of a first small batch and the seconds it took."""
        self._max_tokens, self._batch_seconds = max_tokens, batch_seconds
        self.tokens: int = self._tokens_in_time(tokens, seconds)

    def learn(self, tokens: int, seconds: float) -> None:
        """Adapt to a batch with this many encoded tokens; a slow small batch does not count."""
        if seconds > self._batch_seconds and tokens >= MIN_BATCH_TOKENS // 2:
            self.tokens = min(self.tokens, self._tokens_in_time(tokens, seconds))
        elif seconds < self._batch_seconds / 2 and tokens > self.tokens / 2:
            self.tokens = min(2 * self.tokens, self._max_tokens)

    def _tokens_in_time(self, tokens: int, seconds: float) -> int:
        in_time = int(tokens * self._batch_seconds / max(seconds, 1e-6))
        return min(max(in_time, MIN_BATCH_TOKENS), self._max_tokens)


def schedule(requests: Iterable[Request], max_cost: int, *, oldest_first: bool) -> list[SubBatch]:
    """Take sub-batches of the requests for one batch, which costs at most `max_cost` or has a single pair.

    The client with the fewest tokens waiting comes first, and of its requests the smallest, so that large requests do
    not hold up small ones. To keep large ones from waiting for ever, every other batch has to begin with the oldest
    request (`oldest_first`), which gets up to half of it.
    """
    waiting = [request for request in requests if request.has_more]
    backlog: Counter[Hashable] = Counter()
    for request in waiting:
        backlog[request.client] += request.tokens_left
    ordered = sorted(waiting, key=lambda request: (backlog[request.client], request.tokens_left, request.submitted))
    batch: list[SubBatch] = []
    texts: set[Text] = set()
    cost_left = max_cost
    if oldest_first and waiting:
        oldest = min(waiting, key=lambda request: request.submitted)
        if sub_batch := oldest.next_sub_batch(max_cost // 2, texts, at_least_one=True):
            batch.append(sub_batch)
            cost_left -= sub_batch.cost
    for request in ordered:
        if not request.has_more:
            continue
        sub_batch = request.next_sub_batch(cost_left, texts, at_least_one=not batch)
        if sub_batch is None:
            break
        batch.append(sub_batch)
        cost_left -= sub_batch.cost
    return batch


class _Phase(Enum):
    OPEN = "open"
    DRAINING = "draining"
    CLOSED = "closed"


class RequestQueue:
    """Admits requests, gives them to the worker in batches, and ensures that each is answered once."""

    def __init__(self, max_waiting: int, max_delay: float, batch_size: BatchSize) -> None:
        """Open the queue; it admits `max_waiting` requests, and waits up to `max_delay` seconds to fill a batch."""
        # A Condition's own lock is reentrant, so that a signal handler may drain while the main thread submits.
        self._changed = threading.Condition()
        self._phase = _Phase.OPEN
        self._max_waiting, self._max_delay = max_waiting, max_delay
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

    def check_capacity(self) -> None:
        """Raise the error that a request submitted now would get, and count it as rejected."""
        with self._changed:
            if self._phase is _Phase.DRAINING:
                raise DrainingError("The batcher is draining: it finishes its requests and admits no more.")
            if self._phase is _Phase.CLOSED:
                raise ClosedError("The batcher was closed. Make a new one.")
            if len(self._waiting) < self._max_waiting:
                return
            self._stats.count("rejected")
            retry_after = self._tokens_left * self._stats.seconds_per_token or 1.0
            raise QueueFullError(
                f"{len(self._waiting)} requests are waiting, as many as max_queue allows. Try again in about "
                f"{retry_after:.2g} s.",
                retry_after=retry_after,
            )

    def admit(self, request: Request) -> None:
        """Add a request to the queue, or raise the error of `check_capacity`."""
        request.future.add_done_callback(self._remove_cancelled)
        with self._changed:
            self.check_capacity()
            self._stats.count("submitted")
            self._waiting[request.future] = request
            self._tokens_left += request.tokens_left
            self._changed.notify_all()

    def assign(self, worker: object) -> None:
        """Give batches to this worker and to no other from now on."""
        with self._changed:
            if self._phase is not _Phase.CLOSED:
                self._worker = worker
                self._changed.notify_all()

    def await_requests(self, worker: object, timeout: float) -> bool:
        """Wait until there are requests or the worker is dismissed; return whether that happened in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._has_more() or self._worker is not worker, timeout)

    def next_batch(self, worker: object) -> list[SubBatch]:
        """Wait for requests and return a batch of them; an empty one once another worker is assigned.

        If batch-mates are likely, because the last batch had several requests or this first request came while it was
        being scored, wait up to `max_delay` for more. A request that comes to an idle batcher is scored at once.
        """

        def is_dismissed() -> bool:
            return self._worker is not worker

        def is_enough() -> bool:
            return is_dismissed() or not self.is_open or self._tokens_left >= self._batch_size.tokens

        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._has_more() or is_dismissed())
                if self._are_batch_mates_likely():
                    self._changed.wait_for(is_enough, self._max_delay)
                if is_dismissed():
                    return []
                if batch := self._schedule():
                    self._last_size = len({sub_batch.request.future for sub_batch in batch})
                    return batch

    def count_batch(self, batch: Sequence[SubBatch], pairs: Pairs, started: float) -> None:
        """Count a call of the scorer that has just ended."""
        lengths = np.array([len(text.ids) for text in (pairs.tokenised or {}).values()], dtype=np.int64)
        waits = [started - sub_batch.request.submitted for sub_batch in batch if sub_batch.start == 0]
        with self._changed:
            self._last_scored = time.monotonic()
            seconds = self._last_scored - started
            self._stats.count_batch(lengths, seconds, waits)
            self._batch_size.learn(int(lengths.sum()), seconds)

    def count(self, name: str, number: int = 1) -> None:
        """Count a restart, a warning or truncated texts."""
        with self._changed:
            self._stats.count(name, number)

    def answer_sub_batch(self, sub_batch: SubBatch, scores: Scores) -> None:
        """Add scores to their request, and answer it if these were the last."""
        with self._changed:
            complete = sub_batch.request.add_scores(sub_batch, scores)
        if complete is not None:
            self.answer(sub_batch.request, complete)

    def answer(self, request: Request, answer: Scores | BaseException) -> None:
        """Answer a request with its scores or its error, unless it was answered or cancelled before."""
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
        """Answer every request with an error of its own, even if a caller's callback raises; raise that at the end."""
        raised = None
        for request in requests:
            try:
                self.answer(request, make_error(request))
            except BaseException as error:  # SystemExit in a callback must not cost the others their answer
                raised = error
        if raised is not None:
            raise raised

    def expire(self, now: float) -> None:
        """Answer every request whose deadline has passed with a DeadlineError."""
        with self._changed:
            late = [request for request in self._unanswered() if request.deadline <= now]
        self.fail(late, Request.deadline_error)

    def next_deadline(self) -> float:
        """Return the earliest deadline of all requests, by `time.monotonic()`; infinity if there are none."""
        with self._changed:
            return min((request.deadline for request in self._unanswered()), default=math.inf)

    def drain(self, timeout: float) -> bool:
        """Admit no more, wait for all answers, and fail the rest after `timeout` seconds; return if none was failed."""
        with self._changed:
            if self._phase is _Phase.OPEN:
                self._phase = _Phase.DRAINING
                self._changed.notify_all()
            self._changed.wait_for(lambda: not (self._unanswered() or self._being_answered), timeout)
            left = self._unanswered()
        self.fail(left, lambda request: ClosedError("The batcher was closed before this was scored. Make a new one."))
        return not left

    def close(self) -> None:
        """Admit no more requests, and dismiss the worker."""
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

    def _are_batch_mates_likely(self) -> bool:
        first = next((request for request in self._unanswered() if request.has_more), None)
        return first is not None and (self._last_size > 1 or first.submitted < self._last_scored)

    def _schedule(self) -> list[SubBatch]:
        for future in [future for future in self._waiting if future.cancelled()]:
            self._claim(future)
        self._oldest_first = not self._oldest_first
        batch = schedule(self._unanswered(), self._batch_size.tokens, oldest_first=self._oldest_first)
        self._tokens_left -= sum(sub_batch.tokens for sub_batch in batch)
        return [sub_batch for sub_batch in batch if self._begin(sub_batch.request)]

    def _begin(self, request: Request) -> bool:
        """Mark a request as running; return False if it was cancelled."""
        if request.future not in self._running and self._claim(request.future):
            self._running[request.future] = request
            self._tokens_left += request.tokens_left
        return request.future in self._running

    def _claim(self, future: "Future[Scores]") -> bool:
        """Take a request out of the queue; return False if it was not there or was cancelled."""
        is_running = future in self._running
        request = self._running.pop(future, None) or self._waiting.pop(future, None)
        if request is None:
            return False
        self._tokens_left -= request.tokens_left
        if is_running or future.set_running_or_notify_cancel():
            return True
        self._stats.count("cancelled")
        return False

    def _remove_cancelled(self, future: "Future[Scores]") -> None:
        """Free the place of a waiting request as soon as it is cancelled."""
        if future.cancelled():
            with self._changed:
                self._claim(future)
                self._changed.notify_all()

    def _unanswered(self) -> list[Request]:
        return [*self._running.values(), *self._waiting.values()]
