"""Strings of all kinds go through a scorer, and malformed bodies to a server: nothing breaks, memory stays."""

import http.client
import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from bertscore_onnx import BERTScorer
from harness.results import Figure
from reliability.bounds import at_most, none_of
from reliability.memory import resident_mb
from reliability.server import Client, Server
from reliability.settings import Settings

GROWTH_MB = 32.0
CALL = 200
"""Strings in a call."""

_RANGES = [(0x20, 0x7F), (0, 0x20), (0x80, 0x250), (0x300, 0x370), (0x600, 0x700), (0x2000, 0x2100), (0x4E00, 0x9FFF)]
_MORE = [(0xD800, 0xE000), (0xE000, 0xF8FF), (0xFE00, 0xFE10), (0x1F300, 0x1FAFF), (0xE0000, 0xE0080), (0, 0x110000)]

JSON, NDJSON = "application/json", "application/x-ndjson"
_PAIR: dict[str, Any] = {"candidate": "a text", "reference": "another text"}
ENDPOINTS: list[tuple[str, str, dict[str, Any]]] = [
    ("/v1/score", JSON, {"pairs": [_PAIR, {"candidate": "x", "references": ["y", "z"]}]}),
    ("/v1/score", NDJSON, _PAIR),
    ("/v1/match", JSON, _PAIR),
]
"""Path, type and a sound body of everything that takes a body."""

_WRONG: list[Any] = [None, True, -1, 1e308, "", [], {}, [[]], {"a": 1}, "\ud800", 10**400, ["x"] * 2000]
NO_ANSWER = 0


def measure(settings: Settings) -> list[Figure]:
    """Fuzz the scorer, then the server."""
    return [*_fuzz_scorer(settings), *_fuzz_server(settings)]


def _fuzz_scorer(settings: Settings) -> list[Figure]:
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    calls = settings.sizes.fuzzed_strings // CALL
    failed, undefined, samples = 0, 0, []
    with BERTScorer(settings.tiny, device="cpu") as scorer, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty texts and long ones, which are meant
        for _ in range(calls):
            texts = [_string(draw) for _ in range(CALL)]
            try:
                scores = scorer.score(texts[: CALL // 2], texts[CALL // 2 :])
            except Exception:
                failed += 1
            else:
                undefined += sum(int((~np.isfinite(part)).sum()) for part in scores)
            samples.append(resident_mb())
    warm = samples[len(samples) // 5 :]
    return [
        none_of(f"of {calls} calls with {calls * CALL:,} edge-case strings, failed", failed),
        none_of("scores that are not numbers", undefined),
        at_most("growth of memory after the first fifth", max(warm) - warm[0], "MB", GROWTH_MB),
    ]


def _string(draw: random.Random) -> str:
    length = draw.choice([0, 1, 3, 20, 20, 100, 1000])
    ranges = draw.choices([*_RANGES, *_MORE], k=draw.randint(1, 3))
    return "".join(chr(draw.randrange(*draw.choice(ranges))) for _ in range(length))


def _fuzz_server(settings: Settings) -> list[Figure]:
    count = settings.sizes.malformed_bodies
    broken = unanswered = asked = 0
    with Server(settings.tiny) as server:
        for path, media_type, sound in ENDPOINTS:
            for body in _malformed(sound, count):
                status, answer = _send(server, body, path, media_type)
                asked += 1
                unanswered += status == NO_ANSWER
                broken += status >= 500 or b'"internal"' in answer  # a stream says it in a line
        is_ready = '"ready"' in server.text("/health/ready")
    return [
        none_of(f"of {asked:,} malformed bodies, answered 5xx", broken),
        none_of("not answered", unanswered),
        none_of("servers that are not ready afterwards", not is_ready),
    ]


def _send(server: Server, body: bytes, path: str, media_type: str) -> tuple[int, bytes]:
    try:
        with Client(server.port) as client:
            return client.post(body, path, media_type)
    except (OSError, http.client.HTTPException):
        return NO_ANSWER, b""


def _malformed(sound: dict[str, Any], count: int) -> Iterator[bytes]:
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    text = json.dumps(sound).encode()
    damages = [_cut, _flip, _noise, _nested, _doubled, _mistyped]
    for number in range(count):
        yield damages[number % len(damages)](text, draw)


def _cut(text: bytes, draw: random.Random) -> bytes:
    return text[: draw.randrange(len(text))]


def _flip(text: bytes, draw: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(draw.randint(1, 5)):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _noise(text: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(text))
    return text[:at] + draw.randbytes(draw.randint(1, 200)) + text[at:]


def _nested(text: bytes, draw: random.Random) -> bytes:
    depth = draw.choice([10, 1000, 100_000])
    opening, closing = draw.choice([(b"[", b"]"), (b'{"pairs":', b"}")])
    return opening * depth + text + closing * depth


def _doubled(text: bytes, draw: random.Random) -> bytes:
    return draw.choice([text + text, text + b"," + text, b"\xef\xbb\xbf" + text, text[:-1] + b"," + text[1:]])


def _mistyped(text: bytes, draw: random.Random) -> bytes:
    body = json.loads(text)
    target = draw.choice([body, *body["pairs"]]) if "pairs" in body else body
    target[draw.choice([*target, "unknown"])] = draw.choice(_WRONG)
    return json.dumps(body).encode()
