"""The media types that endpoints take."""

from email.message import Message

from starlette.requests import Request

from bertscore_onnx.server.requests.errors import ApiError

JSON = "application/json"
NDJSON = "application/x-ndjson"
OCTETS = "application/octet-stream"


def media_type(request: Request, *allowed: str) -> str:
    """Return the media type of a request's body.

    Raises:
        ApiError: 415: it is none of those allowed, or not in UTF-8.
    """
    header = Message()
    header["content-type"] = given = request.headers.get("content-type", "")
    found = header.get_content_type()
    charset = str(header.get_param("charset", "utf-8"))
    if found not in allowed or charset.lower() not in ("utf-8", "us-ascii"):
        raise ApiError(
            415,
            "unsupported_media_type",
            f"The body is of the type {given!r}; expected {' or '.join(allowed)} in UTF-8.",
        )
    return found
