"""Reads a request's body as it comes: no more bytes than allowed, and never waiting for ever."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from email.message import Message
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from bertscore_onnx.server.admission import Slot
from bertscore_onnx.server.errors import ApiError, ClientGoneError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.schemas import MatchBody, PairBody, ScoreBody, ScoreEnvelope

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


# Decodes the JSON bodies of requests, and says what is wrong with one, in which pair.


P = TypeVar("P", bound=PairBody)


def decode(content: bytes, form: type[T]) -> T:
    """Decode a body, or a line of a stream.

    Args:
        content: JSON in UTF-8.
        form: the struct it is to become.

    Raises:
        ApiError: 400: it is not JSON in UTF-8; 422: it is not such a struct; says which field is wrong, and how.
    """
    return _convert(_parse(content), form)


def decode_score_body(content: bytes, max_pairs: int) -> ScoreBody:
    """Decode the body of `POST /v1/score`.

    Raises:
        ApiError: 400: it is not JSON; 422: it is not a `ScoreBody`, or has too many pairs.
    """
    envelope = decode(content, ScoreEnvelope[msgspec.Raw])
    pairs: list[PairBody] = []
    total = 0
    for position, raw in enumerate(envelope.pairs):
        pairs.append(_to_pair(raw, max_pairs, position))
        total += len(pairs[-1].all_references)
        if total > max_pairs:
            raise _too_many(max_pairs, None)
    return ScoreBody(pairs, envelope.model, envelope.rescale, envelope.idf)


def decode_match_body(content: bytes, max_pairs: int) -> MatchBody:
    """Decode the body of `POST /v1/match`.

    Raises:
        ApiError: 400: it is not JSON; 422: it is not a `MatchBody`, or has too many references.
    """
    return _checked(decode(content, MatchBody), max_pairs)


def decode_line(content: bytes, max_pairs: int) -> PairBody:
    """Decode one line of a stream.

    Raises:
        ApiError: 400: it is not JSON; 422: it is not a `PairBody`, or has too many references.
    """
    return _to_pair(_parse(content), max_pairs)


def _parse(content: bytes) -> msgspec.Raw:
    """Check that a text is JSON to its end, whatever it says, so that a wrong type before is not found first."""
    try:
        content.decode()
        return msgspec.json.decode(content, type=msgspec.Raw)
    except UnicodeDecodeError as error:
        raise _malformed(f"The byte at offset {error.start} is not UTF-8.") from error
    except RecursionError as error:
        raise _malformed("It is nested too deeply.") from error
    except msgspec.DecodeError as error:
        raise _malformed(f"{error}.") from error


def _convert(raw: msgspec.Raw, form: type[T], pair: int | None = None) -> T:
    try:
        return msgspec.json.decode(raw, type=form)
    except msgspec.ValidationError as error:
        raise ApiError(422, "invalid", f"{error}.", pair=pair) from error


def _to_pair(raw: msgspec.Raw, max_pairs: int, position: int | None = None) -> PairBody:
    return _checked(_convert(raw, PairBody, position), max_pairs, position)


def _checked(pair: P, max_pairs: int, position: int | None = None) -> P:
    """Check what the struct of a pair does not say."""
    if (pair.reference is None) == (pair.references is None):
        raise ApiError(422, "invalid", "A pair needs either `reference` or `references`.", pair=position)
    if len(pair.all_references) > max_pairs:
        raise _too_many(max_pairs, position)
    return pair


def _malformed(reason: str) -> ApiError:
    return ApiError(400, "malformed_json", f"The body is not JSON. {reason}")


def _too_many(max_pairs: int, position: int | None) -> ApiError:
    return ApiError(
        422,
        "too_many_pairs",
        f"There are more than the {max_pairs:,} pairs of a candidate and a reference that are allowed. Send fewer at a "
        "time, or stream one candidate a line as application/x-ndjson.",
        pair=position,
    )


# The media types that endpoints take.


JSON = "application/json"
NDJSON = "application/x-ndjson"
OCTETS = "application/octet-stream"


def media_type(request: Request, *allowed: str) -> str:
    """Return the media type of a request's body.

    Raises:
        ApiError: 415: it is none of those allowed, or not in UTF-8.
    """
    header = Message()
    header["content-type"] = given = request.headers.get("content-type", "")
    found = header.get_content_type()
    charset = str(header.get_param("charset", "utf-8"))
    if found not in allowed or charset.lower() not in ("utf-8", "us-ascii"):
        raise ApiError(
            415,
            "unsupported_media_type",
            f"The body is of the type {given!r}; expected {' or '.join(allowed)} in UTF-8.",
        )
    return found
