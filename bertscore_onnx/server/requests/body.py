"""Reads a request's body as it comes: no more bytes than allowed, and never waiting for ever."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from bertscore_onnx.server.admission import Slot
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.requests.errors import ApiError, ClientGoneError

T = TypeVar("T")


class RequestBody:
    """The body of one request."""

    def __init__(self, request: Request, limits: Limits) -> None:
        """Take a request whose body nobody has read.

        Raises:
            ApiError: 415: the body is compressed.
        """
        self._receive = request.receive
        self._slot: Slot = request.scope["slot"]
        self._declared = request.headers.get("content-length", "")
        self._limits = limits
        self._is_complete = False
        self._coming: asyncio.Future[Any] | None = None
        self._taken = asyncio.Event()
        encoding = request.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise ApiError(415, "unsupported_media_type", f"The body is encoded with {encoding!r}; send it as it is.")

    async def whole(self) -> bytes:
        """Read all of it; its slot holds the bytes.

        Raises:
            ApiError: 413: it is too large; 408: it took too long; 429: there is no room for its bytes.
            ClientGoneError: the connection was closed.
        """
        declared = int(self._declared[:20]) if self._declared.isdecimal() else 0
        if declared > self._limits.max_body:
            raise self._too_large("The body")
        self._slot.hold(declared)
        until = self._latest()
        content = bytearray()
        while not self._is_complete:
            content += await self._next(until)
            if len(content) > self._limits.max_body:
                raise self._too_large("The body")
            if len(content) > declared:
                self._slot.hold(len(content) - declared)
                declared = len(content)
        return bytes(content)

    async def lines(self) -> AsyncIterator[list[bytes]]:
        """Read it line by line; yields the lines that have come in so far, without their ends, as soon as there are.

        Its slot holds the bytes of what was yielded, an end for each line included; release them when they are gone.

        Raises:
            ApiError: 413: a line is too long; 408: the next one took too long; 429: there is no room for its bytes.
            ClientGoneError: the connection was closed.
        """
        rest = bytearray()
        until = self._latest()
        while not self._is_complete:
            chunk = await self._next(until)
            self._slot.hold(len(chunk))
            head, end, tail = chunk.rpartition(b"\n")
            rest += head
            if end:
                yield bytes(rest).split(b"\n")
                rest.clear()
                until = self._latest()
            rest += tail
            if len(rest) > self._limits.max_body:
                raise self._too_large("A line")
        if rest:
            self._slot.hold(1)
            yield [bytes(rest)]

    async def unless_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work, and stop it where the client goes away.

        Raises:
            ClientGoneError: the connection was closed.
        """
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
            await asyncio.wait({working, gone})  # whose errors, if any, count no more
            _ = working.cancelled() or working.exception()

    async def _until_gone(self) -> None:
        """Wait for the end of the connection: one message of the body is received ahead of who reads it."""
        while (await self._message())["type"] != "http.disconnect":
            while self._coming is not None and self._coming.done():
                if self._is_complete:  # it is no part of the body
                    self._coming = None
                else:
                    self._taken.clear()
                    await self._taken.wait()

    async def _next(self, until: float) -> bytes:
        """Return what comes next."""
        try:
            async with self._slot.client_turn(until):
                message = await self._message()
        except TimeoutError as error:
            raise ApiError(
                408,
                "read_timeout",
                f"The body did not come in time: within {self._limits.read_timeout:g} seconds, or sooner where all "
                "requests that may be in progress are.",
                headers={"Connection": "close"},
            ) from error
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self._coming = None
        self._taken.set()
        self._is_complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk

    async def _message(self) -> Any:
        """Return the message that comes next, the same until it is taken."""
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._receive())
        return await asyncio.shield(self._coming)

    def _latest(self) -> float:
        return asyncio.get_running_loop().time() + self._limits.read_timeout

    def _too_large(self, what: str) -> ApiError:
        return ApiError(
            413,
            "too_large",
            f"{what} has more than the {self._limits.max_body:,} bytes allowed. Send fewer or shorter texts, or many "
            "pairs as a stream of lines, application/x-ndjson.",
        )
