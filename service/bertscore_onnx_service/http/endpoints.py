"""Endpoints of the server.

`ScoringEndpoints` scores and matches; `StatusEndpoints` tells the state of the server.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx.errors import DeadlineError
from bertscore_onnx.matching.rescaling import Rescaling
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.similarity import match_html, pair_similarities
from bertscore_onnx.text.texts import Text, are_in_context, bare_texts
from bertscore_onnx_service.http.admission import (
    Admission,
    Slot,
    WorkerPool,
    read_body,
    unless_gone,
)
from bertscore_onnx_service.http.bodies import (
    Health,
    MatchAnswer,
    MatchBody,
    ModelList,
    ScoreAnswer,
    ScoreBody,
    ScoreValue,
    check_tokens,
    decode_match_body,
    decode_score_body,
    score_values,
    to_pairs,
)
from bertscore_onnx_service.http.errors import ApiError, json_response
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.metrics import CONTENT_TYPE, Metrics
from bertscore_onnx_service.http.models import Model, Models
from bertscore_onnx_service.http.request_log import RequestLog, log_of

MAX_MATCH_TOKENS = 128
"""Tokens of either text of a match: the answer grows with their product."""

B = TypeVar("B", ScoreBody, MatchBody)

Work = Callable[[bytes, RequestLog], Coroutine[Any, Any, msgspec.Struct]]
"""Answers the content of a body, and logs the request."""


class ScoringEndpoints:
    """`POST /v1/score` and `/v1/match`."""

    def __init__(self, models: Models, limits: Limits, pool: WorkerPool) -> None:
        """Score with these models.

        Bodies are decoded and tokenised in the worker pool.
        """
        self._models = models
        self._limits = limits
        self._pool = pool
        # All similarities have one thread: they do not pass through the batcher, which comes first.
        self._similarity_thread = ThreadPoolExecutor(1, "bertscore-match-endpoint")

    async def score(self, request: Request) -> Response:
        """Score the pairs of a body."""
        if request.query_params:
            message = "Settings belong into the JSON body, not into the address."
            raise ApiError(422, "invalid", message)
        return await self._answer(request, self._score)

    async def match(self, request: Request) -> Response:
        """Score one pair, and return the similarities of its tokens."""
        return await self._answer(request, self._match)

    async def _answer(self, request: Request, work: Work) -> Response:
        """Read a body and answer it, unless the client goes away."""
        _check_media_type(request)
        log = log_of(request)
        slot: Slot = request.scope["slot"]
        async with slot.until_drained():
            with log.stage("read"):
                content = await read_body(request, self._limits)
            with log.stage("score"):
                answer = await unless_gone(request, work(content, log))
                return json_response(answer)

    async def _score(self, content: bytes, log: RequestLog) -> ScoreAnswer:
        """Return the scores of a body's pairs."""
        until = asyncio.get_running_loop().time() + self._limits.deadline
        prepare = partial(self._prepare, content, decode_score_body)
        _, model, rescaling, pairs = await self._pool.run(len(content), prepare, until)
        log.model = model.name
        scores = await model.score(pairs, rescaling, until, log.client)
        log.pairs = len(pairs.candidates)
        signature = str(model.signature(rescaling, pairs))
        return ScoreAnswer(signature, model.name, score_values(scores))

    async def _match(self, content: bytes, log: RequestLog) -> MatchAnswer:
        """Return the score and the similarities of a body's pair."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limits.deadline
        prepare = partial(self._prepare, content, decode_match_body)
        body, model, rescaling, pairs = await self._pool.run(len(content), prepare, until)
        log.model = model.name
        if are_in_context(pairs.texts):
            message = "The matches of texts in a context are not shown; `/v1/score` scores them."
            raise ApiError(422, "invalid", message)
        scores = await model.score(pairs, rescaling, until, log.client)
        [score] = score_values(scores)
        log.pairs = 1

        # Only the similarities with the best reference are computed, which the scores tell.
        candidate, *references = pairs.texts
        reference = references[score.best_reference]
        reason = _too_long(pairs, candidate, reference)
        if reason:
            signature = str(model.signature(rescaling, pairs))
            return MatchAnswer(signature, model.name, score, reason)
        [bare_candidate, bare_reference] = bare_texts([candidate, reference])
        texts = (bare_candidate, bare_reference)
        work = partial(_matches, model, rescaling, pairs, texts, score, as_html=body.html)
        try:
            async with asyncio.timeout_at(until):
                return await loop.run_in_executor(self._similarity_thread, work)
        except TimeoutError as error:
            raise DeadlineError("The similarities were not computed in time.") from error

    def _prepare(
        self,
        content: bytes,
        decode: Callable[[bytes, int], B],
    ) -> tuple[B, Model, Rescaling, Pairs]:
        """Decode a body, and tokenise its texts."""
        body = decode(content, self._limits.max_pairs)
        model = self._models.select(body.model, body.idf)
        rescaling = model.rescaling(body.rescale)
        pairs = model.batcher.tokenise(to_pairs(body.pairs))
        for position, tokens in enumerate(pairs.num_tokens.tolist()):
            check_tokens(tokens, self._limits.max_batch_tokens, position)
        return body, model, rescaling, pairs


def _matches(
    model: Model,
    rescaling: Rescaling,
    pairs: Pairs,
    texts: tuple[str, str],
    score: ScoreValue,
    *,
    as_html: bool,
) -> MatchAnswer:
    """Return the answer for a pair of a candidate and its best reference."""
    with model.scorer.with_rescaling(rescaling.language, allow_fp32_baseline=True) as scorer:
        [pair] = pair_similarities(scorer, model.token_names, [texts])
    signature = str(model.signature(rescaling, pairs))
    answer = partial(MatchAnswer, signature, model.name, score)
    if as_html:
        return answer(html=match_html(pair, with_matrix=True))
    candidate_matches = [match.position for match in pair.candidate_matches]
    reference_matches = [match.position for match in pair.reference_matches]
    return answer(
        candidate=pair.candidate,
        reference=pair.reference,
        similarity=pair.similarity.tolist(),
        candidate_weights=pair.candidate_weights.tolist(),
        reference_weights=pair.reference_weights.tolist(),
        candidate_special=pair.candidate_is_special.tolist(),
        reference_special=pair.reference_is_special.tolist(),
        candidate_matches=candidate_matches,
        reference_matches=reference_matches,
    )


def _too_long(pairs: Pairs, candidate: Text, reference: Text) -> str | None:
    """Return which text has too many tokens for a matrix; None if neither."""
    for name, text in (("candidate", candidate), ("reference", reference)):
        tokenised = (pairs.tokenised or {})[text]
        num_tokens = len(tokenised.ids)
        if num_tokens > MAX_MATCH_TOKENS:
            more = "more than " if tokenised.is_truncated else ""
            limit = f"matches are shown for at most {MAX_MATCH_TOKENS}"
            return f"The {name} has {more}{num_tokens:,} tokens; {limit}."
    return None


def _check_media_type(request: Request) -> None:
    """Raise 415 unless a body is JSON in UTF-8."""
    sent = request.headers.get("content-type", "")
    header = Message()
    header["content-type"] = sent
    charset = str(header.get_param("charset", "utf-8"))
    is_utf_8 = charset.lower() in ("utf-8", "us-ascii")
    if header.get_content_type() != "application/json" or not is_utf_8:
        message = f"The body is of the type {sent!r}; expected application/json in UTF-8."
        raise ApiError(415, "unsupported_media_type", message)


class StatusEndpoints:
    """`GET /health/live`, `/health/ready`, `/v1/models` and `/metrics`."""

    def __init__(self, models: Models, admission: Admission, metrics: Metrics) -> None:
        """Report on these."""
        self._models = models
        self._admission = admission
        self._metrics = metrics

    async def live(self, request: Request) -> Response:
        """Return whether the process works.

        If not, it has to be restarted, unless it stops anyway.
        """
        reasons: list[str] = []
        if self._admission.is_draining:
            return _health("live", reasons)
        for model in self._models:
            if not model.batcher.live:
                reasons.append(f"The worker of {model} hangs or fails.")
        return _health("live", reasons)

    async def ready(self, request: Request) -> Response:
        """Return whether a request sent now would be scored, and if not, why."""
        reasons = []
        if self._admission.is_draining:
            reasons.append("The server is stopping.")
        for model in self._models:
            if not model.batcher.ready:
                reasons.append(f"No worker is ready for {model}.")
        return _health("ready", reasons)

    async def models(self, request: Request) -> Response:
        """List the models."""
        return json_response(ModelList(self._models.info()))

    async def metrics(self, request: Request) -> Response:
        """Return the metrics."""
        headers = {"Content-Type": CONTENT_TYPE}
        return Response(self._metrics.text(), media_type=None, headers=headers)


def _health(status: str, reasons: list[str]) -> Response:
    """Return the answer: 503 if there are reasons why the server is not well."""
    if reasons:
        return json_response(Health(f"not {status}", reasons), status=503)
    return json_response(Health(status))
