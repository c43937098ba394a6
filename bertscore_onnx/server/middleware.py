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
from bertscore_onnx.server.requests.errors import ApiError, ClientGoneError, api_error_of, unexpected
from bertscore_onnx.server.requests.record import RequestRecord, record_of

_log = logging.getLogger(__name__)

OPEN_PATHS = ("/", "/openapi.json", "/health/live", "/health/ready")
"""What needs no key: what a browser or a load balancer asks first."""

_CODES = {404: "not_found", 405: "method_not_allowed"}


class RequestMiddleware:
    """The middleware around all endpoints."""

    def __init__(
        self, app: ASGIApp, *, admission: Admission, keys: ApiKeys | None, metrics: Metrics, paths: Iterable[str]
    ) -> None:
        """Wrap an application.

        Args:
            app: the application.
            admission: limits the requests in progress.
            keys: those that requests may give; None where none is needed.
            metrics: counts every request.
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
        record = scope["record"] = RequestRecord()

        async def noted_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = record.id
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        try:
            await self._answer(scope, receive, noted_send)
        except ClientGoneError:
            record.status, record.reason = 499, "client_gone"
        except Exception as error:
            _log.error("Request %s failed.", record.id, exc_info=error)
            has_begun, record.reason = record.status > 0, "internal"
            if has_begun:  # the server breaks the connection off, so that the client does not take it for an answer
                return
            await unexpected(record.id).response()(scope, receive, noted_send)
        finally:
            self._metrics.note(scope["path"] if scope["path"] in self._paths else "other", record)
            log_access(scope, record)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        needs_room = scope["method"] == "POST"
        try:
            self._check_key(scope)
            if needs_room:
                self._admission.enter()
        except ApiError as error:
            response = await answer_error(Request(scope), error)
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
            raise ApiError(
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
    api_error = error if isinstance(error, ApiError) else None
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "refused")
        api_error = ApiError(error.status_code, code, f"{error.detail}.", headers=error.headers)
    elif isinstance(error, BertScoreOnnxError):
        api_error = api_error_of(error)
    if api_error is None:
        raise error
    record_of(request).reason = api_error.detail.code
    return api_error.response()
