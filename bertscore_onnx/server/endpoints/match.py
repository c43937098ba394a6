"""`POST /v1/match`: the score of one pair, and the similarities behind it."""

import asyncio
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.registry import Models
from bertscore_onnx.server.models.selection import Selection
from bertscore_onnx.server.requests.body import RequestBody
from bertscore_onnx.server.requests.chunks import score_chunk
from bertscore_onnx.server.requests.decoding import decode
from bertscore_onnx.server.requests.errors import ApiError, json_response
from bertscore_onnx.server.requests.media_type import JSON, media_type
from bertscore_onnx.server.requests.record import record_of
from bertscore_onnx.server.requests.schemas import MatchAnswer, MatchBody, PairBody
from bertscore_onnx.similarity import TokenSimilarity, token_similarity

MAX_TOKENS = 128
"""Tokens of either side: the answer grows with their product."""


class MatchEndpoint:
    """The endpoint."""

    def __init__(self, models: Models, limits: Limits) -> None:
        """Answer with these models, within these limits."""
        self._models = models
        self._limits = limits
        self._one_at_a_time = asyncio.Lock()  # it passes by the batcher, which has the better claim to the processor

    async def __call__(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            ApiError: it cannot be scored, or not now.
        """
        media_type(request, JSON)
        record = record_of(request)
        body = RequestBody(request, self._limits)
        with record.stage("read"):
            content = await body.whole()
        asked = decode(content, MatchBody)
        selection = Selection(self._models.model(asked.model), None, asked.rescale)
        record.model = selection.model.name
        with record.stage("score"):
            answer = await body.unless_gone(self._match(selection, asked.candidate, asked.reference))
        record.pairs = 1
        return json_response(answer)

    async def _match(self, selection: Selection, candidate: str, reference: str) -> MatchAnswer:
        until = asyncio.get_running_loop().time() + self._limits.deadline
        try:
            async with asyncio.timeout_at(until), self._one_at_a_time:
                found = await asyncio.to_thread(self._similarities, selection, candidate, reference)
        except TimeoutError as error:
            raise ApiError(504, "deadline", f"There was no answer within {self._limits.deadline:g} s.") from error
        longest = max(found.similarity.shape)
        if longest > MAX_TOKENS:
            raise ApiError(
                422, "too_long", f"A text has {longest} tokens; similarities are shown for at most {MAX_TOKENS}."
            )
        [score] = await score_chunk(selection, [PairBody(candidate, reference)], until, patient=False)
        return MatchAnswer(
            selection.signature,
            selection.model.name,
            score,
            found.candidate,
            found.reference,
            _rounded(found.similarity),
            _rounded(found.candidate_weights),
            _rounded(found.reference_weights),
        )

    def _similarities(self, selection: Selection, candidate: str, reference: str) -> TokenSimilarity:
        return token_similarity(selection.slot.scorer, selection.model.token_names, candidate, reference)


def _rounded(values: NDArray[np.float32]) -> Any:
    return values.astype(np.float64).round(4).tolist()
