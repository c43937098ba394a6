"""The OpenAPI document, the page that shows it at `/docs`, and the page to try the server."""

import base64
import hashlib
import json
from collections.abc import Awaitable, Callable
from html import escape
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx import __version__
from bertscore_onnx.similarity import MATCH_STYLE
from bertscore_onnx_service.http.bodies import (
    Health,
    MatchAnswer,
    MatchBody,
    ModelList,
    PairBody,
    ScoreAnswer,
    ScoreBody,
    ScoreValue,
)
from bertscore_onnx_service.http.errors import ErrorBody

Endpoint = Callable[[Request], Awaitable[Response]]

_STRUCTS = (PairBody, ScoreBody, ScoreValue, ScoreAnswer, MatchBody, MatchAnswer, ModelList, Health, ErrorBody)


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


# The page at `/docs`.

Document = dict[str, Any]


def docs_html(document: Document) -> str:
    """Return the body of the page: every endpoint with an example, and the fields of every schema it uses."""
    endpoints = [
        _endpoint(document, method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    intro = (
        f"<h1>bertscore-onnx {escape(document['info']['version'])}</h1>"
        f"<p class='soft'>{escape(document['info']['description'])} For programs, the same is in "
        "<a href='openapi.json'>openapi.json</a>; <a href='./'>a page</a> scores two texts.</p>"
    )
    return "\n".join([intro, *endpoints, "<h2>Fields</h2>", *schemas])


def _endpoint(document: Document, method: str, path: str, operation: Document) -> str:
    parts = [f"<section><h2><code>{method} {escape(path)}</code></h2><p>{escape(operation['summary'])}.</p>"]
    if "description" in operation:
        parts.append(f"<p>{_prose(operation['description'])}</p>")
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h3>Body: <code>{escape(kind)}</code> {_type(content.get('schema', {}))}</h3>")
        if "example" in content:
            example = content["example"]
            text = example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)
            parts.append(f"<pre><code>{escape(text)}</code></pre>")
    rows = []
    for status, answer in operation["responses"].items():
        response = document["components"]["responses"].get(answer.get("$ref", "").rpartition("/")[2], answer)
        schemas = {_type(content.get("schema", {})) for content in response.get("content", {}).values()}
        rows.append(f"<tr><th>{status}</th><td>{_prose(response['description'])} {' '.join(sorted(schemas))}</td></tr>")
    return "".join([*parts, f"<h3>Answers</h3><table>{''.join(rows)}</table></section>"])


def _schema(name: str, schema: Document) -> str:
    required = schema.get("required", ())
    rows = (
        f"<tr><th><code>{escape(field)}{'' if field in required else ' (optional)'}</code></th><td>{_type(form)}</td>"
        f"<td>{_prose(form.get('description', ''))}</td></tr>"
        for field, form in schema.get("properties", {}).items()
    )
    return (
        f"<section id='{escape(name)}'><h3>{escape(name)}</h3><p>{_prose(schema.get('description', ''))}</p>"
        f"<table>{''.join(rows)}</table></section>"
    )


def _type(form: Document) -> str:
    """Return the type of a JSON schema in words; a type with a name links to its fields."""
    if "$ref" in form:
        name = escape(form["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if "anyOf" in form:
        return " or ".join(map(_type, form["anyOf"]))
    if form.get("type") == "array":
        return f"list of {_type(form.get('items', {}))}"
    return escape(str(form.get("type", "")))


def _prose(text: str) -> str:
    """Return a text as HTML, with code in backticks."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))
