"""Threads that decode and tokenise what clients send, so that the event loop does not wait for it.

Each piece of work has a size in bytes, which tells its cost. Small work has a thread of its own and never waits for
large work; within a lane it is by turns that of the least size and the oldest that comes next. Tiny work is done in the
event loop itself, since the way to a thread and back takes longer, as far as that leaves the loop time for others.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from bertscore_onnx.errors import DeadlineError, QueueFullError
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs, Texts, singles
from bertscore_onnx.server.errors import ApiError, too_busy
from bertscore_onnx.server.models import Selection
from bertscore_onnx.server.schemas import PairBody, ScoreValue

SMALL_BYTES = 65_536
"""What counts as small: some 0.1 s of work for the slowest of tokenizers."""

TINY_BYTES = 4096

LOOP_SHARE = 0.5
"""The share of the event loop's time that tiny work may have in the long run."""

LOOP_SECONDS = 0.02
"""What tiny work may take at a time."""

T = TypeVar("T")


class Lanes:
    """One lane for small work and one for large work."""

    def __init__(self, max_depth: int) -> None:
        """Start no thread yet.

        Args:
            max_depth: how much work may wait, as far as it comes by `check_room`.
        """
        self._max_depth = max_depth
        self._loop_seconds, self._last_turn = LOOP_SECONDS, 0.0
        self._small, self._large = _Lane("bertscore-prepare-small"), _Lane("bertscore-prepare-large")

    def check_room(self) -> None:
        """Refuse work before there is any.

        Raises:
            ApiError: 429: as much as allowed waits or is done.
        """
        depth = self._small.depth + self._large.depth
        if depth >= self._max_depth:
            raise too_busy(f"{depth} requests are being tokenised, as many as are allowed. Try again.", 1.0)

    async def run(self, size: int, work: Callable[[], T], until: float) -> T:
        """Run some work, in a thread unless it is tiny. Work that has begun goes on to its end.

        Args:
            size: the bytes that it works on.
            work: what to do.
            until: how long to wait for the result, by the running loop's clock.

        Raises:
            DeadlineError: that was too long.
            Exception: what `work` raises.
        """
        if size <= TINY_BYTES and self._has_loop_time():
            begun = time.perf_counter()
            try:
                return work()
            finally:
                self._loop_seconds -= time.perf_counter() - begun
        lane = self._small if size <= SMALL_BYTES else self._large
        try:
            async with asyncio.timeout_at(until):
                result: T = await lane.run(size, work)
                return result
        except TimeoutError as error:
            raise DeadlineError("The texts could not be tokenised in time.") from error

    def _has_loop_time(self) -> bool:
        now = time.perf_counter()
        saved = self._loop_seconds + LOOP_SHARE * (now - self._last_turn)
        self._loop_seconds, self._last_turn = min(saved, LOOP_SECONDS), now
        return self._loop_seconds > 0


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    size: int
    work: Callable[[], Any]
    result: "asyncio.Future[Any]"


class _Lane:
    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: list[_Job] = []
        self._is_busy = False
        self._oldest_next = False

    @property
    def depth(self) -> int:
        return len(self._waiting) + self._is_busy

    async def run(self, size: int, work: Callable[[], Any]) -> Any:
        job = _Job(size, work, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._start_next()
        return await job.result

    def _start_next(self) -> None:
        self._waiting = [job for job in self._waiting if not job.result.done()]
        if self._is_busy or not self._waiting:
            return
        self._oldest_next = not self._oldest_next
        job = self._waiting[0] if self._oldest_next else min(self._waiting, key=lambda job: job.size)
        self._waiting.remove(job)
        self._is_busy = True
        done = asyncio.get_running_loop().run_in_executor(self._thread, job.work)
        done.add_done_callback(lambda done: self._finish(job, done))

    def _finish(self, job: _Job, done: "asyncio.Future[Any]") -> None:
        self._is_busy = False
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if not job.result.done():  # else the caller has gone
            if error is None:
                job.result.set_result(done.result())
            else:
                job.result.set_exception(error)
        self._start_next()


# Tokenises pairs, cuts many into chunks, and scores these in order with little ahead of the client.


U = TypeVar("U")

_AHEAD = 1
"""Chunks that wait to be sent on, besides the one that is awaited and the one that is being added."""


def tokenised(selection: Selection, decoded: Sequence[PairBody]) -> Pairs:
    """Return what a scorer takes, with its tokens; it takes time in proportion to the texts."""
    return selection.slot.batcher.tokenise(to_pairs(decoded))


def to_pairs(decoded: Sequence[PairBody]) -> Pairs:
    """Return what a scorer takes; decoding has checked the pairs."""
    references = [pair.all_references for pair in decoded]
    counts = np.array([*map(len, references)], dtype=np.int64)
    texts = [text for group in references for text in group]
    return Pairs(singles([pair.candidate for pair in decoded]), Texts(texts, counts))


def check_tokens(tokens: int, max_tokens: int, position: int | None = None) -> None:
    """Check the tokens of a candidate and its references.

    Raises:
        ApiError: 422: they are more than `max_tokens`.
    """
    if tokens > max_tokens:
        raise ApiError(
            422,
            "too_long",
            f"The candidate and its references have {tokens:,} tokens together; at most {max_tokens:,} are scored. "
            "Give fewer or shorter references.",
            pair=position,
        )


def cut(sizes: Iterable[int], max_size: int) -> Iterator[slice]:
    """Cut a row of things into slices of at most `max_size` together, each as long as may be."""
    start = end = size = 0
    for one in sizes:
        if end > start and size + one > max_size:
            yield slice(start, end)
            start, size = end, 0
        size += one
        end += 1
    if end > start:
        yield slice(start, end)


async def score_chunk(selection: Selection, pairs: Pairs, until: float, client: Hashable = None) -> list[ScoreValue]:
    """Score a request, or one chunk of it; where the queue is full, wait for room.

    A request is refused before it is tokenised or not at all, so that no work is thrown away.

    Args:
        selection: how to score.
        pairs: what to score, tokenised.
        until: the latest time for an answer, of the running loop's clock.
        client: whose request it is.

    Raises:
        BertScoreOnnxError: as `MicroBatcher.score_pairs` says.
    """
    now = asyncio.get_running_loop().time
    while True:
        try:
            return score_values(await selection.score(pairs, max(until - now(), 0.001), client))
        except QueueFullError as error:
            if now() + error.retry_after > until:
                raise
            await asyncio.sleep(error.retry_after)


def score_values(scores: Scores) -> list[ScoreValue]:
    """Return what is answered for each candidate."""
    columns = [column.tolist() for column in (*scores, scores.best_reference)]
    return [ScoreValue(*row) for row in zip(*columns, strict=True)]


async def in_order(
    chunks: AsyncIterator[T],
    work: Callable[[T], Coroutine[Any, Any, U]],
    emit: Callable[[U], Awaitable[None]],
) -> None:
    """Work on chunks as they come, and emit the results in their order.

    At most three chunks are under way; then no more is taken from `chunks` until a result has been emitted.

    Raises:
        ApiError: the one that ended `chunks`, after the results of those before it.
        Exception: the first other error of `chunks`, `work` or `emit`, at once; what is under way is cancelled.
    """
    begun: asyncio.Queue[asyncio.Task[U] | ApiError | None] = asyncio.Queue(_AHEAD)

    async def begin_all() -> None:
        try:
            async for chunk in chunks:
                await begun.put(group.create_task(work(chunk)))
        except ApiError as error:
            await begun.put(error)
        else:
            await begun.put(None)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(begin_all())
            while (task := await begun.get()) is not None:
                if isinstance(task, ApiError):
                    raise task
                await emit(await task)
    except ExceptionGroup as errors:  # early releases of Python 3.11 put what `except*` raises into a group again
        raise _first(errors) from None


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
