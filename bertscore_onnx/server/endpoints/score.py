"""`POST /v1/score`: scores the pairs of one JSON body, or a stream of lines."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx.server.endpoints.stream import ScoreStream
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.registry import Models
from bertscore_onnx.server.models.selection import Selection
from bertscore_onnx.server.requests.body import RequestBody
from bertscore_onnx.server.requests.chunks import cut, in_order, pair_tokens, score_chunk
from bertscore_onnx.server.requests.decoding import decode_score_body
from bertscore_onnx.server.requests.errors import ApiError, json_response
from bertscore_onnx.server.requests.media_type import JSON, NDJSON, media_type
from bertscore_onnx.server.requests.record import record_of
from bertscore_onnx.server.requests.schemas import PairBody, ScoreAnswer, ScoreValue

T = TypeVar("T")


class ScoreEndpoint:
    """The endpoint."""

    def __init__(self, models: Models, limits: Limits) -> None:
        """Answer with these models, within these limits."""
        self._models = models
        self._limits = limits

    async def __call__(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            ApiError: it cannot be scored, or not now.
        """
        self._models.check_room()
        if media_type(request, JSON, NDJSON) == NDJSON:
            return ScoreStream(request, self._models, self._limits)
        if request.query_params:
            raise ApiError(422, "invalid", "Settings belong into the JSON body; only a stream has them in the address.")
        return await self._answer(request)

    async def _answer(self, request: Request) -> Response:
        record = record_of(request)
        body = RequestBody(request, self._limits)
        with record.stage("read"):
            content = await body.whole()
        asked = decode_score_body(content, self._limits.max_pairs)
        model = self._models.model(asked.model)
        record.model = model.name
        selection = Selection(model, asked.idf, asked.rescale)
        with record.stage("score"):
            scores = await body.unless_gone(self._score(selection, asked.pairs))
        record.pairs = len(scores)
        return json_response(ScoreAnswer(selection.signature, model.name, scores))

    async def _score(self, selection: Selection, pairs: list[PairBody]) -> list[ScoreValue]:
        until = asyncio.get_running_loop().time() + self._limits.deadline
        max_tokens = self._limits.max_batch_tokens
        sizes = [pair_tokens(pair, selection.model.cut_at, max_tokens, at) for at, pair in enumerate(pairs)]
        scores: list[ScoreValue] = []

        async def work(chunk: slice) -> list[ScoreValue]:
            return await score_chunk(selection, pairs[chunk], until, patient=chunk.start > 0)

        async def emit(values: list[ScoreValue]) -> None:
            scores.extend(values)

        await in_order(_each(cut(sizes, max_tokens)), work, emit)
        return scores


async def _each(values: Iterable[T]) -> AsyncIterator[T]:
    for value in values:
        yield value
