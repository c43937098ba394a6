"""What every request passes: its number, the key, the limit of requests at a time, the access line, the last resort.

Whether a request is let in is decided before any of its body is read.
"""

import logging
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.server.access_log import log_access
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.api_keys import ApiKeys
from bertscore_onnx.server.metrics import Metrics
from bertscore_onnx.server.requests.errors import ClientGoneError, Problem, problem_of, unexpected
from bertscore_onnx.server.requests.record import Visit, visit_of

_log = logging.getLogger(__name__)

OPEN_PATHS = ("/", "/openapi.json", "/health/live", "/health/ready")
"""What needs no key: what a browser or a load balancer asks first."""

_CODES = {404: "not_found", 405: "method_not_allowed"}


class Gate:
    """The middleware around all endpoints."""

    def __init__(
        self, app: ASGIApp, *, admission: Admission, keys: ApiKeys | None, metrics: Metrics, paths: Iterable[str]
    ) -> None:
        """Stand before an application.

        Args:
            app: what to stand before.
            admission: counts who is in.
            keys: who may come in; None for everybody.
            metrics: told of every request.
            paths: those of the endpoints; any other counts as "other".
        """
        self._app = app
        self._admission = admission
        self._keys = keys
        self._metrics = metrics
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = scope["visit"] = Visit()

        async def noted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = visit.id
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            await self._answer(scope, receive, noted_send)
        except ClientGoneError:
            visit.status, visit.reason = 499, "client_gone"
        except Exception as error:
            _log.error("Request %s failed.", visit.id, exc_info=error)
            has_begun, visit.reason = visit.status > 0, "internal"
            if has_begun:  # the server breaks the connection off, so that the client does not take it for an answer
                return
            await unexpected(visit.id).response()(scope, receive, noted_send)
        finally:
            self._metrics.note(scope["path"] if scope["path"] in self._paths else "other", visit)
            log_access(scope, visit)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        needs_room = scope["method"] == "POST"
        try:
            self._check_key(scope)
            if needs_room:
                self._admission.enter()
        except Problem as problem:
            response = await answer_error(Request(scope), problem)
            await response(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            if needs_room:
                self._admission.leave()

    def _check_key(self, scope: Scope) -> None:
        if self._keys is None or scope["path"] in OPEN_PATHS:
            return
        if not self._keys.accept(Headers(scope=scope).get("authorization")):
            raise Problem(
                401,
                "unauthorized",
                "This needs a key: the header `Authorization: Bearer KEY`.",
                headers={"WWW-Authenticate": "Bearer"},
            )


async def answer_error(request: HTTPConnection, error: Exception) -> Response:
    """Answer an error that an endpoint raised on purpose, or that says there is no such endpoint.

    A coroutine, since Starlette hands a plain function to another thread, for which an overloaded server waits long.

    Raises:
        Exception: it is none of these.
    """
    problem = error if isinstance(error, Problem) else None
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "refused")
        problem = Problem(error.status_code, code, f"{error.detail}.", headers=error.headers)
    elif isinstance(error, BertScoreOnnxError):
        problem = problem_of(error)
    if problem is None:
        raise error
    visit_of(request).reason = problem.detail.code
    return problem.response()
