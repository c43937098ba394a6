"""Application of the server.

`create_app` makes its routes; the middleware around them checks API keys and heads of requests,
admits them, writes the log, and answers errors.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertscore_onnx.errors import BertScoreOnnxError, InputError
from bertscore_onnx_service.http.admission import Admission, WorkerPool
from bertscore_onnx_service.http.endpoints import ScoringEndpoints, StatusEndpoints
from bertscore_onnx_service.http.errors import ApiError, ClientGoneError, api_error_of, unexpected
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.metrics import Metrics
from bertscore_onnx_service.http.models import Models
from bertscore_onnx_service.http.pages import docs_endpoint, openapi_endpoint, page_endpoint
from bertscore_onnx_service.http.request_log import RequestLog, log_of

OPEN_PATHS = ("/", "/docs", "/openapi.json", "/health/live", "/health/ready")
"""The paths that need no key.

A browser or a load balancer requests them first.
"""

MIN_LENGTH = 16
"""Characters of a key; shorter ones can be guessed."""

_READABLE_KEYS = "Every user of this machine can read the keys in %s. `chmod o= FILE` ends that."

_KEY = re.compile(r"[!-~]+")  # the characters that may occur in a header

_log = logging.getLogger(__name__)


def create_app(
    models: Models,
    limits: Limits,
    *,
    keys: "ApiKeys | None" = None,
    any_host: bool = False,
) -> Starlette:
    """Return the server of these models, which the caller closes.

    `app.state` has its `admission` and its `metrics`. Without `keys` everybody may use it. A server
    that listens only to its own machine and has no keys should not allow `any_host` in the
    addresses of requests.
    """
    pool = WorkerPool(limits.max_queue)
    admission = Admission(limits, models, pool)
    metrics = Metrics(models, admission)
    scoring = ScoringEndpoints(models, limits, pool)
    status = StatusEndpoints(models, admission, metrics)
    routes = [
        Route("/", page_endpoint()),
        Route("/docs", docs_endpoint(needs_key=keys is not None)),
        Route("/openapi.json", openapi_endpoint(needs_key=keys is not None)),
        Route("/health/live", status.live),
        Route("/health/ready", status.ready),
        Route("/metrics", status.metrics),
        Route("/v1/models", status.models),
        Route("/v1/score", scoring.score, methods=["POST"]),
        Route("/v1/match", scoring.match, methods=["POST"]),
    ]
    middleware = Middleware(
        RequestMiddleware,
        admission=admission,
        keys=keys,
        metrics=metrics,
        paths=[route.path for route in routes],
        send_timeout=limits.read_timeout,
        any_host=any_host,
    )
    handlers = dict.fromkeys((ApiError, HTTPException, BertScoreOnnxError), answer_error)
    app = Starlette(routes=routes, middleware=[middleware], exception_handlers=handlers)
    app.state.admission = admission
    app.state.metrics = metrics
    return app


class ApiKeys:
    """The API keys of a server; only their digests are kept."""

    def __init__(self, keys: list[str]) -> None:
        """Accept these keys."""
        self._digests = [_digest(key) for key in keys]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of keys, one per line.

        Blank lines and lines that begin with `#` are no keys. An InputError is raised if the file
        cannot be read, has no key, or one that is too short or has other characters than printable
        ASCII.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            if path.stat().st_mode & stat.S_IROTH:
                _log.warning(_READABLE_KEYS, path)
        except OSError as error:
            raise InputError(f"Cannot read the keys in {path} ({error.strerror}).") from error
        except UnicodeDecodeError as error:
            expected = "expected printable ASCII characters"
            raise InputError(f"The keys in {path} are not in UTF-8; {expected}.") from error
        keys = []
        for number, line in enumerate(lines, 1):
            key = line.strip()
            if not key or key.startswith("#"):
                continue
            if len(key) < MIN_LENGTH or not _KEY.fullmatch(key):
                raise InputError(
                    f"Line {number} of {path} is no key; expected at least {MIN_LENGTH} printable "
                    "ASCII characters without spaces. `openssl rand -hex 32` makes one."
                )
            keys.append(key)
        if not keys:
            advice = "`openssl rand -hex 32` makes one."
            raise InputError(f"{path} holds no key; expected one per line. {advice}")
        return cls(keys)

    def client_of(self, authorization: str | None) -> str | None:
        """Return the digest of the key in a header `Authorization: Bearer KEY`.

        The result is None for any other header. All keys are compared, by digests of one length,
        so that the time it takes does not reveal anything about them.
        """
        scheme, _, key = (authorization or "").partition(" ")
        sent = _digest(key.strip())
        matches = [hmac.compare_digest(sent, digest) for digest in self._digests]
        if scheme.lower() == "bearer" and any(matches):
            return sent.hex()
        return None


def _digest(key: str) -> bytes:
    """Return the digest of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


class RequestMiddleware:
    """The middleware."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        admission: Admission,
        keys: ApiKeys | None,
        metrics: Metrics,
        paths: Iterable[str],
        send_timeout: float,
        any_host: bool,
    ) -> None:
        """Wrap an application.

        The metrics count requests by these `paths`, and all others as "other". A client may take
        `send_timeout` seconds to receive each part of an answer. With `any_host` requests may be
        addressed to any name.
        """
        self._app = app
        self._admission = admission
        self._keys = keys
        self._metrics = metrics
        self._paths = frozenset(paths)
        self._send_timeout = send_timeout
        self._any_host = any_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, even after an unexpected error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        log = RequestLog()
        scope["log"] = log

        async def logged_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                log.status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = log.id
                headers["X-Content-Type-Options"] = "nosniff"
                if self._admission.is_draining:
                    headers["Connection"] = "close"
            try:
                async with asyncio.timeout(self._send_timeout):
                    await send(message)
            except TimeoutError as error:
                raise ClientGoneError from error

        try:
            await self._answer(scope, receive, logged_send)
        except ClientGoneError:
            log.status = 499
            log.reason = "client_gone"
        except Exception as error:
            _log.error("Request %s failed.", log.id, exc_info=error)
            log.reason = "internal"
            has_begun = log.status > 0
            if has_begun:
                # Uvicorn breaks the connection off: the client does not take it for a whole answer.
                return
            await unexpected(log.id).response()(scope, receive, logged_send)
        finally:
            path = scope["path"]
            self._metrics.count(path if path in self._paths else "other", log)
            log.write(scope)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit a request and answer it, or refuse it."""
        try:
            self._check_head(scope)
            slot = self._admission.enter() if scope["method"] == "POST" else None
        except (ApiError, BertScoreOnnxError) as error:
            response = await answer_error(Request(scope), error)
            await response(scope, receive, send)
            return
        scope["slot"] = slot
        try:
            await self._app(scope, receive, send)
        finally:
            if slot is not None:
                slot.release()

    def _check_head(self, scope: Scope) -> None:
        """Refuse a request by its head.

        Refused are an ambiguous body, the address of another machine, and a missing key.
        """
        headers = Headers(scope=scope)
        is_chunked = "transfer-encoding" in headers
        if is_chunked and ("content-length" in headers or scope["http_version"] == "1.0"):
            # A proxy in front may see other requests than this server does.
            lengths = "a Content-Length or, from HTTP/1.1 on, a Transfer-Encoding"
            message = f"A body has either {lengths}."
            raise ApiError(400, "ambiguous_body", message, headers={"Connection": "close"})
        if not (self._any_host or _is_local_name(headers.get("host", ""))):
            message = "The header `Host` names another machine; expected this one's address."
            raise ApiError(421, "misdirected", message)
        if self._keys is None or scope["path"] in OPEN_PATHS:
            return
        client = self._keys.client_of(headers.get("authorization"))
        if client is None:
            raise ApiError(
                401,
                "unauthorized",
                "This needs a key: the header `Authorization: Bearer KEY`.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        scope["log"].client = client


def _is_local_name(host: str) -> bool:
    """Return whether a header `Host` can only name this machine.

    Others may come from a browser that was lured here by DNS rebinding: the owner of a name with a
    dot can let it point to this machine, and a page from there would be allowed to read the
    answers. Nobody owns an address, `localhost` or a name without a dot.
    """
    before, _, port = host.rpartition(":")
    name = before if port.isdecimal() else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return "." not in name or name.lower().endswith(".localhost")
    return True


async def answer_error(request: HTTPConnection, error: Exception) -> Response:
    """Return the answer to an error that has one; raise any other.

    This is a coroutine because Starlette runs a plain function in another thread, which takes long
    in an overloaded server.
    """
    if isinstance(error, HTTPException):
        api_error = _misrouted(request, error)
    else:
        api_error = api_error_of(error)
    if api_error is None:
        raise error
    log_of(request).reason = api_error.detail.code
    return api_error.response()


def _misrouted(request: HTTPConnection, error: HTTPException) -> ApiError | None:
    """Return the answer to an unknown path or method, which lists the known ones."""
    path = request.scope["path"]
    method = request.scope["method"]
    if error.status_code == 404:
        paths = ", ".join(route.path for route in request.app.routes)
        message = f"There is no path {path[:100]!r}. The paths are {paths}."
        return ApiError(404, "not_found", message)
    if error.status_code == 405:
        allowed = ", ".join(sorted((error.headers or {})["Allow"].split(", ")))
        message = f"The path {path} does not take {method}; it takes {allowed}."
        return ApiError(405, "method_not_allowed", message, headers=error.headers)
    return api_error_of(error)
