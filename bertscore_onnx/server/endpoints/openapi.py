"""`GET /openapi.json`: the interface in the words of OpenAPI 3.1; its schemas are those of the bodies' structs."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx import __version__
from bertscore_onnx.server.requests import schemas
from bertscore_onnx.server.requests.errors import ErrorBody

_JSON = "application/json"
_NDJSON = "application/x-ndjson"
_STRUCTS = {
    struct.__name__: struct
    for struct in (
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
}


def openapi_document() -> dict[str, Any]:
    """Return the description of all endpoints."""
    _, schemas = msgspec.json.schema_components(_STRUCTS.values(), ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bertscore-onnx",
            "version": __version__,
            "description": "BERTScore of candidate texts against references.",
        },
        "security": [{"key": []}],
        "paths": _PATHS,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "Where the server has keys at all."}
            },
        },
    }


def openapi_endpoint() -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint, with the document written out."""
    content = msgspec.json.encode(openapi_document())

    async def openapi(request: Request) -> Response:
        return Response(content, media_type=_JSON)

    return openapi


def _content(struct: str, media_type: str = _JSON) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{struct}"}}}


def _answer(description: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": content}


def _errors(*statuses: int) -> dict[str, Any]:
    return {str(status): _answer(_MEANINGS[status], _content("ErrorBody")) for status in statuses}


_MEANINGS = {
    400: "The body is not JSON.",
    401: "A key is needed.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body is of another type.",
    422: "The body, or a setting, makes no sense; says which pair and why.",
    429: "Too many requests are in progress, or the queue is full; see Retry-After.",
    500: "The server failed; its log says why, under the id.",
    503: "The server is stopping, or a worker was lost; see Retry-After.",
    504: "There was no score in time.",
}

_TEXT = {"schema": {"type": "string"}}


def _setting(name: str, description: str) -> dict[str, Any]:
    where = "For a stream of lines only; JSON bodies have a field of that name."
    return {"name": name, "in": "query", "description": f"{description} {where}", **_TEXT}


_PATHS: dict[str, Any] = {
    "/v1/score": {
        "post": {
            "operationId": "score",
            "summary": "Score candidates against their references",
            "parameters": [
                _setting("model", "The model."),
                _setting("rescale", "The language whose baseline to rescale with."),
                _setting("idf", "The idf table to weigh tokens with."),
            ],
            "requestBody": {
                "required": True,
                "content": {**_content("ScoreBody"), **_content("PairBody", _NDJSON)},
            },
            "responses": {
                "200": _answer(
                    "The scores. A stream has one ScoreValue or ErrorBody a line and a StreamEnd at its end.",
                    {
                        **_content("ScoreAnswer"),
                        _NDJSON: {
                            "schema": {
                                "anyOf": [
                                    {"$ref": f"#/components/schemas/{name}"}
                                    for name in ("ScoreValue", "ErrorBody", "StreamEnd")
                                ]
                            }
                        },
                    },
                ),
                **_errors(*_MEANINGS),
            },
        }
    },
    "/v1/match": {
        "post": {
            "operationId": "match",
            "summary": "Show which tokens of one pair match",
            "requestBody": {"required": True, "content": _content("MatchBody")},
            "responses": {
                "200": _answer("The score and the similarities.", _content("MatchAnswer")),
                **_errors(*_MEANINGS),
            },
        }
    },
    "/v1/models": {
        "get": {
            "operationId": "models",
            "summary": "List the models",
            "responses": {"200": _answer("The models.", _content("ModelList")), **_errors(401, 500)},
        }
    },
    "/health/live": {
        "get": {
            "operationId": "live",
            "summary": "Tell whether the process runs",
            "security": [],
            "responses": {"200": _answer("It does.", _content("Health"))},
        }
    },
    "/health/ready": {
        "get": {
            "operationId": "ready",
            "summary": "Tell whether requests would be scored",
            "security": [],
            "responses": {
                "200": _answer("They would.", _content("Health")),
                "503": _answer("They would not, for these reasons.", _content("Health")),
            },
        }
    },
    "/metrics": {
        "get": {
            "operationId": "metrics",
            "summary": "Show the metrics",
            "responses": {
                "200": _answer("The text format of Prometheus.", {"text/plain": _TEXT}),
                **_errors(401, 500),
            },
        }
    },
    "/openapi.json": {
        "get": {
            "operationId": "openapi",
            "summary": "Describe the interface",
            "security": [],
            "responses": {"200": _answer("This document.", {_JSON: {"schema": {"type": "object"}}})},
        }
    },
    "/": {
        "get": {
            "operationId": "page",
            "summary": "Show a page to try it",
            "security": [],
            "responses": {"200": _answer("The page.", {"text/html": _TEXT})},
        }
    },
}
