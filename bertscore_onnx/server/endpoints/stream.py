"""`POST /v1/score` with application/x-ndjson: one pair a line in, one score a line out, in order.

A line that cannot be scored is answered in place, by an error with the number of the line, and the stream goes on. What
concerns the stream as a whole, such as a deadline or a line without end, ends it: with an error that has no number, or
where nothing has been answered yet, with the status of that error. A stream that was scored to its end closes with a
line `{"done": true, …}`; where that line is missing, something was lost.

Memory is bounded: at most a few batches are under way, nothing more is read before their scores have been sent, and
nothing is sent that the client does not take.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.registry import Models
from bertscore_onnx.server.models.selection import Selection
from bertscore_onnx.server.requests.body import RequestBody
from bertscore_onnx.server.requests.chunks import cut, in_order, pair_tokens, score_chunk
from bertscore_onnx.server.requests.decoding import decode_line
from bertscore_onnx.server.requests.errors import ApiError, ClientGoneError, api_error_of, unexpected
from bertscore_onnx.server.requests.media_type import NDJSON
from bertscore_onnx.server.requests.record import record_of
from bertscore_onnx.server.requests.schemas import PairBody, StreamEnd

_log = logging.getLogger(__name__)
_SETTINGS = {"model", "rescale", "idf"}


@dataclass(frozen=True, slots=True)
class _Line:
    """One line that is not blank."""

    number: int
    pair: PairBody | ApiError
    tokens: int


class ScoreStream(Response):
    """The answer to one stream."""

    def __init__(self, request: Request, models: Models, limits: Limits) -> None:
        """Read the settings from the address; nothing of the body.

        Raises:
            ApiError: 422: the settings name something that there is not; 415: the body is compressed.
        """
        settings = request.query_params
        if unknown := sorted({*settings} - _SETTINGS):
            raise ApiError(422, "invalid", f"There is no setting {unknown[0]!r}; expected model, rescale or idf.")
        if len(settings) < len(settings.multi_items()):
            raise ApiError(422, "invalid", "A setting stands twice in the address; give it once.")
        model = models.model(settings.get("model"))
        super().__init__(media_type=NDJSON)
        del self.headers["content-length"]
        self._selection = Selection(model, settings.get("idf"), settings.get("rescale"))
        self._limits = limits
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

        async def emit(answers: bytes) -> None:
            await self._send(send, answers, more=True)

        try:
            await in_order(self._chunks(), self._work, emit)
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

    async def _chunks(self) -> AsyncIterator[Sequence[_Line]]:
        """Yield the lines in chunks of a batch at most: all that have come, without waiting for more."""
        async for contents in self._body.lines():
            lines = [line for content in contents if (line := self._read(content))]
            for chunk in cut([line.tokens for line in lines], self._limits.max_batch_tokens):
                yield lines[chunk]
            await asyncio.sleep(0)  # a client that sends faster than this reads must not keep others waiting

    def _read(self, content: bytes) -> _Line | None:
        """Read a line; None for a blank one."""
        self._lines += 1
        if not content.strip():
            return None
        limits = self._limits
        try:
            pair = decode_line(content, limits.max_pairs)
            tokens = pair_tokens(pair, self._selection.model.cut_at, limits.max_batch_tokens)
        except ApiError as error:
            return _Line(self._lines, error, 0)
        return _Line(self._lines, pair, tokens)

    async def _work(self, lines: Sequence[_Line]) -> bytes:
        """Score a chunk; return the lines to answer it with."""
        until = asyncio.get_running_loop().time() + self._limits.deadline
        pairs = [line.pair for line in lines if isinstance(line.pair, PairBody)]
        values = iter(await score_chunk(self._selection, pairs, until, patient=True) if pairs else [])
        self._record.pairs += len(pairs)
        self._errors += len(lines) - len(pairs)
        return b"".join(
            line.pair.line(line.number)
            if isinstance(line.pair, ApiError)
            else msgspec.json.encode(next(values)) + b"\n"
            for line in lines
        )

    async def _send(self, send: Send, lines: bytes, *, more: bool) -> None:
        """Send lines, and give up on a client that takes nothing in.

        The answer begins with the first of them and not earlier: some clients send their body when it is asked for.
        """
        try:
            async with asyncio.timeout(self._limits.read_timeout):
                if not self._has_begun:
                    self._has_begun = True
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": lines, "more_body": more})
        except TimeoutError as error:
            raise ClientGoneError from error
