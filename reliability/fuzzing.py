"""Case 9: strings of all kinds go through a scorer, and requests of a grammar to a server; nothing
breaks.
"""

import asyncio
import copy
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bertscore_onnx import BERTScorer
from harness.processes import resident_mb
from harness.results import Figure
from reliability.adversary import LARGEST
from reliability.mutated import mutate_tree, mutated_text
from reliability.report import at_most, none_of
from reliability.server import Server, Watch
from reliability.settings import Settings
from reliability.traffic import (
    CLOSED,
    JSON,
    MATCH,
    SCORE,
    Attacker,
    Ending,
    Exchange,
    in_chunk,
    play,
)

GROWTH_MB = 32.0  # of the scorer's process
STRINGS_PER_CALL = 200
READ_TIMEOUT = "2"  # seconds that the server waits for the rest of a body

Draw = random.Random


def measure(settings: Settings) -> list[Figure]:
    """Fuzz the scorer, then the server."""
    return [*_fuzz_scorer(settings), *_fuzz_server(settings)]


def _fuzz_scorer(settings: Settings) -> list[Figure]:
    draw = Draw(0)
    calls = settings.sizes.fuzzed_strings // STRINGS_PER_CALL
    failed, undefined, samples = 0, 0, []
    with BERTScorer(settings.tiny, device="cpu") as scorer, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty texts and long ones, which are intended
        for _ in range(calls):
            texts = [odd_string(draw) for _ in range(STRINGS_PER_CALL)]
            try:
                scores = scorer.score(
                    texts[: STRINGS_PER_CALL // 2], texts[STRINGS_PER_CALL // 2 :]
                )
            except Exception:
                failed += 1
            else:
                undefined += sum(int((~np.isfinite(part)).sum()) for part in scores)
            samples.append(resident_mb())
    warm = samples[len(samples) // 5 :]
    return [
        none_of(
            f"of {calls} calls with {calls * STRINGS_PER_CALL:,} edge-case strings, failed", failed
        ),
        none_of("scores that are not numbers", undefined),
        at_most("growth of memory after the first fifth", max(warm) - warm[0], "MB", GROWTH_MB),
    ]


def _fuzz_server(settings: Settings) -> list[Figure]:
    count, limit = settings.sizes.fuzzed_requests, settings.sizes.case_seconds
    with (
        Server(settings.tiny, "--limits", f"read_timeout={READ_TIMEOUT}") as server,
        Watch(server) as watch,
    ):
        with Attacker(partial(play_all, count), server.port, limit) as client:
            client.begin()
            statuses = client.statuses()
        return [
            none_of(
                f"of {count:,} requests of a grammar, complete ones without an answer",
                statuses[CLOSED],
            ),
            *watch.figures(statuses),
            none_of(
                "servers that are not ready afterwards",
                '"ready"' not in server.get("/health/ready"),
            ),
        ]


# --- strings ---

RANGES = [
    (0x20, 0x7F),
    (0, 0x20),
    (0x80, 0x250),
    (0x300, 0x370),
    (0x600, 0x700),
    (0x2000, 0x2100),
    (0x4E00, 0x9FFF),
]
RANGES += [
    (0xD800, 0xE000),
    (0xE000, 0xF8FF),
    (0xFE00, 0xFE10),
    (0x1F300, 0x1FAFF),
    (0xE0000, 0xE0080),
    (0, 0x110000),
]
POOL = 40  # characters of each range from which a string is made


def odd_string(draw: Draw) -> str:
    """Return a string of characters from a few ranges, halves of surrogate pairs among them."""
    length = draw.choice([0, 1, 3, 20, 20, 100, 1000])
    ranges = draw.choices(RANGES, k=draw.randint(1, 3))
    pool = [number for start, end in ranges for number in draw.choices(range(start, end), k=POOL)]
    return "".join(map(chr, draw.choices(pool, k=length)))


# --- bodies: JSON that is valid, of another form in a place, or damaged ---

_TOKENS = [b"-0", b"1e308", b"1e999", b"01", b"1.", b"0x1", b"9" * 400, b"18446744073709551616"]
_TOKENS += [b"null", b"true", b"NaN", b"-Infinity", b"undefined", b"nul", b"", b"'a'"]
_TOKENS += [
    b'"\\ud800"',
    b'"\\ud83d\\ude00"',
    b'"\\u0000"',
    b'"\x00"',
    b'"\n"',
    b'"\\x"',
    b'"\xff\xfe"',
    b'"a',
]
# broken UTF-8
_TOKENS += [
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"\xef\xbb\xbf",
    b"\x80",
]
_SETTINGS = ["model", "rescale", "idf", "pairs", "candidate", "unknown", "", "Pairs"]
_VALUES: list[Any] = [None, True, 0, -1, 1.5, "", "en", "all", [], {}, [[]], {"a": 1}]
_OPENINGS = [(b"[", b"]"), (b'{"pairs":', b"}"), (b'{"a":[', b"]}")]


def score_body(draw: Draw) -> bytes:
    """Return a body for `/v1/score`."""
    return _written({"pairs": [_pair(draw) for _ in range(draw.choice([0, 1, 1, 2, 5]))]}, draw)


def match_body(draw: Draw) -> bytes:
    """Return a body for `/v1/match`."""
    return _written(_pair(draw), draw)


def damaged(body: bytes, draw: Draw) -> bytes:
    """Return a body that is damaged in a quarter of all cases."""
    return draw.choice(_DAMAGES)(body, draw) if draw.random() < 0.25 else body


def _pair(draw: Draw) -> dict[str, object]:
    pair: dict[str, object] = {"candidate": odd_string(draw), "reference": odd_string(draw)}
    if draw.random() < 0.25:
        pair["references"] = [odd_string(draw) for _ in range(draw.randint(0, 3))]
        del pair["reference"]
    return pair


def _written(tree: dict[str, object], draw: Draw) -> bytes:
    """Return a tree as JSON, with more members, changed or with a member twice in a part of all
    cases.
    """
    while draw.random() < 0.2:
        # for it may be changed next
        tree[draw.choice(_SETTINGS)] = copy.deepcopy(draw.choice(_VALUES))
    body = _as_json(tree, draw)
    if draw.random() < 0.15:
        mutate_tree(tree, draw)
        changed = _as_json(tree, draw)
        body = changed if len(changed) < LARGEST else body  # case 11 sends larger ones
    if draw.random() < 0.1 and len(body) < 10_000:
        body = b"{" + b",".join([body[1:-1] or b'"a":0'] * draw.choice([2, 2, 10])) + b"}"
    return body


def _as_json(tree: object, draw: Draw) -> bytes:
    return json.dumps(tree, ensure_ascii=draw.random() < 0.5).encode(errors="surrogatepass")


def _insert(body: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(body) + 1)
    return body[:at] + draw.choice(_TOKENS) + body[at:]


def _nest(body: bytes, draw: Draw) -> bytes:
    depth = draw.choice([10, 10, 1_000, 20_000])
    opening, closing = draw.choice(_OPENINGS)
    return opening * depth + body + closing * depth


def _double(body: bytes, draw: Draw) -> bytes:
    return draw.choice(
        [body + body, body + b"," + body, b"\xef\xbb\xbf" + body, body[:-1] + b"," + body[1:]]
    )


_DAMAGES: list[Callable[[bytes, Draw], bytes]] = [
    mutated_text,
    mutated_text,
    _insert,
    _nest,
    _double,
]

# --- requests: complete ones, and those that are odd in any part ---

_FORMS: list[tuple[str, str, Callable[[Draw], bytes]]] = [
    (SCORE, JSON, score_body),
    (MATCH, JSON, match_body),
]
_OTHERS = [
    "/",
    "/health/live",
    "/health/ready",
    "/metrics",
    "/v1/models",
    "/openapi.json",
    "/v1/",
    "/v1/score/",
]
_QUERIES = [
    "?model=all",
    "?idf=%ff&idf=",
    "?rescale=en",
    "?rescale=false&x=1",
    "?",
    "?%",
    "?=&&==",
    "?model=%00",
]
_TYPES = [
    f"{JSON}; charset=utf-8",
    f"{JSON}; charset=latin-1",
    f"{JSON}; charset=utf-16",
    JSON.upper(),
    "text/plain",
]
_TYPES += [
    "application/x-ndjson",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
]
_TYPES += ["", ";", "application/json/json; =;", "x" * 5_000]
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
_LENGTHS = ["5", "-1", "+5", "5, 5", "9" * 30, "five"]
_CODINGS = ["chunked", "gzip, chunked", "chunked, identity", "\x0bchunked"]
_ODD_HEADERS = [
    *(f"Content-Length: {length}" for length in _LENGTHS),
    *(f"Transfer-Encoding: {coding}" for coding in _CODINGS),
    "Host: y",
    "Host:",
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
_SOUND_METHODS = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"]
_METHODS = [*_SOUND_METHODS, "TRACE", "CONNECT", "post", "X" * 300, "PO\tST", "\u00e9"]
_TARGETS = [
    "*",
    "http://elsewhere.example/v1/score",
    "//v1/score",
    "/v1/../v1/score",
    "/%2e%2e/%2e%2e/etc/passwd",
]
_TARGETS += [
    "/%00",
    "/v1/score#fragment",
    "/" + "a" * 30_000,
    "/\u00e9\u0301",
    "v1/score",
    "",
    "/a b",
    "/%",
]
_VERSIONS = [
    "HTTP/1.0",
    "HTTP/2.0",
    "HTTP/1.2",
    "HTTP/0.9",
    "http/1.1",
    "HTTP/1.1 ",
    "",
    "HTTP/" + "1" * 300,
]


def complete_request(draw: Draw) -> bytes:
    """Return a request that must be answered for any body: a sound head, and a body of its
    length.
    """
    path, media_type, make_body = draw.choice(_FORMS)
    body = damaged(make_body(draw), draw)
    method = "POST"
    if draw.random() < 0.15:
        method, path, body = draw.choice(_SOUND_METHODS), draw.choice(_OTHERS), b""
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
    """Return a request with an odd method, target, version, header or length."""
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
    """Return a body in at most 51 chunks of any sizes."""
    chunks: list[bytes] = []
    while body and len(chunks) < 50:
        size = draw.choice([1, 10, 100, 10_000])
        chunks.append(in_chunk(body[:size]))
        body = body[size:]
    return b"".join(chunks) + (in_chunk(body) if body else b"") + in_chunk(b"")


# --- connections: the data sent over one, its parts, and its end ---

LIMIT = 10.0  # seconds within which a connection has to get its answers or its end
AT_A_TIME = 24
MOST_REQUESTS = 4  # over one connection
PAUSE = 0.005  # seconds after each part


def exchanges(requests: int) -> Iterator[Exchange]:
    """Make up exchanges with this many requests in all, always the same."""
    draw = Draw(0)
    while requests > 0:
        count = min(requests, draw.choice([1, 1, 1, 2, MOST_REQUESTS]))
        kind = draw.random()
        if kind < 0.3:
            count, content = 1, odd_request(draw)
        else:
            content = b"".join(complete_request(draw) for _ in range(count))
        if kind < 0.4:
            content = content if kind < 0.3 else content[: draw.randrange(len(content))]
            ending = draw.choice([Ending.HALF_CLOSE, Ending.RESET])
        else:
            ending = Ending.WAIT if kind < 0.95 else Ending.HALF_CLOSE
        answers = count if ending is Ending.WAIT else 0
        yield Exchange(_in_parts(content, draw), PAUSE, ending, answers)
        requests -= count


def _in_parts(content: bytes, draw: Draw) -> list[bytes]:
    """Cut a request into parts, in three tenths of all cases."""
    if draw.random() < 0.7:
        return [content]
    places = sorted(draw.randrange(len(content) + 1) for _ in range(draw.choice([1, 3, 10])))
    return [
        content[start:end] for start, end in zip([0, *places], [*places, len(content)], strict=True)
    ]


async def play_all(requests: int, port: int, seconds: float) -> Counter[int]:
    """Play exchanges, several at a time; count the statuses, `CLOSED` for a missing answer, and
    `NEVER`.
    """
    statuses: Counter[int] = Counter()
    numbered = enumerate(exchanges(requests))  # shared by all clients

    async def client() -> None:
        for number, exchange in numbered:
            found = await play(exchange, port, LIMIT) or [CLOSED] * (exchange.ending is Ending.WAIT)
            statuses.update(found)
            if any(status <= CLOSED or status >= 500 for status in found):
                print(f"exchange {number}, {exchange.ending}: {found}", file=sys.stderr)

    async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
        for _ in range(AT_A_TIME):
            group.create_task(client())
    return statuses
