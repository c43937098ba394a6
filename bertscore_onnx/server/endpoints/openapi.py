"""`GET /openapi.json`: the interface in the words of OpenAPI 3.1.

The file beside this one describes the endpoints; the schemas of their bodies are made from the structs.
"""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx import __version__
from bertscore_onnx.server.requests import schemas
from bertscore_onnx.server.requests.errors import ErrorBody

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
