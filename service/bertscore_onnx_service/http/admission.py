"""Admission of requests, decided once before the body is read.

Reading the body; and the threads that prepare it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from starlette.requests import Request

from bertscore_onnx.errors import DeadlineError
from bertscore_onnx_service.http.errors import ApiError, ClientGoneError, draining, too_busy
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models

T = TypeVar("T")


class Admission:
    """Admits requests while there is capacity, and none once the server stops.

    `enter` is the one place that decides on a request. Two things are bounded elsewhere, because
    they are not known at that point: the bytes of a body, which a slot acquires while they arrive,
    and the queue of the model that the body names; a batcher refuses a body before it tokenises its
    texts.
    """

    def __init__(self, limits: Limits, models: Models, worker_pool: "WorkerPool") -> None:
        """Admit requests while there is room for them.

        There is room while a model can queue them and the worker pool is not full.
        """
        self._limits = limits
        self._models = models
        self._worker_pool = worker_pool
        self._idle = asyncio.Event()
        self._idle.set()
        self._slots: set[Slot] = set()
        self.num_bytes = 0
        """The bytes of all bodies, read or announced."""

        self.is_draining = False

    @property
    def active(self) -> int:
        """Requests that are being read, scored or answered."""
        return len(self._slots)

    def enter(self) -> "Slot":
        """Return a slot for a request, which the caller releases.

        The error is 503 if the server stops, and 429 if no model can queue a request, or as many
        requests as allowed are being tokenised or are in progress.
        """
        if self.is_draining:
            raise draining()
        self._models.check_capacity()
        self._worker_pool.check_capacity()
        if self.active >= self._limits.max_requests:
            raise too_busy(
                f"{self.active} requests are in progress, as many as are allowed. Try again.", 1.0
            )
        slot = Slot(self)
        self._slots.add(slot)
        self._idle.clear()
        return slot

    def acquire_bytes(self, num_bytes: int) -> None:
        """Count bytes that are kept for a request; 429 if they are too many."""
        if self.num_bytes + num_bytes > self._limits.max_bytes:
            raise too_busy(
                f"The requests in progress have {self.num_bytes:,} bytes. Try again.", 1.0
            )
        self.num_bytes += num_bytes

    def release(self, slot: "Slot", num_bytes: int) -> None:
        """Release the slot of a request that is over, and its bytes."""
        self._slots.remove(slot)
        self.num_bytes -= num_bytes
        if not self._slots:
            self._idle.set()

    async def drain(self, timeout: float) -> bool:
        """Admit no more requests, and wait for those in progress.

        Return whether all ended in time.

        Those that did not are answered 503 then.
        """
        self.is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        for slot in self._slots:
            slot.expire()
        return not self._slots

    def cancel_drain(self) -> None:
        """End the wait of `drain`."""
        self._idle.set()


class Slot:
    """The place of one request, with its bytes."""

    def __init__(self, admission: Admission) -> None:
        """Begin without bytes."""
        self._admission = admission
        self._num_bytes = 0
        self._timeout: asyncio.Timeout | None = None

    def acquire_bytes(self, num_bytes: int) -> None:
        """Count bytes that are kept; 429 if `Admission` has too many."""
        self._admission.acquire_bytes(num_bytes)
        self._num_bytes += num_bytes

    @asynccontextmanager
    async def until_drained(self) -> AsyncIterator[None]:
        """End a block with 503 when the drain time is over."""
        try:
            async with asyncio.timeout(None) as timeout:
                self._timeout = timeout
                yield
        except TimeoutError:
            if timeout.expired():
                raise draining() from None
            raise
        finally:
            self._timeout = None

    def expire(self) -> None:
        """End the block of `until_drained`."""
        if self._timeout is not None:
            self._timeout.reschedule(0)

    def release(self) -> None:
        """Release the slot and all its bytes."""
        self._admission.release(self, self._num_bytes)


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request, whose slot counts the bytes.

    Raise 408, 413, 415, 429 or ClientGoneError.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise ApiError(
            415,
            "unsupported_media_type",
            f"The body is encoded with {encoding!r}; send it as it is.",
        )
    slot: Slot = request.scope["slot"]
    declared = request.headers.get("content-length", "")
    counted = int(declared[:20]) if declared.isdecimal() else 0
    if counted > limits.max_body:
        raise _too_large(limits)
    slot.acquire_bytes(counted)
    content, is_complete = bytearray(), False
    try:
        async with asyncio.timeout(limits.read_timeout):
            while not is_complete:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                is_complete = not message.get("more_body", False)
                content += message.get("body", b"")
                if len(content) > limits.max_body:
                    raise _too_large(limits)
                if len(content) > counted:
                    slot.acquire_bytes(len(content) - counted)
                    counted = len(content)
    except TimeoutError as error:
        reason = f"The body did not arrive within {limits.read_timeout:g} seconds."
        raise ApiError(408, "read_timeout", reason, headers={"Connection": "close"}) from error
    return bytes(content)


def _too_large(limits: Limits) -> ApiError:
    message = (
        f"The body has more than the {limits.max_body:,} bytes allowed. Send fewer or shorter "
        "texts."
    )
    return ApiError(413, "too_large", message)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine for a request whose body was read.

    Cancel it if the client closes its connection.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        return working.result()
    finally:
        gone.cancel()
        working.cancel()
        await asyncio.wait({working, gone})  # whose errors, if any, do not matter any more
        _ = working.cancelled() or working.exception()


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# Threads that decode and tokenise what clients send, so that the event loop stays free. A job costs
# its size in bytes. One thread is left to small jobs, which never wait for large ones. Tiny jobs
# run in the event loop itself, because a thread switch takes longer, as long as that leaves the
# loop time for other requests.

SMALL_BYTES = 65_536
"""The size up to which a job is small: about 0.1 s of work for the slowest tokenizer."""

TINY_BYTES = 4096

LOOP_SHARE = 0.5
"""The share of the event loop's time that tiny jobs may take in the long run."""

LOOP_SECONDS = 0.02
"""The time that tiny jobs may take at once."""


class WorkerPool:
    """Two threads for jobs; large jobs take one thread at a time."""

    def __init__(self, max_depth: int) -> None:
        """Start no thread yet; `check_capacity` allows `max_depth` jobs."""
        self._max_depth = max_depth
        self._depth = 0
        self._loop_seconds = LOOP_SECONDS
        self._last_job = 0.0
        self._threads = ThreadPoolExecutor(2, "bertscore-prepare")
        self._large = asyncio.Semaphore(1)

    def check_capacity(self) -> None:
        """Raise 429 if as many jobs as allowed are waiting or running."""
        if self._depth >= self._max_depth:
            raise too_busy(
                f"{self._depth} requests are being tokenised, as many as are allowed. Try again.",
                1.0,
            )

    async def run(self, size: int, work: Callable[[], T], until: float) -> T:
        """Run a job on this many bytes.

        Raise a DeadlineError if it takes longer than `until` by the loop's clock. A job that has
        begun runs to its end, in a thread unless it is tiny.
        """
        if size <= TINY_BYTES and self._has_loop_time():
            begun = time.perf_counter()
            try:
                return work()
            finally:
                self._loop_seconds -= time.perf_counter() - begun
        self._depth += 1
        try:
            async with asyncio.timeout_at(until):
                return await (self._run_large(work) if size > SMALL_BYTES else self._submit(work))
        except TimeoutError as error:
            raise DeadlineError("The texts could not be tokenised in time.") from error
        finally:
            self._depth -= 1

    def _submit(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _run_large(self, work: Callable[[], T]) -> T:
        await self._large.acquire()
        job = self._submit(work)
        job.add_done_callback(lambda _: self._large.release())
        # the thread is busy until its end, whether or not the caller has gone
        return await asyncio.shield(job)

    def _has_loop_time(self) -> bool:
        now = time.perf_counter()
        saved = self._loop_seconds + LOOP_SHARE * (now - self._last_job)
        self._loop_seconds, self._last_job = min(saved, LOOP_SECONDS), now
        return self._loop_seconds > 0
