"""The endpoints: scores, matches, the state of the server, its OpenAPI document and its page."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx import __version__
from bertscore_onnx.errors import DeadlineError
from bertscore_onnx.matching.weights import Rescaling
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.similarity import MATCH_STYLE, match_html, pair_similarities
from bertscore_onnx.text.texts import are_in_context, bare_texts
from bertscore_onnx_service.http.admission import Admission, read_body, unless_gone
from bertscore_onnx_service.http.answers import (
    Health,
    MatchAnswer,
    ModelList,
    ScoreAnswer,
    ScoreValue,
    score_values,
)
from bertscore_onnx_service.http.docs_page import docs_html
from bertscore_onnx_service.http.errors import ApiError, ErrorBody, json_response
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.metrics import CONTENT_TYPE, Metrics
from bertscore_onnx_service.http.models import Model, Models
from bertscore_onnx_service.http.request_log import RequestLog, log_of
from bertscore_onnx_service.http.requests import (
    MatchBody,
    PairBody,
    ScoreBody,
    check_tokens,
    decode_match_body,
    decode_score_body,
    to_pairs,
)
from bertscore_onnx_service.http.work import WorkerQueues

MAX_MATCH_TOKENS = 128
"""Tokens of either text of a match: the answer grows with their product."""

Endpoint = Callable[[Request], Awaitable[Response]]
B = TypeVar("B", ScoreBody, MatchBody)


class ScoringEndpoints:
    """`POST /v1/score` and `/v1/match`."""

    def __init__(self, models: Models, limits: Limits, queues: WorkerQueues) -> None:
        """Score with these models; bodies are decoded and tokenised in these worker queues."""
        self._models = models
        self._limits = limits
        self._queues = queues
        # one thread of its own for all similarities: they do not pass through the batcher, which comes first
        self._similarity_thread = ThreadPoolExecutor(1, "bertscore-match-endpoint")

    async def score(self, request: Request) -> Response:
        """Score the pairs of a body."""
        if request.query_params:
            raise ApiError(422, "invalid", "Settings belong into the JSON body, not into the address.")
        return await self._answer(request, self._score)

    async def match(self, request: Request) -> Response:
        """Score one pair, and return the similarities of its tokens."""
        return await self._answer(request, self._match)

    async def _answer(
        self, request: Request, work: Callable[[bytes, RequestLog], Coroutine[Any, Any, msgspec.Struct]]
    ) -> Response:
        """Read a body and answer it, unless the client goes away."""
        _check_media_type(request)
        log = log_of(request)
        with log.stage("read"):
            content = await read_body(request, self._limits)
        with log.stage("score"):
            return json_response(await unless_gone(request, work(content, log)))

    async def _score(self, content: bytes, log: RequestLog) -> ScoreAnswer:
        until = asyncio.get_running_loop().time() + self._limits.deadline
        prepare = partial(self._prepare, content, decode_score_body)
        _, model, rescaling, pairs = await self._queues.run(len(content), prepare, until)
        log.model = model.name
        scores = await model.score(pairs, rescaling, until, log.client)
        log.pairs = len(pairs.candidates)
        return ScoreAnswer(str(model.signature(rescaling, pairs.texts)), model.name, score_values(scores))

    async def _match(self, content: bytes, log: RequestLog) -> MatchAnswer:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limits.deadline
        prepare = partial(self._prepare, content, decode_match_body)
        body, model, rescaling, pairs = await self._queues.run(len(content), prepare, until)
        log.model = model.name
        _check_shown(model, pairs)
        [score] = score_values(await model.score(pairs, rescaling, until, log.client))
        log.pairs = 1
        candidate, *references = bare_texts(pairs.texts)
        texts = candidate, references[score.best_reference]
        if reason := _too_long(pairs, *texts):
            return MatchAnswer(str(model.signature(rescaling, pairs.texts)), model.name, score, reason)
        try:
            async with asyncio.timeout_at(until):
                work = partial(_matches, model, rescaling, texts, score, as_html=body.html)
                return await loop.run_in_executor(self._similarity_thread, work)
        except TimeoutError as error:
            raise DeadlineError("The similarities were not computed in time.") from error

    def _prepare(self, content: bytes, decode: Callable[[bytes, int], B]) -> tuple[B, Model, Rescaling, Pairs]:
        """Decode a body, and tokenise its texts."""
        body = decode(content, self._limits.max_pairs)
        model = self._models.select(body.model, body.idf)
        rescaling = model.rescaling(body.rescale)
        pairs = model.batcher.tokenise(to_pairs(body.pairs))
        for position, tokens in enumerate(pairs.num_tokens.tolist()):
            check_tokens(tokens, self._limits.max_batch_tokens, position)
        return body, model, rescaling, pairs


def _check_shown(model: Model, pairs: Pairs) -> None:
    """Raise 422 for matches that cannot be shown."""
    matching = model.scorer.matching
    has_context = are_in_context(pairs.texts)
    if has_context or matching.method != "greedy":
        reason = "in a context" if has_context else f"that {model.name} matches by {matching}"
        raise ApiError(422, "invalid", f"The matches of texts {reason} are not shown; `/v1/score` scores them.")


def _matches(
    model: Model, rescaling: Rescaling, texts: tuple[str, str], score: ScoreValue, *, as_html: bool
) -> MatchAnswer:
    """Return the answer for a pair of texts, of the best reference."""
    with model.scorer.with_rescaling(rescaling.language, allow_fp32_baseline=True) as scorer:
        [found] = pair_similarities(scorer, model.token_names, [texts])
    answer = partial(MatchAnswer, str(model.signature(rescaling, texts)), model.name, score)
    if as_html:
        return answer(html=match_html(found, with_matrix=True))
    return answer(
        candidate=found.candidate,
        reference=found.reference,
        similarity=found.similarity.tolist(),
        candidate_weights=found.candidate_weights.tolist(),
        reference_weights=found.reference_weights.tolist(),
        candidate_special=found.candidate_is_special.tolist(),
        reference_special=found.reference_is_special.tolist(),
        candidate_matches=[match.position for match in found.candidate_matches],
        reference_matches=[match.position for match in found.reference_matches],
    )


def _too_long(pairs: Pairs, candidate: str, reference: str) -> str | None:
    """Return which of two texts has too many tokens for a matrix of similarities."""
    for name, text in (("candidate", candidate), ("reference", reference)):
        ids, _, is_truncated = (pairs.tokenised or {})[text]
        if (tokens := len(ids)) > MAX_MATCH_TOKENS:
            more = "more than " if is_truncated else ""
            return f"The {name} has {more}{tokens:,} tokens; matches are shown for at most {MAX_MATCH_TOKENS}."
    return None


def _check_media_type(request: Request) -> None:
    """Raise 415 unless a body is JSON in UTF-8."""
    header = Message()
    header["content-type"] = sent = request.headers.get("content-type", "")
    charset = str(header.get_param("charset", "utf-8"))
    if header.get_content_type() != "application/json" or charset.lower() not in ("utf-8", "us-ascii"):
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
        """Answer that the process and its event loop run."""
        return json_response(Health("live"))

    async def ready(self, request: Request) -> Response:
        """Return whether a request sent now would be scored, and if not, why."""
        reasons = ["The server is stopping."] if self._admission.is_draining else []
        reasons += [
            f"No worker is ready for {model.name}" + (f" with idf {model.idf}." if model.idf else ".")
            for model in self._models
            if not model.batcher.ready
        ]
        return json_response(Health("not ready" if reasons else "ready", reasons), status=503 if reasons else 200)

    async def models(self, request: Request) -> Response:
        """List the models."""
        return json_response(ModelList(self._models.info()))

    async def metrics(self, request: Request) -> Response:
        """Return the metrics."""
        return Response(self._metrics.text(), media_type=None, headers={"Content-Type": CONTENT_TYPE})


_STRUCTS = (
    PairBody,
    ScoreBody,
    ScoreValue,
    ScoreAnswer,
    MatchBody,
    MatchAnswer,
    ModelList,
    Health,
    ErrorBody,
)


def openapi_document(*, needs_key: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a server with keys or without.

    The file openapi.json describes the endpoints; the schemas of their bodies are made from the structs.
    """
    document: dict[str, Any] = msgspec.json.decode(files(__package__).joinpath("openapi.json").read_bytes())
    document["info"]["version"] = __version__
    _, components = msgspec.json.schema_components(_STRUCTS, ref_template="#/components/schemas/{name}")
    document["components"]["schemas"] = components
    if not needs_key:
        _remove_keys(document)
    return document


def _remove_keys(document: dict[str, Any]) -> None:
    del document["security"], document["components"]["securitySchemes"], document["components"]["responses"]["NoKey"]
    for methods in document["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)
            operation["responses"].pop("401", None)


def openapi_endpoint(*, needs_key: bool) -> Endpoint:
    """Return the endpoint of the OpenAPI document."""
    content = msgspec.json.encode(openapi_document(needs_key=needs_key))

    async def openapi(request: Request) -> Response:
        return Response(content, media_type="application/json")

    return openapi


def docs_endpoint(*, needs_key: bool) -> Endpoint:
    """Return the endpoint of the OpenAPI document as a page."""
    body = docs_html(openapi_document(needs_key=needs_key))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = "<title>bertscore-onnx: the HTTP interface</title>"
    style = f"""{_page_file("style.css")}
h2 code {{ font-size: 1rem; }}
h3 {{ margin: 1rem 0 .25rem; font-size: .95rem; }}
section {{ overflow-x: auto; }}
th, td {{ padding: .1rem 1rem .1rem 0; text-align: left; vertical-align: top; }}
a {{ color: var(--accent); }}
"""
    content = (
        f'<!doctype html><html lang="en"><head>{head}{title}<style></style></head><body><main>{body}</main></body>'
    )
    return _html_endpoint(content, style)


def page_endpoint() -> Endpoint:
    """Return the endpoint of the page, where a person types two sentences and sees their tokens match."""
    return _html_endpoint(_page_file("index.html"), _page_file("style.css") + MATCH_STYLE, _page_file("script.js"))


def _page_file(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _html_endpoint(markup: str, style: str, script: str = "") -> Endpoint:
    """Return the endpoint of a page, which is sent as one file and loads nothing from elsewhere.

    The browser runs this script and this style and no other.
    """
    content = markup.replace("<style></style>", f"<style>{style}</style>")
    content = content.replace("<script></script>", f"<script>{script}</script>")
    policy = [
        "default-src 'none'",
        f"script-src {_digest(script)}",
        f"style-src {_digest(style)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    headers = {
        "Content-Security-Policy": "; ".join(policy),
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }

    async def page(request: Request) -> Response:
        return Response(content, headers=headers, media_type="text/html")

    return page


def _digest(text: str) -> str:
    """Return the source of an inline style or script in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
