"""Threads that decode and tokenise what clients send, so that the event loop does not wait for it.

Each piece of work has a size in bytes, which tells its cost. Small work has a thread of its own and never waits for
large work; within a lane it is by turns that of the least size and the oldest that comes next. Tiny work is done in the
event loop itself, since the way to a thread and back takes longer, as far as that leaves the loop time for others.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from bertscore_onnx.errors import DeadlineError
from bertscore_onnx.server.requests.errors import too_busy

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
