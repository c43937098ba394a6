"""`POST /v1/score/stream`, and `/v1/score` with application/x-ndjson: a pair a line in, a score a line out, in order.

The address of its own is for clients made from the OpenAPI document, which know one kind of body for an address, and
often no NDJSON: it takes application/octet-stream too.

A line that cannot be scored is answered in place, by an error with the number of the line, and the stream goes on. What
concerns the stream as a whole, such as a deadline or a line without end, ends it: with an error that has no number, or
where nothing has been answered yet, with the status of that error. A stream that was scored to its end closes with a
line `{"done": true, …}`; where that line is missing, something was lost.

Memory is bounded: at most a few chunks are under way, nothing more is read before their scores have been sent, and
nothing is sent that the client does not take. A stream of too many wrong lines is ended.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.server.admission import Slot
from bertscore_onnx.server.errors import ApiError, ClientGoneError, api_error_of, unexpected
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models import Models, Selection
from bertscore_onnx.server.request_log import record_of
from bertscore_onnx.server.requests import NDJSON, OCTETS, RequestBody, decode_line, media_type
from bertscore_onnx.server.schemas import PairBody, ScoreValue, StreamEnd
from bertscore_onnx.server.work import Lanes, check_tokens, cut, in_order, score_chunk, to_pairs, tokenised

_log = logging.getLogger(__name__)
_SETTINGS = {"model", "rescale", "idf"}


MAX_WRONG_LINES = 1000
"""After as many lines that cannot be scored a stream ends."""

CHUNK_TOKENS = 4096
"""The most tokens of a chunk, unless a line has more. That a client has gone shows at the next chunk at the latest."""

_LINE_TOKENS = 16
"""What a line counts for at least, so that a chunk has few lines even where they are empty or wrong."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One line that is not blank."""

    number: int
    pair: PairBody | ApiError
    tokens: int = _LINE_TOKENS


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some lines that are answered together."""

    lines: list[_Line]

    pairs: Pairs
    """Those of the lines that can be scored, tokenised."""

    num_bytes: int
    """The bytes that are not needed any more once it is answered."""


class StreamEndpoint:
    """The endpoint that takes nothing but streams."""

    def __init__(self, models: Models, limits: Limits, lanes: Lanes) -> None:
        """Answer with these models, within these limits, decoding and tokenising in these lanes."""
        self._models = models
        self._limits = limits
        self._lanes = lanes

    async def __call__(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            ApiError: it is no stream, or not now.
        """
        kind = media_type(request, NDJSON, OCTETS)
        return ScoreStream(request, self._models, self._limits, self._lanes, kind)


class ScoreStream(Response):
    """The answer to one stream."""

    def __init__(self, request: Request, models: Models, limits: Limits, lanes: Lanes, kind: str = NDJSON) -> None:
        """Read the settings from the address; nothing of the body.

        Args:
            request: the request.
            models: the models.
            limits: the limits.
            lanes: where what clients send is decoded and tokenised.
            kind: the media type of the answer.

        Raises:
            ApiError: 422: the settings name something that there is not; 415: the body is compressed.
        """
        settings = request.query_params
        if unknown := sorted({*settings} - _SETTINGS):
            raise ApiError(422, "invalid", f"There is no setting {unknown[0]!r}; expected model, rescale or idf.")
        if len(settings) < len(settings.multi_items()):
            raise ApiError(422, "invalid", "A setting stands twice in the address; give it once.")
        model = models.model(settings.get("model"))
        super().__init__(media_type=kind)
        del self.headers["content-length"]
        self._selection = Selection(model, settings.get("idf"), settings.get("rescale"))
        self._limits = limits
        self._lanes = lanes
        self._slot: Slot = request.scope["slot"]
        self._body = RequestBody(request, limits)
        self._record = record_of(request)
        self._record.model = model.name
        self._lines = 0
        self._errors = 0
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer line by line.

        Raises:
            ApiError: the stream failed before the first line was answered.
        """
        with self._record.stage("score"):
            last = await self._run(send)
        await self._send(send, last, more=False)

    async def _run(self, send: Send) -> bytes:
        """Score and send all lines; return the line to close with."""

        async def emit(answered: tuple[bytes, int]) -> None:
            lines, num_bytes = answered
            await self._send(send, lines, more=True)
            self._slot.release(num_bytes)

        try:
            await self._body.unless_gone(in_order(self._chunks(), self._work, emit))
        except ClientGoneError:
            raise
        except Exception as error:
            if not self._has_begun:
                raise
            return self._ending(error)
        record, selection = self._record, self._selection
        end = StreamEnd(True, record.pairs, self._errors, selection.model.name, selection.signature)
        return msgspec.json.encode(end) + b"\n"

    def _ending(self, error: Exception) -> bytes:
        """Return the line that ends a stream before its time."""
        api_error = error if isinstance(error, ApiError) else None
        if isinstance(error, BertScoreOnnxError):
            api_error = api_error_of(error)
        if api_error is None:
            _log.error("Request %s failed.", self._record.id, exc_info=error)
            api_error = unexpected(self._record.id)
        self._record.reason = api_error.detail.code
        return api_error.line(None)

    async def _chunks(self) -> AsyncIterator[_Chunk]:
        """Yield the lines in chunks of a batch at most: all that have come, without waiting for more.

        Raises:
            ApiError: 422: there were too many wrong lines.
        """
        async for contents in self._body.lines():
            num_bytes = sum(map(len, contents)) + len(contents)
            until = asyncio.get_running_loop().time() + self._limits.deadline
            with self._slot.working():
                chunks = await self._lanes.run(num_bytes, partial(self._read, contents, num_bytes), until)
            if not chunks:
                self._slot.release(num_bytes)
            for chunk in chunks:
                yield chunk
            if self._errors > MAX_WRONG_LINES:
                raise ApiError(422, "too_many_errors", f"More than {MAX_WRONG_LINES:,} lines cannot be scored.")

    def _read(self, contents: list[bytes], num_bytes: int) -> list[_Chunk]:
        """Decode and tokenise lines, as far as there are not too many wrong ones."""
        lines = []
        for content in contents:
            self._lines += 1
            if self._errors <= MAX_WRONG_LINES and not content.isspace() and content:
                lines.append(self._decoded(content))
        pairs = tokenised(self._selection, [line.pair for line in lines if isinstance(line.pair, PairBody)])
        sizes = iter(pairs.num_tokens.tolist())
        lines = [self._sized(line, next(sizes)) if isinstance(line.pair, PairBody) else line for line in lines]
        max_tokens = min(CHUNK_TOKENS, self._limits.max_batch_tokens)
        parts = [*cut([line.tokens for line in lines], max_tokens)]
        return [_chunk(lines[part], pairs, num_bytes if part is parts[-1] else 0) for part in parts]

    def _decoded(self, content: bytes) -> _Line:
        try:
            return _Line(self._lines, decode_line(content, self._limits.max_pairs))
        except ApiError as error:
            self._errors += 1
            return _Line(self._lines, error)

    def _sized(self, line: _Line, tokens: int) -> _Line:
        try:
            check_tokens(tokens, self._limits.max_batch_tokens)
        except ApiError as error:
            self._errors += 1
            return _Line(line.number, error)
        return _Line(line.number, line.pair, max(tokens, _LINE_TOKENS))

    async def _work(self, chunk: _Chunk) -> tuple[bytes, int]:
        """Score a chunk; return the lines to answer it with, and its bytes."""
        until = asyncio.get_running_loop().time() + self._limits.deadline
        values: Iterator[ScoreValue] = iter([])
        if len(chunk.pairs.candidates):
            client = self._record.client
            with self._slot.working():
                values = iter(await score_chunk(self._selection, chunk.pairs, until, client))
        self._record.pairs += len(chunk.pairs.candidates)
        answers = b"".join(
            line.pair.line(line.number)
            if isinstance(line.pair, ApiError)
            else msgspec.json.encode(next(values)) + b"\n"
            for line in chunk.lines
        )
        return answers, chunk.num_bytes

    async def _send(self, send: Send, lines: bytes, *, more: bool) -> None:
        """Send lines; the answer begins with the first: some clients send their body when it is asked for."""
        if not self._has_begun:
            self._has_begun = True
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": lines, "more_body": more})


def _chunk(lines: list[_Line], tokenised_pairs: Pairs, num_bytes: int) -> _Chunk:
    bodies = [line.pair for line in lines if isinstance(line.pair, PairBody)]
    return _Chunk(lines, replace(to_pairs(bodies), token_ids=tokenised_pairs.token_ids), num_bytes)
