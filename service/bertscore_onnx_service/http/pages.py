"""OpenAPI document and pages of the server.

One page shows the document at `/docs`; the other lets a person try the server.
"""

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

Document = dict[str, Any]

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


def openapi_document(*, needs_key: bool) -> Document:
    """Return the OpenAPI 3.1 document of a server with keys or without.

    The file openapi.json describes the endpoints; the schemas of their bodies are made from the
    structs.
    """
    content = files(__package__).joinpath("openapi.json").read_bytes()
    document: Document = msgspec.json.decode(content)
    document["info"]["version"] = __version__
    reference = "#/components/schemas/{name}"
    _, schemas = msgspec.json.schema_components(_STRUCTS, ref_template=reference)
    document["components"]["schemas"] = schemas
    if not needs_key:
        _remove_keys(document)
    return document


def _remove_keys(document: Document) -> None:
    """Remove all that tells of keys."""
    del document["security"]
    del document["components"]["securitySchemes"]
    del document["components"]["responses"]["NoKey"]
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
    viewport = "width=device-width, initial-scale=1"
    head = f'<meta charset="utf-8"><meta name="viewport" content="{viewport}">'
    title = "<title>bertscore-onnx: the HTTP interface</title>"
    style = f"""{_page_file("style.css")}
h2 code {{ font-size: 1rem; }}
h3 {{ margin: 1rem 0 .25rem; font-size: .95rem; }}
section {{ overflow-x: auto; }}
th, td {{ padding: .1rem 1rem .1rem 0; text-align: left; vertical-align: top; }}
a {{ color: var(--accent); }}
"""
    page = f"<head>{head}{title}<style></style></head><body><main>{body}</main></body>"
    markup = f'<!doctype html><html lang="en">{page}'
    return _html_endpoint(markup, style)


def page_endpoint() -> Endpoint:
    """Return the endpoint of the page to try the server.

    A person types two sentences there and sees their tokens match.
    """
    style = _page_file("style.css") + MATCH_STYLE
    return _html_endpoint(_page_file("index.html"), style, _page_file("script.js"))


def _page_file(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _html_endpoint(markup: str, style: str, script: str = "") -> Endpoint:
    """Return the endpoint of a page.

    The page is sent as one file and loads nothing from elsewhere. The browser runs this script and
    this style and no other.
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
    """Return the name of an inline style or script in the policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


# The page at `/docs`.


def docs_html(document: Document) -> str:
    """Return the body of the page.

    It shows every endpoint with an example, and the fields of every schema that these use.
    """
    sections = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            sections.append(_endpoint(document, method.upper(), path, operation))
    sections.append("<h2>Fields</h2>")
    for name, schema in document["components"]["schemas"].items():
        sections.append(_schema(name, schema))
    intro = (
        f"<h1>bertscore-onnx {escape(document['info']['version'])}</h1>"
        f"<p class='soft'>{escape(document['info']['description'])} For programs, the same is in "
        "<a href='openapi.json'>openapi.json</a>; <a href='./'>a page</a> scores two texts.</p>"
    )
    return "\n".join([intro, *sections])


def _endpoint(document: Document, method: str, path: str, operation: Document) -> str:
    """Return the section of an endpoint, with its bodies and answers."""
    summary = escape(operation["summary"])
    section = f"<section><h2><code>{method} {escape(path)}</code></h2><p>{summary}.</p>"
    if "description" in operation:
        section += f"<p>{_prose(operation['description'])}</p>"
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        section += _body(media_type, content)
    rows = ""
    for status, answer in operation["responses"].items():
        rows += _answer(document, status, answer)
    return f"{section}<h3>Answers</h3><table>{rows}</table></section>"


def _body(media_type: str, content: Document) -> str:
    """Return the type of a body, and its example if there is one."""
    body_type = _type(content.get("schema", {}))
    heading = f"<h3>Body: <code>{escape(media_type)}</code> {body_type}</h3>"
    if "example" not in content:
        return heading
    example = content["example"]
    if not isinstance(example, str):
        example = json.dumps(example, indent=2, ensure_ascii=False)
    return f"{heading}<pre><code>{escape(example)}</code></pre>"


def _answer(document: Document, status: str, answer: Document) -> str:
    """Return the row of an answer, which may be a `$ref` to a shared one."""
    name = answer.get("$ref", "").rpartition("/")[2]
    response = document["components"]["responses"].get(name, answer)
    contents = response.get("content", {}).values()
    types = {_type(content.get("schema", {})) for content in contents}
    description = f"{_prose(response['description'])} {' '.join(sorted(types))}"
    return f"<tr><th>{status}</th><td>{description}</td></tr>"


def _schema(name: str, schema: Document) -> str:
    """Return the section of a schema, with a row for each of its fields."""
    required = schema.get("required", ())
    title = escape(name)
    description = _prose(schema.get("description", ""))
    rows = ""
    for field, form in schema.get("properties", {}).items():
        note = "" if field in required else " (optional)"
        meaning = _prose(form.get("description", ""))
        rows += f"<tr><th><code>{escape(field)}{note}</code></th><td>{_type(form)}</td>"
        rows += f"<td>{meaning}</td></tr>"
    heading = f"<h3>{title}</h3><p>{description}</p>"
    return f"<section id='{title}'>{heading}<table>{rows}</table></section>"


def _type(form: Document) -> str:
    """Return the type of a JSON schema in words, with links to fields."""
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
    pieces = escape(text).split("`")
    # Every second piece stands between backticks.
    for position in range(1, len(pieces), 2):
        pieces[position] = f"<code>{pieces[position]}</code>"
    return "".join(pieces)
