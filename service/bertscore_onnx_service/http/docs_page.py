"""The page at `/docs`: the OpenAPI document as HTML, for people."""

import json
from html import escape
from typing import Any

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
        known = document["components"]["responses"].get(answer.get("$ref", "").rpartition("/")[2], answer)
        schemas = {_type(content.get("schema", {})) for content in known.get("content", {}).values()}
        rows.append(f"<tr><th>{status}</th><td>{_prose(known['description'])} {' '.join(sorted(schemas))}</td></tr>")
    return "".join([*parts, f"<h3>Answers</h3><table>{''.join(rows)}</table></section>"])


def _schema(name: str, schema: Document) -> str:
    required = schema.get("required", ())
    rows = (
        (f"{field}{'' if field in required else ' (optional)'}", form, form.get("description", ""))
        for field, form in schema.get("properties", {}).items()
    )
    return (
        f"<section id='{escape(name)}'><h3>{escape(name)}</h3><p>{_prose(schema.get('description', ''))}</p>"
        f"{_table(rows)}</section>"
    )


def _table(rows: Any) -> str:
    cells = (
        f"<tr><th><code>{escape(name)}</code></th><td>{_type(form)}</td><td>{_prose(text)}</td></tr>"
        for name, form, text in rows
    )
    return f"<table>{''.join(cells)}</table>"


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
