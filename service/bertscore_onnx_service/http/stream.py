"""A stream of pairs: `POST /v1/score/stream`, and `/v1/score` with application/x-ndjson.

Each line of the body is a pair, and each line of the answer its score, in the same order. A line that cannot be scored
is answered in its place with an error that has its number, and the stream continues. An error of the stream as a whole,
such as a deadline or a line without end, ends it: with an error that has no number or, if nothing has been answered
yet, with the status of that error. A stream that was scored to its end closes with a line `{"done": true, …}`; without
that line it is incomplete.

Memory is bounded: at most a few chunks are in progress, no more is read before their scores have been sent, and no more
is sent than the client receives. A stream with too many wrong lines is ended.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.text.texts import are_in_context
from bertscore_onnx_service.http.admission import RequestBody, Slot
from bertscore_onnx_service.http.answers import ScoreValue, StreamEnd, score_values
from bertscore_onnx_service.http.errors import ApiError, ClientGoneError, api_error_of, unexpected
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models
from bertscore_onnx_service.http.request_log import log_of
from bertscore_onnx_service.http.requests import PairBody, check_tokens, decode_line, to_pairs
from bertscore_onnx_service.http.work import WorkerQueues

MAX_WRONG_LINES = 1000
"""A stream ends when more lines cannot be scored."""

CHUNK_TOKENS = 4096
"""The most tokens of a chunk, unless a line has more. A client that has gone is noticed at the next chunk."""

_LINE_TOKENS = 16
"""The least that a line counts, so that a chunk has few lines even if they are empty or wrong."""

_AHEAD = 1
"""Chunks that wait to be sent, besides the one that is awaited and the one that is being added."""

_SETTINGS = {"model", "rescale", "idf"}

_log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some lines that are answered together; `pairs` are those that can be scored, tokenised."""

    lines: list[tuple[int, PairBody | ApiError]]
    pairs: Pairs
    num_bytes: int
    """The bytes that are not kept any more once the chunk is answered."""


class ScoreStream(Response):
    """The answer to one stream."""

    def __init__(self, request: Request, models: Models, limits: Limits, queues: WorkerQueues, kind: str) -> None:
        """Read the settings from the address, and nothing of the body; the answer has the media type `kind`."""
        settings = request.query_params
        if unknown := sorted({*settings} - _SETTINGS):
            raise ApiError(422, "invalid", f"There is no setting {unknown[0]!r}; expected model, rescale or idf.")
        if len(settings) < len(settings.multi_items()):
            raise ApiError(422, "invalid", "A setting is repeated in the address; give it once.")
        super().__init__(media_type=kind)
        del self.headers["content-length"]
        self._model = models.select(settings.get("model"), settings.get("idf"))
        self._rescaling = self._model.rescaling(settings.get("rescale"))
        self._limits = limits
        self._queues = queues
        self._slot: Slot = request.scope["slot"]
        self._body = RequestBody(request, limits)
        self._request_log = log_of(request)
        self._request_log.model = self._model.name
        self._num_lines = 0
        self._num_errors = 0
        self._has_begun = False
        self._signature = self._model.signature(self._rescaling, ())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer line by line; raise an error that comes before the first line is answered."""
        with self._request_log.stage("score"):
            last = await self._run(send)
        await self._send(send, last, more=False)

    async def _run(self, send: Send) -> bytes:
        """Score all lines and send the answers, except for the last line, which is returned."""

        async def emit(answered: tuple[bytes, int]) -> None:
            lines, num_bytes = answered
            await self._send(send, lines, more=True)
            self._slot.release_bytes(num_bytes)

        try:
            await self._body.unless_gone(in_order(self._chunks(), self._score, emit))
        except ClientGoneError:
            raise
        except Exception as error:
            if not self._has_begun:
                raise
            return self._ending(error)
        num_pairs = self._request_log.pairs
        signature = str(self._signature)
        return msgspec.json.encode(StreamEnd(True, num_pairs, self._num_errors, self._model.name, signature)) + b"\n"

    def _ending(self, error: Exception) -> bytes:
        """Return the last line of a stream that failed."""
        api_error = api_error_of(error)
        if api_error is None:
            _log.error("Request %s failed.", self._request_log.id, exc_info=error)
            api_error = unexpected(self._request_log.id)
        self._request_log.reason = api_error.detail.code
        return api_error.line(None)

    async def _chunks(self) -> AsyncIterator[_Chunk]:
        """Yield all lines that have arrived, without waiting for more, in chunks; 422 if too many are wrong."""
        async for contents in self._body.lines():
            num_bytes = sum(map(len, contents)) + len(contents)
            until = asyncio.get_running_loop().time() + self._limits.deadline
            with self._slot.working():
                chunks = await self._queues.run(num_bytes, partial(self._prepare, contents, num_bytes), until)
            if not chunks:
                self._slot.release_bytes(num_bytes)
            for chunk in chunks:
                yield chunk
            if self._num_errors > MAX_WRONG_LINES:
                raise ApiError(422, "too_many_errors", f"More than {MAX_WRONG_LINES:,} lines cannot be scored.")

    def _prepare(self, contents: list[bytes], num_bytes: int) -> list[_Chunk]:
        """Decode and tokenise lines, unless too many are wrong."""
        lines: list[tuple[int, PairBody | ApiError]] = []
        for content in contents:
            self._num_lines += 1
            if self._num_errors <= MAX_WRONG_LINES and not content.isspace() and content:
                lines.append((self._num_lines, self._or_error(partial(decode_line, content, self._limits.max_pairs))))
        # a stream is not refused when the queue is full, but waits
        tokenised = self._model.batcher.tokenise(self._to_pairs(lines), check_capacity=False)
        if are_in_context(tokenised.texts):
            self._signature = self._model.signature(self._rescaling, tokenised.texts)
        sizes = iter(tokenised.num_tokens.tolist())
        counts = []
        for position, (number, line) in enumerate(lines):
            tokens = 0
            if isinstance(line, PairBody):
                tokens = next(sizes)
                lines[position] = number, self._or_error(partial(self._checked, line, tokens))
            counts.append(max(tokens, _LINE_TOKENS))
        slices = [*cut(counts, min(CHUNK_TOKENS, self._limits.max_batch_tokens))]
        chunks = []
        for part in slices:
            pairs = self._to_pairs(lines[part])
            pairs = replace(tokenised, candidates=pairs.candidates, references=pairs.references)
            chunks.append(_Chunk(lines[part], pairs, num_bytes if part is slices[-1] else 0))
        return chunks

    def _to_pairs(self, lines: Iterable[tuple[int, PairBody | ApiError]]) -> Pairs:
        """Return the pairs of the lines that can be scored."""
        return to_pairs([line for _, line in lines if isinstance(line, PairBody)])

    def _checked(self, pair: PairBody, tokens: int) -> PairBody:
        check_tokens(tokens, self._limits.max_batch_tokens)
        return pair

    def _or_error(self, make: Callable[[], PairBody]) -> PairBody | ApiError:
        """Return the pair of a line, or the error that answers it."""
        try:
            return make()
        except ApiError as error:
            self._num_errors += 1
            return error

    async def _score(self, chunk: _Chunk) -> tuple[bytes, int]:
        """Score a chunk; return the lines that answer it, and its bytes."""
        until = asyncio.get_running_loop().time() + self._limits.deadline
        values: Iterator[ScoreValue] = iter([])
        if len(chunk.pairs.candidates):
            with self._slot.working():
                scores = await self._model.score(chunk.pairs, self._rescaling, until, self._request_log.client)
            values = iter(score_values(scores))
        self._request_log.pairs += len(chunk.pairs.candidates)
        answers = b"".join(
            line.line(number) if isinstance(line, ApiError) else msgspec.json.encode(next(values)) + b"\n"
            for number, line in chunk.lines
        )
        return answers, chunk.num_bytes

    async def _send(self, send: Send, lines: bytes, *, more: bool) -> None:
        """Send lines; the answer begins with the first ones, as some clients wait for it before they send a body."""
        if not self._has_begun:
            self._has_begun = True
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": lines, "more_body": more})


def cut(sizes: Iterable[int], max_size: int) -> Iterator[slice]:
    """Cut a sequence into slices with a total of at most `max_size`, each as long as possible."""
    start = end = total = 0
    for size in sizes:
        if end > start and total + size > max_size:
            yield slice(start, end)
            start, total = end, 0
        total += size
        end += 1
    if end > start:
        yield slice(start, end)


async def in_order(
    chunks: AsyncIterator[T],
    work: Callable[[T], Coroutine[Any, Any, U]],
    emit: Callable[[U], Awaitable[None]],
) -> None:
    """Work on chunks as they arrive, and emit the results in the same order.

    At most three chunks are in progress; then no more is taken from `chunks` until a result has been emitted. An
    ApiError of `chunks` is raised after the results of the chunks before it; any other error at once, and the rest is
    cancelled.
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
