"""`POST /v1/score`: scores the pairs of one JSON body, or a stream of lines."""

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.server.endpoints.stream import ScoreStream
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.registry import Models
from bertscore_onnx.server.models.selection import Selection
from bertscore_onnx.server.requests.body import RequestBody
from bertscore_onnx.server.requests.chunks import check_tokens, score_chunk, tokenised
from bertscore_onnx.server.requests.decoding import decode_score_body
from bertscore_onnx.server.requests.errors import ApiError, json_response
from bertscore_onnx.server.requests.lanes import Lanes
from bertscore_onnx.server.requests.media_type import JSON, NDJSON, media_type
from bertscore_onnx.server.requests.record import RequestRecord, record_of
from bertscore_onnx.server.requests.schemas import ScoreAnswer


class ScoreEndpoint:
    """The endpoint."""

    def __init__(self, models: Models, limits: Limits, lanes: Lanes, check_room: Callable[[], None]) -> None:
        """Answer with these models, within these limits.

        Args:
            models: the models.
            limits: the limits.
            lanes: where what clients send is decoded and tokenised.
            check_room: raises what to answer where nothing can be scored now.
        """
        self._models = models
        self._limits = limits
        self._lanes = lanes
        self._check_room = check_room

    async def __call__(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            ApiError: it cannot be scored, or not now.
        """
        if media_type(request, JSON, NDJSON) == NDJSON:
            return ScoreStream(request, self._models, self._limits, self._lanes)
        if request.query_params:
            raise ApiError(422, "invalid", "Settings belong into the JSON body; only a stream has them in the address.")
        record = record_of(request)
        body = RequestBody(request, self._limits)
        with record.stage("read"):
            content = await body.whole()
        self._check_room()  # others may have come in while it was read
        with record.stage("score"):
            return json_response(await body.unless_gone(self._score(content, record)))

    async def _score(self, content: bytes, record: RequestRecord) -> ScoreAnswer:
        until = asyncio.get_running_loop().time() + self._limits.deadline
        selection, pairs = await self._lanes.run(len(content), partial(self._prepare, content), until)
        record.model = selection.model.name
        scores = await score_chunk(selection, pairs, until, record.client)
        record.pairs = len(scores)
        return ScoreAnswer(selection.signature, selection.model.name, scores)

    def _prepare(self, content: bytes) -> tuple[Selection, Pairs]:
        """Decode a body, and tokenise its texts."""
        asked = decode_score_body(content, self._limits.max_pairs)
        selection = Selection(self._models.model(asked.model), asked.idf, asked.rescale)
        selection.slot.batcher.check_room()
        pairs = tokenised(selection, asked.pairs)
        for position, tokens in enumerate(pairs.num_tokens.tolist()):
            check_tokens(tokens, self._limits.max_batch_tokens, position)
        return selection, pairs
