"""What every request passes: its number, its head, the key, a slot, the access line, the last resort.

Whether a request is let in is decided before any of its body is read.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertscore_onnx.errors import BertScoreOnnxError, InputError
from bertscore_onnx.server.admission import Admission, Slot
from bertscore_onnx.server.errors import ApiError, ClientGoneError, api_error_of, unexpected
from bertscore_onnx.server.metrics import Metrics
from bertscore_onnx.server.request_log import RequestRecord, log_access, record_of

# API keys: read from a file, compared in constant time, never shown.


MIN_LENGTH = 16
"""Characters of a key; shorter ones can be guessed."""

_log = logging.getLogger(__name__)

_KEY = re.compile(r"[!-~]+")  # what may stand in a header


class ApiKeys:
    """The keys that open a server."""

    def __init__(self, keys: list[str]) -> None:
        """Take the keys; only their digests are kept."""
        self._digests = [_digest(key) for key in keys]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of keys, one a line; blank lines and lines that begin with `#` count for nothing.

        Raises:
            InputError: the file cannot be read, holds no key, or one that is too short or has odd characters.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            if path.stat().st_mode & stat.S_IROTH:
                _log.warning("Every user of this machine can read the keys in %s. `chmod o= FILE` ends that.", path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"Cannot read the keys in {path}: {error}") from error
        numbered = [(number, line.strip()) for number, line in enumerate(lines, 1)]
        keys = [(number, key) for number, key in numbered if key and not key.startswith("#")]
        for number, key in keys:
            if len(key) < MIN_LENGTH or not _KEY.fullmatch(key):
                raise InputError(
                    f"Line {number} of {path} is no key; expected at least {MIN_LENGTH} printable ASCII characters "
                    "without spaces. `openssl rand -hex 32` makes one."
                )
        if not keys:
            raise InputError(f"{path} holds no key; expected one a line. `openssl rand -hex 32` makes one.")
        return cls([key for _, key in keys])

    def client_of(self, authorization: str | None) -> str | None:
        """Return what stands for the key in a header `Authorization: Bearer KEY`; None where it is none of the keys.

        The time it takes does not tell which key is nearly right: all are compared, by digests of one length.
        """
        scheme, _, key = (authorization or "").partition(" ")
        given = _digest(key.strip())
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        return given.hex() if scheme.lower() == "bearer" and any(matches) else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


OPEN_PATHS = ("/", "/openapi.json", "/health/live", "/health/ready")
"""What needs no key: what a browser or a load balancer asks first."""

_CODES = {404: "not_found", 405: "method_not_allowed"}


class RequestMiddleware:
    """The middleware around all endpoints."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        admission: Admission,
        keys: ApiKeys | None,
        metrics: Metrics,
        paths: Iterable[str],
        check_room: Callable[[], None],
        send_timeout: float,
        any_host: bool,
    ) -> None:
        """Wrap an application.

        Args:
            app: the application.
            admission: limits the requests in progress.
            keys: those that requests may give; None where none is needed.
            metrics: counts every request.
            paths: those of the endpoints; any other counts as "other".
            check_room: raises what to answer where nothing can be scored now.
            send_timeout: how many seconds a client may take to take in each part of an answer.
            any_host: whether requests may be addressed to any name.
        """
        self._app = app
        self._admission = admission
        self._keys = keys
        self._metrics = metrics
        self._paths = frozenset(paths)
        self._check_room = check_room
        self._send_timeout = send_timeout
        self._any_host = any_host

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
            slot: Slot | None = scope.get("slot")
            until = asyncio.get_running_loop().time() + self._send_timeout
            try:
                async with slot.client_turn(until) if slot else asyncio.timeout_at(until):
                    await send(message)
            except TimeoutError as error:
                raise ClientGoneError from error

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
        try:
            self._check_head(scope)
            slot = self._enter() if scope["method"] == "POST" else None
        except (ApiError, BertScoreOnnxError) as error:
            response = await answer_error(Request(scope), error)
            await response(scope, receive, send)
            return
        scope["slot"] = slot
        try:
            await self._app(scope, receive, send)
        finally:
            if slot is not None:
                slot.leave()

    def _enter(self) -> Slot:
        self._check_room()
        return self._admission.enter()

    def _check_head(self, scope: Scope) -> None:
        """Refuse what must not be answered, whatever it asks."""
        headers = Headers(scope=scope)
        is_chunked = "transfer-encoding" in headers
        if is_chunked and ("content-length" in headers or scope["http_version"] == "1.0"):
            # a proxy in front may see other requests than this server does
            message = "A body has either a Content-Length or, from HTTP/1.1 on, a Transfer-Encoding."
            raise ApiError(400, "ambiguous_body", message, headers={"Connection": "close"})
        if not (self._any_host or _is_own_name(headers.get("host", ""))):
            raise ApiError(421, "misdirected", "The header `Host` names another machine; expected this one's address.")
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
        record_of(Request(scope)).client = client


def _is_own_name(host: str) -> bool:
    """Tell whether a browser that sends this header `Host` cannot have been lured here.

    Whoever owns a name with a dot can let it point to this machine (DNS rebinding), and a page from there would be
    allowed to read the answers. Nobody owns an address, `localhost` or a name without a dot.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return "." not in name or name.lower().endswith(".localhost")
    return True


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
