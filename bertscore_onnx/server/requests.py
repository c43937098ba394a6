"""The bodies of requests: read with bounds on bytes and time, decoded, and checked pair by pair."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from email.message import Message
from typing import Any, TypeVar

import msgspec
import numpy as np
from starlette.requests import Request

from bertscore_onnx.scoring.inputs import Pairs, Texts, singles
from bertscore_onnx.server.admission import Slot
from bertscore_onnx.server.errors import ApiError, ClientGoneError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.schemas import MatchBody, PairBody, ScoreBody, ScoreEnvelope

JSON = "application/json"
NDJSON = "application/x-ndjson"
OCTETS = "application/octet-stream"

T = TypeVar("T")
P = TypeVar("P", bound=PairBody)


def media_type(request: Request, *allowed: str) -> str:
    """Return the media type of a request's body; 415 if it is not allowed, or not in UTF-8."""
    header = Message()
    header["content-type"] = sent = request.headers.get("content-type", "")
    found = header.get_content_type()
    charset = str(header.get_param("charset", "utf-8"))
    if found not in allowed or charset.lower() not in ("utf-8", "us-ascii"):
        raise ApiError(
            415,
            "unsupported_media_type",
            f"The body is of the type {sent!r}; expected {' or '.join(allowed)} in UTF-8.",
        )
    return found


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
        """Return the next message, which is the same one until `_read` takes it."""
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


def decode_score_body(content: bytes, max_pairs: int) -> ScoreBody:
    """Decode the body of `POST /v1/score`; 400 if it is not JSON, 422 if it is something else or has too many pairs."""
    envelope = _convert(_parse(content), ScoreEnvelope[msgspec.Raw])
    pairs: list[PairBody] = []
    total = 0
    for position, raw in enumerate(envelope.pairs):
        pairs.append(_checked(_convert(raw, PairBody, position), max_pairs, position))
        total += len(pairs[-1].all_references)
        if total > max_pairs:
            raise _too_many(max_pairs, None)
    return ScoreBody(pairs, envelope.model, envelope.rescale, envelope.idf)


def decode_match_body(content: bytes, max_pairs: int) -> MatchBody:
    """Decode the body of `POST /v1/match`, with the errors of `decode_score_body`."""
    return _checked(_convert(_parse(content), MatchBody), max_pairs)


def decode_line(content: bytes, max_pairs: int) -> PairBody:
    """Decode one line of a stream, with the errors of `decode_score_body`."""
    return _checked(_convert(_parse(content), PairBody), max_pairs)


def to_pairs(bodies: Sequence[PairBody]) -> Pairs:
    """Return decoded pairs in the form that a scorer takes."""
    references = [pair.all_references for pair in bodies]
    counts = np.array([*map(len, references)], dtype=np.int64)
    texts = [text for group in references for text in group]
    return Pairs(singles([pair.candidate for pair in bodies]), Texts(texts, counts))


def check_tokens(tokens: int, max_tokens: int, position: int | None = None) -> None:
    """Raise 422 if a candidate and its references have too many tokens."""
    if tokens > max_tokens:
        raise ApiError(
            422,
            "too_long",
            f"The candidate and its references have {tokens:,} tokens together; at most {max_tokens:,} are scored. "
            "Give fewer or shorter references.",
            pair=position,
        )


def _parse(content: bytes) -> msgspec.Raw:
    """Check that a text is JSON to its end, so that this is reported rather than a wrong type before."""
    try:
        content.decode()
        return msgspec.json.decode(content, type=msgspec.Raw)
    except UnicodeDecodeError as error:
        raise _malformed(f"The byte at offset {error.start} is not UTF-8.") from error
    except RecursionError as error:
        raise _malformed("It is nested too deeply.") from error
    except msgspec.DecodeError as error:
        raise _malformed(f"{error}.") from error


def _convert(raw: msgspec.Raw, form: type[T], position: int | None = None) -> T:
    try:
        return msgspec.json.decode(raw, type=form)
    except msgspec.ValidationError as error:
        raise ApiError(422, "invalid", f"{error}.", pair=position) from error


def _checked(pair: P, max_pairs: int, position: int | None = None) -> P:
    """Return a pair, after checks that its struct does not express."""
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
