"""Admission: whether a request is let in, decided once before its body is read; its slot; and reading the body.

A request that is let in has a slot until it is over. A slot that waits for its client can be cancelled.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from starlette.requests import Request

from bertscore_onnx_service.http.errors import ApiError, ClientGoneError, draining, too_busy
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models
from bertscore_onnx_service.http.work import WorkerQueues

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds that a request may have waited for its client in all, while others find no free slot."""


class Admission:
    """Admits requests while there is capacity, and none once the server stops.

    `enter` is the one place that decides on a request. Two things are bounded elsewhere, because they are not known at
    that point: the bytes of a body, which a slot acquires while they arrive, and the queue of the model that the body
    names. A batcher refuses a body before it tokenises its texts, and streams wait while its queue is full.
    """

    def __init__(self, limits: Limits, models: Models, worker_queues: WorkerQueues) -> None:
        """Admit requests while a model can queue them and the worker queues are not full."""
        self._limits = limits
        self._models = models
        self._worker_queues = worker_queues
        self._slots: set[Slot] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.num_bytes = 0
        """The bytes of all bodies, read or announced."""

        self.is_draining = False

    @property
    def active(self) -> int:
        """Requests that are being read, scored or answered."""
        return len(self._slots)

    def enter(self) -> "Slot":
        """Return a slot for a request.

        The error is 503 if the server stops, and 429 if no model can queue a request, or as many requests as allowed
        are being tokenised, or are in progress and none waits for its client.
        """
        if self.is_draining:
            raise draining()
        self._models.check_capacity()
        self._worker_queues.check_capacity()
        if self.active >= self._limits.max_requests and not self._cancel_slowest():
            raise too_busy(f"{self.active} requests are in progress, as many as are allowed. Try again.", 1.0)
        slot = Slot(self)
        self._slots.add(slot)
        self._idle.clear()
        return slot

    def acquire_bytes(self, num_bytes: int) -> None:
        """Count bytes that are kept for a request; 429 if they are too many and no request waits for its client."""
        if self.num_bytes + num_bytes > self._limits.max_bytes and not self._cancel_slowest():
            raise too_busy(f"The requests in progress have {self.num_bytes:,} bytes. Try again.", 1.0)
        self.num_bytes += num_bytes

    def release(self, slot: "Slot", num_bytes: int) -> None:
        """Release the slot of a request that is over, and its bytes."""
        self._slots.discard(slot)
        self.num_bytes -= num_bytes
        if not self._slots:
            self._idle.set()

    async def drain(self, timeout: float) -> bool:
        """Admit no more requests, and wait for those in progress; return whether all ended in time."""
        self.is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        return not self.active

    def cancel_drain(self) -> None:
        """End the wait of `drain`."""
        self._idle.set()

    def _cancel_slowest(self) -> bool:
        """Cancel the request that has waited longest for its client; return whether there was one."""
        slowest = max(self._slots, key=lambda slot: slot.waited, default=None)
        return slowest is not None and slowest.waited > PATIENCE and slowest.cancel()


class Slot:
    """The place of one request, with its bytes and the time it has waited for its client."""

    def __init__(self, admission: Admission) -> None:
        """Begin without bytes."""
        self._admission = admission
        self._num_bytes = 0
        self._waits: set[asyncio.Timeout] = set()
        self._num_working = 0
        self._waited = 0.0
        self._waiting_since: float | None = None

    @property
    def waited(self) -> float:
        """Seconds that it has waited for its client in all; 0 if it does not wait now, or is cancelled."""
        if self._waiting_since is None:
            return 0.0
        return self._waited + time.monotonic() - self._waiting_since

    def acquire_bytes(self, num_bytes: int) -> None:
        """Count bytes that are kept; 429 if `Admission` has too many."""
        self._admission.acquire_bytes(num_bytes)
        self._num_bytes += num_bytes

    def release_bytes(self, num_bytes: int) -> None:
        """Stop counting bytes that are not kept any more."""
        self._num_bytes -= num_bytes
        self._admission.num_bytes -= num_bytes

    def release(self) -> None:
        """Release the slot and all its bytes."""
        self._admission.release(self, self._num_bytes)

    @asynccontextmanager
    async def waiting_for_client(self, until: float) -> AsyncIterator[None]:
        """Wait for the client to send or to receive; TimeoutError at `until`, or as soon as the slot is cancelled."""
        async with asyncio.timeout_at(until) as wait:
            self._waits.add(wait)
            self._update()
            try:
                yield
            finally:
                self._waits.discard(wait)
                self._update()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Mark time spent working, which does not count as waiting for the client."""
        self._num_working += 1
        self._update()
        try:
            yield
        finally:
            self._num_working -= 1
            self._update()

    def cancel(self) -> bool:
        """End all waits for the client; return whether there were any."""
        waits, self._waits = self._waits, set()
        for wait in waits:
            wait.reschedule(asyncio.get_running_loop().time())
        self._update()
        return bool(waits)

    def _update(self) -> None:
        now = time.monotonic()
        if self._waiting_since is not None:
            self._waited += now - self._waiting_since
        self._waiting_since = now if self._waits and not self._num_working else None


class RequestBody:
    """The body of one request. Reading raises 408, 413, 429 or ClientGoneError; the slot counts the bytes."""

    def __init__(self, request: Request, limits: Limits) -> None:
        """Prepare to read the body; 415 if it is compressed."""
        self._receive = request.receive
        self._slot: Slot = request.scope["slot"]
        self._declared = request.headers.get("content-length", "")
        self._limits = limits
        self._is_complete = False
        self._next_message: asyncio.Future[Any] | None = None
        self._taken = asyncio.Event()
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise ApiError(415, "unsupported_media_type", f"The body is encoded with {encoding!r}; send it as it is.")

    async def whole(self) -> bytes:
        """Read all of it."""
        counted = int(self._declared[:20]) if self._declared.isdecimal() else 0
        if counted > self._limits.max_body:
            raise self._too_large("The body")
        self._slot.acquire_bytes(counted)
        until = self._read_deadline()
        content = bytearray()
        while not self._is_complete:
            content += await self._read(until)
            if len(content) > self._limits.max_body:
                raise self._too_large("The body")
            if len(content) > counted:
                self._slot.acquire_bytes(len(content) - counted)
                counted = len(content)
        return bytes(content)

    async def lines(self) -> AsyncIterator[list[bytes]]:
        """Read it line by line; yield the complete lines that have arrived, without their ends, as soon as possible.

        The slot counts the bytes of these lines, including one for each end; the caller releases them.
        """
        rest = bytearray()
        until = self._read_deadline()
        while not self._is_complete:
            chunk = await self._read(until)
            self._slot.acquire_bytes(len(chunk))
            head, end, tail = chunk.rpartition(b"\n")
            rest += head
            if end:
                yield bytes(rest).split(b"\n")
                rest.clear()
                until = self._read_deadline()
            rest += tail
            if len(rest) > self._limits.max_body:
                raise self._too_large("A line")
        if rest:
            self._slot.acquire_bytes(1)
            yield [bytes(rest)]

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and cancel it and raise ClientGoneError if the client closes its connection."""
        working = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._until_gone())
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

    async def _until_gone(self) -> None:
        """Wait for the end of the connection, receiving one message of the body ahead of `whole` and `lines`."""
        while (await self._message())["type"] != "http.disconnect":
            while self._next_message is not None and self._next_message.done():
                if self._is_complete:  # it is no part of the body
                    self._next_message = None
                else:
                    self._taken.clear()
                    await self._taken.wait()

    async def _read(self, until: float) -> bytes:
        """Return the next chunk."""
        try:
            async with self._slot.waiting_for_client(until):
                message = await self._message()
        except TimeoutError as error:
            raise ApiError(
                408,
                "read_timeout",
                f"The body did not arrive in time: within {self._limits.read_timeout:g} seconds, or sooner if other "
                "requests need the slot.",
                headers={"Connection": "close"},
            ) from error
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self._next_message = None
        self._taken.set()
        self._is_complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk

    async def _message(self) -> Any:
        """Return the next message: the same one until `_read` takes it."""
        if self._next_message is None:
            self._next_message = asyncio.ensure_future(self._receive())
        return await asyncio.shield(self._next_message)

    def _read_deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._limits.read_timeout

    def _too_large(self, what: str) -> ApiError:
        return ApiError(
            413,
            "too_large",
            f"{what} has more than the {self._limits.max_body:,} bytes allowed. Send fewer or shorter texts, or many "
            "pairs as a stream of lines, application/x-ndjson.",
        )
