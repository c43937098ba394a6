"""`POST /v1/score`: scores the pairs of one JSON body, or a stream of lines."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx import __version__
from bertscore_onnx.errors import DeadlineError
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.server import schemas
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.errors import ApiError, ErrorBody, json_response
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.metrics import CONTENT_TYPE, Metrics
from bertscore_onnx.server.models import Models, Selection
from bertscore_onnx.server.request_log import RequestRecord, record_of
from bertscore_onnx.server.requests import JSON, NDJSON, RequestBody, decode_match_body, decode_score_body, media_type
from bertscore_onnx.server.schemas import Health, MatchAnswer, ModelList, ScoreAnswer
from bertscore_onnx.server.stream import ScoreStream
from bertscore_onnx.server.work import Lanes, check_tokens, score_chunk, tokenised
from bertscore_onnx.similarity import token_similarity


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


# `POST /v1/match`: the score of one pair, and the similarities behind it.


MAX_TOKENS = 128
"""Tokens of either side: the answer grows with their product."""


class MatchEndpoint:
    """The endpoint."""

    def __init__(self, models: Models, limits: Limits, lanes: Lanes) -> None:
        """Answer with these models, within these limits; what clients send is decoded and tokenised in `lanes`."""
        self._models = models
        self._limits = limits
        self._lanes = lanes
        # of its own, one for all: it passes by the batcher, which has the better claim to the processor
        self._thread = ThreadPoolExecutor(1, "bertscore-match-endpoint")

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
        with record.stage("score"):
            answer = await body.unless_gone(self._match(content, record))
        record.pairs = 1
        return json_response(answer)

    async def _match(self, content: bytes, record: RequestRecord) -> MatchAnswer:
        until = asyncio.get_running_loop().time() + self._limits.deadline
        selection, pairs = await self._lanes.run(len(content), partial(self._prepare, content), until)
        record.model = selection.model.name
        [score] = await score_chunk(selection, pairs, until, record.client)
        candidate, *references = pairs.texts
        texts = candidate, references[score.best_reference]
        try:
            async with asyncio.timeout_at(until):
                work = partial(token_similarity, selection.slot.scorer, selection.model.token_names, *texts)
                found = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except TimeoutError as error:
            raise DeadlineError("There were no similarities in time.") from error
        return MatchAnswer(
            selection.signature,
            selection.model.name,
            score,
            found.candidate,
            found.reference,
            _rounded(found.similarity),
            _rounded(found.candidate_weights),
            _rounded(found.reference_weights),
            found.candidate_is_special.tolist(),
            found.reference_is_special.tolist(),
            [match.position for match in found.candidate_matches],
            [match.position for match in found.reference_matches],
        )

    def _prepare(self, content: bytes) -> tuple[Selection, Pairs]:
        """Decode a body, and tokenise its texts, which must be short."""
        asked = decode_match_body(content, self._limits.max_pairs)
        selection = Selection(self._models.model(asked.model), asked.idf, asked.rescale)
        selection.slot.batcher.check_room()
        pairs = tokenised(selection, [asked])
        longest = max(map(len, (pairs.token_ids or {}).values()))
        if longest > MAX_TOKENS:
            raise ApiError(
                422, "too_long", f"A text has {longest} tokens; similarities are shown for at most {MAX_TOKENS}."
            )
        check_tokens(int(pairs.num_tokens[0]), self._limits.max_batch_tokens)
        return selection, pairs


def _rounded(values: NDArray[np.float32]) -> Any:
    return values.astype(np.float64).round(4).tolist()


# `GET /health/live`, `/health/ready`, `/v1/models` and `/metrics`: how the server is, and what it offers.


class StatusEndpoints:
    """The endpoints."""

    def __init__(self, models: Models, admission: Admission, metrics: Metrics) -> None:
        """Tell of these."""
        self._models = models
        self._admission = admission
        self._metrics = metrics

    async def live(self, request: Request) -> Response:
        """Say that the process runs and its loop turns."""
        return json_response(Health("live"))

    async def ready(self, request: Request) -> Response:
        """Say whether a request sent now would be scored, and if not, why."""
        reasons = ["The server is stopping."] if self._admission.is_draining else []
        for model, idf, slot in self._models.slots():
            if not slot.batcher.ready:
                reasons.append(f"No worker is ready for {model.name}" + (f" with idf {idf}." if idf else "."))
        return json_response(Health("not ready" if reasons else "ready", reasons), status=503 if reasons else 200)

    async def models(self, request: Request) -> Response:
        """List the models."""
        return json_response(ModelList([model.info() for model in self._models]))

    async def metrics(self, request: Request) -> Response:
        """Show the metrics."""
        return Response(self._metrics.text(), media_type=None, headers={"Content-Type": CONTENT_TYPE})


# `GET /openapi.json`: the interface in the words of OpenAPI 3.1. The file beside this one describes the endpoints;
# the schemas of their bodies are made from the structs.


_STRUCTS = (
    schemas.PairBody,
    schemas.ScoreBody,
    schemas.ScoreValue,
    schemas.ScoreAnswer,
    schemas.StreamEnd,
    schemas.MatchBody,
    schemas.MatchAnswer,
    schemas.ModelList,
    schemas.Health,
    ErrorBody,
)


def openapi_document(*, needs_key: bool) -> dict[str, Any]:
    """Return the description of all endpoints.

    Args:
        needs_key: whether the server has keys, of which most requests must give one.
    """
    document: dict[str, Any] = msgspec.json.decode(files(__package__).joinpath("openapi.json").read_bytes())
    document["info"]["version"] = __version__
    _, components = msgspec.json.schema_components(_STRUCTS, ref_template="#/components/schemas/{name}")
    document["components"]["schemas"] = components
    if not needs_key:
        _leave_out_keys(document)
    return document


def _leave_out_keys(document: dict[str, Any]) -> None:
    """Remove from a description what it says of keys."""
    del document["security"], document["components"]["securitySchemes"], document["components"]["responses"]["NoKey"]
    for methods in document["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)
            operation["responses"].pop("401", None)


def openapi_endpoint(*, needs_key: bool) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint, with the document of a server that has keys, or of one that has none."""
    content = msgspec.json.encode(openapi_document(needs_key=needs_key))

    async def openapi(request: Request) -> Response:
        return Response(content, media_type="application/json")

    return openapi


# The page at `/`, where a person types two sentences and sees their tokens match. It is sent as one file, made of the
# markup, the style and the script that lie here, without anything from elsewhere. The browser is told to run this
# script and this style and no other.


class PageEndpoint:
    """The endpoint."""

    def __init__(self) -> None:
        """Put the page together."""
        markup, style, script = (
            files("bertscore_onnx.server").joinpath("page", name).read_text(encoding="utf-8")
            for name in ("index.html", "style.css", "script.js")
        )
        content = markup.replace("<style></style>", f"<style>{style}</style>")
        self._content = content.replace("<script></script>", f"<script>{script}</script>")
        self._headers = {
            "Content-Security-Policy": _policy(style, script),
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }

    async def __call__(self, request: Request) -> Response:
        """Show the page."""
        return Response(self._content, headers=self._headers, media_type="text/html")


def _policy(style: str, script: str) -> str:
    """Allow the page's own script and style, by their digests, and requests to this server."""
    rules = [
        "default-src 'none'",
        f"script-src {_source(script)}",
        f"style-src {_source(style)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    return "; ".join(rules)


def _source(text: str) -> str:
    """Name an inline style or script by its digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
