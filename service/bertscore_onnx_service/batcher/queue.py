"""The queue of a batcher: every request from its admission to its answer.

A request is one caller's submission; a sub-batch is the part of it that one batch scores. The first
to claim a request answers it: the worker with its scores, the keeper of deadlines, or a batcher
that closes; later answers are dropped. A request has its place from the call on, waits until a
batch takes a sub-batch of it, and runs from then on. One lock protects all of it.

Callers may do anything to their futures, so the queue keeps its own record of each request, and
never asks a future what has become of it. A future is set last, outside of the lock, since that
runs the callbacks of its caller.

A caller's thread enters the lock and wakes other threads by calls of C only: an exception that a
signal handler raises may arrive between any two steps of Python, such as those of a
`threading.Condition`, and would leave its lock locked.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from queue import Empty, SimpleQueue
from types import MappingProxyType

import numpy as np

from bertscore_onnx.encoding.encoder import plan_runs
from bertscore_onnx.errors import (
    ClosedError,
    DeadlineError,
    DrainingError,
    InputTypeError,
    QueueFullError,
    is_interrupt,
)
from bertscore_onnx.scores import Scores, arrays_of, best_of_references, join_scores
from bertscore_onnx.scoring.inputs import Pairs, singles
from bertscore_onnx.text.texts import Text
from bertscore_onnx.text.tokenizer import TokenisedText
from bertscore_onnx_service.batcher.stats import BatcherStats, Durations

TOKENS_MATCHED = 8
"""The tokens of a pair that are matched in the time that one is encoded, at least."""

RUN_TOKENS = 512
CONCURRENT_RUNS = 2
"""Padded tokens of a run of the model, and runs at the same time, about; the padding within a run
is counted.
"""

_log = logging.getLogger(__name__)


class Request:
    """Candidates and references that are answered together.

    Several batches may score them.

    Batches take pairs of a candidate and one reference; the best over the references is found at
    the end.
    """

    has_more = False
    """Whether it is tokenised, and pairs remain that no batch has taken."""
    number = 0
    """Its place in the order of arrival."""
    is_running = False
    """Whether a batch has taken pairs."""
    is_open = False
    """Whether it was admitted, and neither answered nor given up by its caller."""
    tokens_left = 0
    """The tokens of the pairs that no batch has taken; those of a candidate count for each of its
    references.
    """
    overtaken = 0
    """The tokens of later requests that batches took while this one waited."""

    def __init__(self, pairs: Pairs, seconds: float, client: int | None = None) -> None:
        """Create a request of pairs, of a client by its hash.

        `prepare` gets the pairs if they are not tokenised yet.
        """
        candidates, references = pairs.candidates, pairs.references
        if candidates.encoded is not None or references.encoded is not None:
            raise InputTypeError(
                "A batcher scores the texts of many callers together; submit strings, not "
                "encodings."
            )
        self.pairs = pairs
        self.seconds = seconds
        self.client: Hashable = self if client is None else client
        self.submitted: float = time.monotonic()
        self.deadline: float = self.submitted + seconds
        self.future: Future[Scores] = Future()
        # one candidate for each reference; the references of a candidate are side by side
        self.candidates: list[Text] = np.repeat(
            np.array(candidates.texts, dtype=object), references.counts
        ).tolist()
        self.references: Sequence[Text] = references.texts
        self._num_taken = 0
        self._scored: dict[int, Scores] = {}
        if pairs.tokenised is not None:
            self.prepare(pairs.tokenised)

    def prepare(self, tokenised: Mapping[Text, TokenisedText]) -> None:
        """Let batches take the pairs, whose texts were tokenised."""
        self.tokenised = tokenised
        pairs = zip(self.candidates, self.references, strict=True)
        tokens = [sum(len(tokenised[text].ids) for text in pair) for pair in pairs]
        self._matching_costs = [-(-number // TOKENS_MATCHED) for number in tokens]
        self._ends = [0, *accumulate(tokens)]  # (pairs + 1,)
        self.tokens_left = self._ends[-1]
        # tokens of a pair, on average
        self.length = max(self.tokens_left / max(len(tokens), 1), SHORT)
        self.has_more = True

    def next_sub_batch(
        self, max_cost: int, batch_texts: set[Text], *, at_least_one: bool
    ) -> "SubBatch | None":
        """Take as many of the remaining pairs as cost at most `max_cost`.

        Take the first in any case if `at_least_one`. Return None if none is taken.

        A pair costs its matching, and the tokens of its texts that are not in `batch_texts` yet, to
        which they are added.
        """
        start = stop = self._num_taken
        cost = 0
        while stop < len(self.references):
            texts = {self.candidates[stop], self.references[stop]} - batch_texts
            pair_cost = (
                sum(len(self.tokenised[text].ids) for text in texts) + self._matching_costs[stop]
            )
            if cost + pair_cost > max_cost and not (at_least_one and stop == start):
                break
            batch_texts |= texts
            cost += pair_cost
            stop += 1
        if stop == start and self.references:
            return None
        self.has_more = stop < len(self.references)
        self._num_taken = stop
        self.tokens_left = self._ends[-1] - self._ends[stop]
        return SubBatch(self, start, stop, self._ends[stop] - self._ends[start], cost)

    def add_scores(self, sub_batch: "SubBatch", scores: Scores) -> Scores | None:
        """Add the scores of a sub-batch.

        Return the scores of all candidates once they are complete.
        """
        self._scored[sub_batch.start] = scores
        parts = [self._scored[start] for start in sorted(self._scored)]
        if sum(part.F.shape[-1] for part in parts) < len(self.references):
            return None
        return best_of_references(join_scores(parts, 1), self.pairs.references.counts)

    def deadline_error(self) -> DeadlineError:
        """Return the error of a request whose deadline has passed."""
        return DeadlineError(
            f"There was no score within {self.seconds:g} s. Allow more time, or submit fewer "
            f"texts at once: the request has {len(self.pairs.candidates)} candidates."
        )


@dataclass(frozen=True, slots=True, eq=False)
class SubBatch:
    """Some pairs of one request, with their tokens.

    The pairs are those from `start` to before `stop`; `cost` is what they cost in a batch.
    """

    request: Request
    start: int
    stop: int
    tokens: int
    cost: int


def join_batch(batch: Sequence[SubBatch]) -> Pairs:
    """Concatenate sub-batches, each pair with a candidate of its own."""
    sides: tuple[list[Text], list[Text]] = [], []
    tokenised: dict[Text, TokenisedText] = {}
    for sub_batch in batch:
        request = sub_batch.request
        for side, texts in zip(sides, (request.candidates, request.references), strict=True):
            part = texts[sub_batch.start : sub_batch.stop]
            side += part
            tokenised.update((text, request.tokenised[text]) for text in part)
    return Pairs(singles(sides[0]), singles(sides[1]), tokenised=tokenised)


def split_scores(scores: Scores, batch: Sequence[SubBatch]) -> list[Scores]:
    """Split the scores of a batch by sub-batch, into copies.

    A view would keep the whole batch.
    """
    ends = [0, *accumulate(sub_batch.stop - sub_batch.start for sub_batch in batch)]
    return [
        Scores(*(array[..., start:end].copy() for array in arrays_of(scores)))
        for start, end in pairwise(ends)
    ]


# The scheduler: the size of the next batch, and the requests that it takes sub-batches from.

MIN_BATCH_TOKENS = 512
"""The least size limit of a batch, on the slowest of models; smaller batches are not worth their
overhead.
"""

BATCHES_AHEAD = 4
LIKE_LENGTH = 1.25
SHORT = 20
"""A batch is filled from the requests that would make the next batches, as many as this, with those
of like length, so that little is padding: the tokens of their pairs differ by this factor at most,
or are fewer than this."""


class BatchSize:
    """The number of tokens that can be scored in `batch_seconds`.

    The number follows the pace of the last batch of at least half this size.
    """

    def __init__(self, max_tokens: int, batch_seconds: float) -> None:
        """Begin with a small batch, which shows the pace."""
        self._max_tokens = max_tokens
        self._batch_seconds = batch_seconds
        self.tokens: int = min(MIN_BATCH_TOKENS, max_tokens)

    def learn(self, tokens: int, seconds: float) -> None:
        """Adapt to a batch with this many encoded tokens.

        A small one changes nothing, since its pace is another.
        """
        if 2 * tokens >= self.tokens:
            in_time = int(tokens * self._batch_seconds / max(seconds, 1e-6))
            self.tokens = min(max(in_time, MIN_BATCH_TOKENS), self._max_tokens)


def schedule(waiting: Sequence[Request], max_cost: int) -> list[SubBatch]:
    """Take sub-batches of requests, in order of arrival, for a batch.

    The batch has at most `max_cost`, or a single pair.

    The client with the fewest tokens waiting comes first, and of its requests the smallest; but a
    client is overtaken by at most as many tokens as it has waiting, or by one batch, before its
    oldest request precedes all these, as does every request that is past half its deadline. The
    batch begins with the first request of this order, and is filled with those of like length from
    the next few batches' worth of it.
    """
    backlog: Counter[Hashable] = Counter()
    for request in waiting:
        backlog[request.client] += request.tokens_left
    oldest = {request.client: request for request in reversed(waiting)}
    now = time.monotonic()

    def rank(request: Request) -> tuple[bool, int, int]:
        is_oldest, tokens = request is oldest[request.client], backlog[request.client]
        is_overtaken = is_oldest and request.overtaken >= min(tokens, max_cost)
        if is_overtaken or now > request.deadline - request.seconds / 2:
            return False, 0, 0
        return True, tokens, request.tokens_left

    batch: list[SubBatch] = []
    texts: set[Text] = set()
    cost_left, ahead = max_cost, BATCHES_AHEAD * max_cost
    for request in sorted(waiting, key=rank):
        if ahead <= 0:
            break
        ahead -= min(request.tokens_left, max_cost)
        length = batch[0].request.length if batch else request.length
        is_like = length / LIKE_LENGTH <= request.length <= length * LIKE_LENGTH
        if is_like and (
            sub_batch := request.next_sub_batch(cost_left, texts, at_least_one=not batch)
        ):
            batch.append(sub_batch)
            cost_left -= sub_batch.cost
    _count_overtaken(waiting, oldest, batch)
    return batch


def _count_overtaken(
    waiting: Sequence[Request], oldest: Mapping[Hashable, Request], batch: Iterable[SubBatch]
) -> None:
    tokens = {sub_batch.request: sub_batch.tokens for sub_batch in batch}
    later = 0
    for request in reversed(waiting):
        if request in tokens:
            later += tokens[request]
            request.overtaken = 0
        elif request is oldest[request.client]:
            request.overtaken += later


class Wakeup:
    """Lets one thread sleep until another wakes it.

    A wakeup that comes before the sleep ends that at once.
    """

    def __init__(self) -> None:
        self._wakeups: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Wake the thread."""
        self._wakeups.put(None)

    def wait(self, seconds: float) -> None:
        """Sleep until woken, or for this time, which may be infinite.

        Clear all wakeups.
        """
        with suppress(Empty):
            self._wakeups.get(timeout=min(max(seconds, 0), threading.TIMEOUT_MAX))
            while True:
                self._wakeups.get_nowait()


_DRAINING = DrainingError, "The batcher is draining: it finishes its requests and admits no more."
_CLOSED = ClosedError, "The batcher was closed. Make a new one."


class RequestQueue:
    """Admits requests, and gives them to the worker in batches.

    Each request is answered once.
    """

    def __init__(self, max_waiting: int, max_delay: float, batch_size: BatchSize) -> None:
        """Open the queue.

        The queue admits `max_waiting` requests, and waits up to `max_delay` seconds to fill a
        batch.
        """
        self._max_waiting = max_waiting
        self._max_delay = max_delay
        self._batch_size = batch_size
        self._lock = threading.RLock()
        self._wakeup = Wakeup()  # of the worker
        self._drained: list[Wakeup] = []  # of threads that wait until all requests are answered
        self._refusal: tuple[type[ClosedError], str] | None = None
        # the open ones by their number, in order of arrival
        self._requests: dict[int, Request] = {}
        self._numbers = count()
        self._num_running = self._being_answered = 0
        self._last_size = 0
        self._last_scored = 0.0
        self._counts: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._waits = Durations()
        self._runs = Durations()
        # of the last batches; the requests that were complete with them
        self._seconds = self._num_last = 0.0

    @property
    def is_open(self) -> bool:
        """Whether requests are admitted."""
        return self._refusal is None

    def check_capacity(self) -> None:
        """Raise the error that a request submitted now would get.

        That request is counted as rejected.
        """
        with self._lock:
            if self._refusal is not None:
                error, message = self._refusal
                raise error(message)
            waiting = len(self._requests) - self._num_running
            if waiting < self._max_waiting:
                return
            self._counts["rejected"] += 1
            retry_after = waiting * self._seconds / max(self._num_last, 1) or 1.0
            raise QueueFullError(
                f"{waiting} requests are waiting, as many as max_queue allows. Try again in about "
                f"{retry_after:.2g} s.",
                retry_after=retry_after,
            )

    def admit(self, request: Request) -> None:
        """Give a request its place, or raise the error of `check_capacity`.

        Call `notify` once it is tokenised.
        """
        number = next(self._numbers)
        request.number = number
        # By its number, since a caller who keeps a future should not keep the texts.
        request.future.add_done_callback(lambda _: self._give_up(number))
        with self._lock:
            self.check_capacity()
            self._counts["submitted"] += 1
            request.is_open = True
            self._requests[number] = request

    def notify(self) -> None:
        """Wake the worker, since a request was tokenised."""
        self._wakeup.set()

    def next_batch(self, idle_seconds: float = math.inf) -> list[SubBatch] | None:
        """Return a batch of requests.

        An empty one once the queue is closed, None after `idle_seconds` without.

        If batch-mates are likely, because the last batch had several requests or this first request
        came while it was being scored, wait up to `max_delay` for more. A request that comes to an
        idle batcher is scored at once.
        """
        idle_at, full_at = time.monotonic() + idle_seconds, math.inf
        while True:
            with self._lock:
                if self._refusal is _CLOSED:
                    return []
                now = time.monotonic()
                waiting = [request for request in self._requests.values() if request.has_more]
                if waiting:
                    are_mates_likely = (
                        self._last_size > 1 or waiting[0].submitted < self._last_scored
                    )
                    until = full_at = min(full_at, now + self._max_delay * are_mates_likely)
                    is_enough = (
                        sum(request.tokens_left for request in waiting) >= self._batch_size.tokens
                    )
                    if (is_enough or now >= full_at or not self.is_open) and (
                        batch := self._schedule(waiting)
                    ):
                        return batch
                elif now >= idle_at:
                    return None
                else:
                    until, full_at = idle_at, math.inf
            self._wakeup.wait(until - now)

    def count_batch(self, batch: Sequence[SubBatch], pairs: Pairs, started: float) -> None:
        """Count a call of the scorer that has just ended."""
        lengths = np.array(
            [len(text.ids) for text in (pairs.tokenised or {}).values()], dtype=np.int64
        )
        runs, tokens = (
            plan_runs(lengths, RUN_TOKENS, concurrency=CONCURRENT_RUNS),
            int(lengths.sum()),
        )
        padded_tokens = sum(len(run) * int(lengths[run[0]]) for run in runs)
        with self._lock:
            self._last_scored = time.monotonic()
            seconds = self._last_scored - started
            self._batch_size.learn(tokens, seconds)
            self._counts.update(batches=1, batch_tokens=tokens, padded_tokens=padded_tokens)
            self._runs = self._runs.add(seconds)
            for request in (sub_batch.request for sub_batch in batch if sub_batch.start == 0):
                self._waits = self._waits.add(started - request.submitted)
            self._seconds = 0.8 * self._seconds + seconds
            self._num_last = 0.8 * self._num_last + sum(
                not sub_batch.request.has_more for sub_batch in batch
            )

    def count(self, name: str, number: int = 1) -> None:
        """Count warnings or truncated texts."""
        with self._lock:
            self._counts[name] += number

    def answer_sub_batch(self, sub_batch: SubBatch, scores: Scores) -> None:
        """Add scores to their request, and answer it if these were the last."""
        with self._lock:
            complete = sub_batch.request.add_scores(sub_batch, scores)
        if complete is not None:
            self.answer(sub_batch.request, complete)

    def answer(self, request: Request, answer: Scores | BaseException) -> None:
        """Answer a request with its scores or its error, if it is open."""
        with self._lock:
            if not self._begin(request):
                return
            self._remove(request)
            if isinstance(answer, Scores):
                self._counts["completed"] += 1
            elif isinstance(answer, DeadlineError):
                self._counts["expired"] += 1
            else:
                self._failed[type(answer).__name__] += 1
            self._being_answered += 1
        try:
            deliver = (
                Future.set_exception if isinstance(answer, BaseException) else Future.set_result
            )
            _guarded(deliver, request.future, answer)
        finally:
            with self._lock:
                self._being_answered -= 1
                self._wake_drained()

    def fail(self, requests: Iterable[Request], make_error: Callable[[Request], Exception]) -> None:
        """Answer every request with an error of its own.

        After that, raise the last error of a delivery.
        """
        with ExitStack() as answers:
            for request in requests:
                answers.callback(self.answer, request, make_error(request))

    def expire(self, now: float) -> float:
        """Answer every request whose deadline has passed with a DeadlineError.

        Return the earliest other deadline.
        """
        with self._lock:
            late = [request for request in self._requests.values() if request.deadline <= now]
        self.fail(late, Request.deadline_error)
        with self._lock:
            return min((request.deadline for request in self._requests.values()), default=math.inf)

    def drain(self, timeout: float) -> bool:
        """Admit no more, and wait for all answers.

        After `timeout` seconds fail the rest; return whether none was failed.
        """
        drained = Wakeup()
        with self._lock:
            self._refusal = self._refusal or _DRAINING
            self._wakeup.set()
            self._drained.append(drained)
            self._wake_drained()
        drained.wait(timeout)
        with self._lock:
            left = list(self._requests.values())
        self.fail(
            left,
            lambda request: ClosedError(
                "The batcher was closed before this was scored. Make a new one."
            ),
        )
        return not left

    def close(self) -> None:
        """Admit no more requests, and give the worker no more batches."""
        with self._lock:
            self._refusal = _CLOSED
        self._wakeup.set()

    def stats(self) -> BatcherStats:
        """Return all counts as they are at this moment."""
        with self._lock:
            return BatcherStats(
                failed=MappingProxyType(dict(self._failed)),
                waiting=len(self._requests) - self._num_running,
                in_flight=self._num_running,
                waits=self._waits,
                runs=self._runs,
                **self._counts,
            )

    def _schedule(self, waiting: Sequence[Request]) -> list[SubBatch]:
        batch = [
            part for part in schedule(waiting, self._batch_size.tokens) if self._begin(part.request)
        ]
        self._last_size = len(batch)
        return batch

    def _begin(self, request: Request) -> bool:
        """Let a request run, which ends its cancelling.

        Return False if it is not open.
        """
        if request.is_open and not request.is_running:
            request.is_running = True
            self._num_running += 1
            # it was cancelled
            if _guarded(Future.set_running_or_notify_cancel, request.future) is False:
                self._drop(request)
        return request.is_open

    def _give_up(self, number: int) -> None:
        """Free the place of a request as soon as its caller cancels its future or sets it."""
        with self._lock:
            request = self._requests.get(number)
            if request is not None:
                if Future.cancelled(request.future):
                    # tells `wait` of it
                    _guarded(Future.set_running_or_notify_cancel, request.future)
                self._drop(request)

    def _drop(self, request: Request) -> None:
        """Remove a request whose caller has given it up."""
        self._remove(request)
        self._counts["cancelled"] += 1
        self._wake_drained()

    def _remove(self, request: Request) -> None:
        request.is_open = False
        self._requests.pop(request.number, None)  # an interrupt may have come before it was there
        self._num_running -= request.is_running

    def _wake_drained(self) -> None:
        if not (self._requests or self._being_answered):
            for drained in self._drained:
                drained.set()


def _guarded(change: Callable[..., object], *arguments: object) -> object:
    """Change a future.

    Log what fails, by its caller's doing or in its callbacks, for no other request is to pay.
    """
    try:
        return change(*arguments)
    except BaseException as error:
        # A signal handler raises an error in the main thread alone.
        is_in_main_thread = threading.current_thread() is threading.main_thread()
        if is_in_main_thread and (isinstance(error, KeyboardInterrupt) or is_interrupt(error)):
            raise
        _log.exception(
            "The future of a request was changed by its caller, or a callback of it failed."
        )
        return None
