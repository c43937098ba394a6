"""A grammar of heads: of requests that are complete, and of those that are odd in any part."""

import random
from collections.abc import Callable

from reliability.cases.fuzzing.bodies import damaged, lines_body, pair_body, score_body
from reliability.traffic import JSON, MATCH, NDJSON, SCORE, in_chunk

Draw = random.Random

_FORMS: list[tuple[str, str, Callable[[Draw], bytes]]] = [
    (SCORE, JSON, score_body),
    (SCORE, NDJSON, lines_body),
    (MATCH, JSON, pair_body),
]
_OTHERS = ["/", "/health/live", "/health/ready", "/metrics", "/v1/models", "/openapi.json", "/v1/", "/v1/score/"]
_QUERIES = ["?model=all", "?idf=%ff&idf=", "?rescale=en", "?rescale=false&x=1", "?", "?%", "?=&&==", "?model=%00"]
_TYPES = [
    f"{JSON}; charset=utf-8",
    f"{JSON}; charset=latin-1",
    f"{JSON}; charset=utf-16",
    f'{NDJSON};charset="UTF-8"',
    JSON.upper(),
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
    ";",
    "application/json/json; =;",
    "x" * 5_000,
]
_SOUND_HEADERS = [
    "Authorization: Bearer " + "x" * 40,
    "Authorization: Basic eDp5",
    "Authorization:",
    "Expect: 100-continue",
    "Accept: text/html",
    "Accept-Encoding: br, gzip",
    "Content-Encoding: identity",
    "Content-Encoding: gzip",
    "X-Request-Id: \u00e9",
    "Cookie: " + "a=b; " * 500,
    "Origin: http://elsewhere.example",
    "X-Forwarded-For: 10.0.0.1, , ::1",
    "Range: bytes=0-",
]
_ODD_HEADERS = [
    "Host: y",
    "Host:",
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: +5",
    "Content-Length: 5, 5",
    "Content-Length: " + "9" * 30,
    "Content-Length: five",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: \x0bchunked",
    "Expect: a miracle",
    "Connection: upgrade\r\nUpgrade: websocket",
    "Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c",
    "Connection: close, keep-alive",
    "No colon",
    " Folded: line",
    "Na me: x",
    "X: \x00",
    "X: " + "y" * 70_000,
    "\r\n".join(f"X-{number}: y" for number in range(300)),
    ": no name",
]
_METHODS = [
    "GET",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "CONNECT",
    "post",
    "X" * 300,
    "PO\tST",
    "\u00e9",
]
_TARGETS = [
    "*",
    "http://elsewhere.example/v1/score",
    "//v1/score",
    "/v1/../v1/score",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/%00",
    "/v1/score#fragment",
    "/" + "a" * 30_000,
    "/\u00e9\u0301",
    "v1/score",
    "",
    "/a b",
    "/%",
]
_VERSIONS = ["HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "http/1.1", "HTTP/1.1 ", "", "HTTP/" + "1" * 300]


def complete_request(draw: Draw) -> bytes:
    """Return a request that is whole, to be answered whatever it says: a sound head, and some body."""
    path, media_type, make_body = draw.choice(_FORMS)
    body = damaged(make_body(draw), draw)
    method = "POST"
    if draw.random() < 0.15:
        method, path, body = (
            draw.choice(["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"]),
            draw.choice(_OTHERS),
            b"",
        )
    if draw.random() < 0.15:
        path += draw.choice(_QUERIES)
    if draw.random() < 0.1:
        media_type = draw.choice(_TYPES)
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Type: {media_type}"]
    while draw.random() < 0.2:
        lines.append(draw.choice(_SOUND_HEADERS))
    if draw.random() < 0.3:
        return _head([*lines, "Transfer-Encoding: chunked"]) + _in_chunks(body, draw)
    return _head([*lines, f"Content-Length: {len(body)}"]) + body


def odd_request(draw: Draw) -> bytes:
    """Return a request of which the method, the target, the version, the headers or the lengths are odd."""
    path, media_type, make_body = draw.choice(_FORMS)
    body = make_body(draw)
    method, version, end = "POST", "HTTP/1.1", "\r\n"
    headers = ["Host: x", f"Content-Type: {media_type}", f"Content-Length: {len(body)}"]
    for _ in range(draw.randint(1, 2)):
        part = draw.randrange(7)
        if part == 0:
            method = draw.choice(_METHODS)
        elif part == 1:
            path = draw.choice(_TARGETS)
        elif part == 2:
            version = draw.choice(_VERSIONS)
        elif part == 3:
            headers.pop(draw.randrange(len(headers)))
        elif part == 4:
            end = draw.choice(["\n", "\r", "\r\r\n"])
        else:
            headers.insert(draw.randrange(len(headers) + 1), draw.choice(_ODD_HEADERS))
    content = _head([f"{method} {path} {version}", *headers], end) + body
    return draw.randbytes(draw.randint(1, 3_000)) if draw.random() < 0.03 else content


def _head(lines: list[str], end: str = "\r\n") -> bytes:
    return (end.join(lines) + end + end).encode()


def _in_chunks(body: bytes, draw: Draw) -> bytes:
    """Return a body in chunks of any sizes."""
    chunks = []
    while body:
        size = draw.choice([1, 10, 100, 10_000])
        chunks.append(in_chunk(body[:size]))
        body = body[size:]
        if len(chunks) > 50:
            chunks.append(in_chunk(body))
            break
    return b"".join(chunk for chunk in chunks if chunk != in_chunk(b"")) + in_chunk(b"")
