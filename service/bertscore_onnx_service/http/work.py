"""Worker queues: threads that decode and tokenise what clients send, so that the event loop stays free.

The cost of a job is its size in bytes. Small jobs have a thread of their own and never wait for large ones; each queue
alternates between its smallest and its oldest job. Tiny jobs run in the event loop itself, because a thread switch
takes longer, as long as that leaves the loop time for other requests.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from bertscore_onnx.errors import DeadlineError
from bertscore_onnx_service.http.errors import too_busy

SMALL_BYTES = 65_536
"""The size up to which a job is small: about 0.1 s of work for the slowest tokenizer."""

TINY_BYTES = 4096

LOOP_SHARE = 0.5
"""The share of the event loop's time that tiny jobs may take in the long run."""

LOOP_SECONDS = 0.02
"""The time that tiny jobs may take at once."""

T = TypeVar("T")


class WorkerQueues:
    """One worker queue for small jobs and one for large jobs."""

    def __init__(self, max_depth: int) -> None:
        """Start no thread yet; `check_capacity` allows `max_depth` jobs."""
        self._max_depth = max_depth
        self._loop_seconds, self._last_job = LOOP_SECONDS, 0.0
        self._small, self._large = _WorkerQueue("bertscore-prepare-small"), _WorkerQueue("bertscore-prepare-large")

    def check_capacity(self) -> None:
        """Raise 429 if as many jobs as allowed are waiting or running."""
        depth = self._small.depth + self._large.depth
        if depth >= self._max_depth:
            raise too_busy(f"{depth} requests are being tokenised, as many as are allowed. Try again.", 1.0)

    async def run(self, size: int, work: Callable[[], T], until: float) -> T:
        """Run a job on this many bytes, and raise a DeadlineError if it takes longer than `until` by the loop's clock.

        A job that has begun runs to its end, in a thread unless it is tiny.
        """
        if size <= TINY_BYTES and self._has_loop_time():
            begun = time.perf_counter()
            try:
                return work()
            finally:
                self._loop_seconds -= time.perf_counter() - begun
        queue = self._small if size <= SMALL_BYTES else self._large
        try:
            async with asyncio.timeout_at(until):
                result: T = await queue.run(size, work)
                return result
        except TimeoutError as error:
            raise DeadlineError("The texts could not be tokenised in time.") from error

    def _has_loop_time(self) -> bool:
        now = time.perf_counter()
        saved = self._loop_seconds + LOOP_SHARE * (now - self._last_job)
        self._loop_seconds, self._last_job = min(saved, LOOP_SECONDS), now
        return self._loop_seconds > 0


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    size: int
    work: Callable[[], Any]
    result: "asyncio.Future[Any]"


class _WorkerQueue:
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
