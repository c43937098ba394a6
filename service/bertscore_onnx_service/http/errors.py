"""Errors as the answers that clients get.

Every error of every endpoint has one form: `{"error": {"code", "message"}}`, with `pair` if one
pair is at fault, and `id` if only the log has the cause.
"""

import math
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.exceptions import HTTPException
from starlette.responses import Response

from bertscore_onnx.errors import (
    ClosedError,
    DeadlineError,
    ForkError,
    InputError,
    QueueFullError,
    WorkerError,
)

_MAX_MESSAGE = 500
"""Characters of a message; it may repeat what the client sent."""


class ErrorDetail(msgspec.Struct, omit_defaults=True):
    """The error of an answer."""

    code: Annotated[
        str, Meta(description="A fixed word for the kind of error.", examples=["invalid"])
    ]
    message: Annotated[str, Meta(description="What was given, what was expected and what to do.")]
    pair: Annotated[
        int | None, Meta(description="The position from 0 of the pair at fault, if it is one.")
    ] = None
    id: Annotated[
        str | None, Meta(description="The request's number in the log, if only that has the cause.")
    ] = None


class ErrorBody(msgspec.Struct):
    """The body of every answer that is not a success."""

    error: Annotated[ErrorDetail, Meta(description="What was wrong.")]


class ClientGoneError(Exception):
    """The client closed its connection; there is nobody to answer."""


class ApiError(Exception):
    """An error that is sent to the client."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        pair: int | None = None,
        headers: Mapping[str, str] | None = None,
        request_id: str | None = None,
    ) -> None:
        """Describe an error by its HTTP status and the fields of `ErrorDetail`.

        `headers` are the answer's.
        """
        super().__init__(message)
        self.status = status
        self.headers = headers
        # what no encoding can express is escaped
        text = message.encode("utf-8", "backslashreplace").decode()
        text = text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 2] + " …"
        self.detail = ErrorDetail(code, text, pair, id=request_id)

    def response(self) -> Response:
        """Return the answer."""
        return json_response(ErrorBody(self.detail), status=self.status, headers=self.headers)


def json_response(
    body: msgspec.Struct, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer with a struct as JSON."""
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


def api_error_of(error: Exception) -> ApiError | None:
    """Return the answer to an error of an endpoint, Starlette or the library.

    None if it is the server's own fault.
    """
    match error:
        case ApiError():
            return error
        case HTTPException():
            return ApiError(error.status_code, "refused", f"{error.detail}.", headers=error.headers)
        case InputError():
            return ApiError(422, "cannot_score", str(error))
        case QueueFullError():
            return too_busy(str(error), error.retry_after)
        case DeadlineError():
            return ApiError(
                504,
                "deadline",
                "There were no scores in time. Send fewer or shorter texts, or try again.",
            )
        case ClosedError():
            return draining()
        case WorkerError() | ForkError():
            return ApiError(
                503,
                "worker_failed",
                "Scoring was interrupted; try again.",
                headers={"Retry-After": "1"},
            )
    return None


def too_busy(message: str, retry_after: float) -> ApiError:
    """Return the error that asks the client to come back in some seconds."""
    return ApiError(
        429, "too_busy", message, headers={"Retry-After": str(max(1, math.ceil(retry_after)))}
    )


def draining() -> ApiError:
    """Return the error of a server that is about to stop."""
    return ApiError(
        503, "draining", "The server is stopping; try again.", headers={"Retry-After": "1"}
    )


def unexpected(request_id: str) -> ApiError:
    """Return the error of a fault of the server, without its cause."""
    return ApiError(
        500,
        "internal",
        "The server failed; the log has the cause, under this id.",
        request_id=request_id,
    )
