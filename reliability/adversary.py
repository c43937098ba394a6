"""Case 11: a server is attacked in many ways, each from a process of its own.

It must answer health checks, keep to its memory, let others in, and stop on SIGTERM.
"""

import asyncio
import http.client
import math
import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial

from msgspec import structs

from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.report import at_most, none_of
from reliability.server import HEALTH_SECONDS, KEPT_MB, MEMORY_MB, RETURN_SECONDS, SLOT_SECONDS, Client, Server, Watch
from reliability.settings import Settings
from reliability.traffic import (
    BLOCK,
    MATCH,
    NDJSON,
    NEVER,
    SCORE,
    Attacker,
    Ending,
    Exchange,
    Traffic,
    connected,
    for_seconds,
    in_chunk,
    meanwhile,
    pair_body,
    pairs_body,
    play,
    repeat_requests,
    request_of,
    send,
    status_of,
    statuses_in,
    stream_head,
)

_PAUSE = 0.1  # seconds before connecting again

# --- bodies that cost much more than others of their size ---

LARGEST = 1_900_000  # bytes; a little less than a server accepts by default
MARKS = "\u0315\u0300\u0315\u0323"  # combining marks, each of another class than the one before
DOTS_BYTES = 47_000  # most of these bytes are a token each
PAIR_BYTES = 34  # of a pair without its texts


def duplicate_keys() -> list[bytes]:
    """Return objects with one key very many times, known and unknown, in a pair and around it."""
    members = [b'"candidate":"a"', b'"k":0']
    many = [b",".join([member] * min(175_000, LARGEST // (len(member) + 1))) for member in members]
    pairs = [b'{"reference":"b","candidate":"a",' + member + b"}" for member in many]
    outer = b",".join([b'"model":null'] * 140_000)
    return [
        *(request_of(b'{"pairs":[' + pair + b"]}") for pair in pairs),
        request_of(b'{"pairs":[{"candidate":"a","reference":"b"}],' + outer + b"}"),
        *(request_of(pair, MATCH) for pair in pairs),
        *(request_of(pair + b"\n", SCORE, NDJSON) for pair in pairs),
    ]


def combining_marks() -> list[bytes]:
    """Return one letter with very many marks, which normalisation has to sort, for every endpoint."""
    requests = []
    for size in (200_000, LARGEST):
        pair = pair_body("a" + MARKS * (size // len(MARKS.encode())), "b")
        requests += [
            request_of(b'{"pairs":[' + pair + b"]}"),
            request_of(pair + b"\n", SCORE, NDJSON),
            request_of(pair, MATCH),
        ]
    return requests


def dots() -> list[bytes]:
    """Return bodies of texts with a token per byte: many short texts, many words, long words, and one pair."""
    return [
        dense_body(DOTS_BYTES, words, longest) for words, longest in ((1, 4), (2, 6), (40, 6), (1, DOTS_BYTES // 2))
    ]


def dense_body(size: int, words: int, longest: int, most_pairs: int = 1_000) -> bytes:
    """Return a body of about `size` bytes with pairs of punctuation.

    Each text has `words` words of `longest` characters; if they are long enough, no two texts are alike.
    """
    draw = random.Random(0)
    pairs: list[tuple[str, str]] = []
    while size > 0 and len(pairs) < most_pairs:
        candidate, reference = (
            " ".join("".join(draw.choices("?!.,;", k=longest)) for _ in range(words)) for _ in range(2)
        )
        pairs.append((candidate, reference))
        size -= len(candidate) + len(reference) + PAIR_BYTES
    return request_of(pairs_body(pairs))


def token_bombs() -> list[bytes]:
    """Return texts that grow when they are normalised, or that have no end of a word, in the largest bodies."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
    long_texts = [text * (LARGEST // (2 * len(text.encode()))) for text in ("\ufdfa", "x", family)]
    many = pairs_body([(f"{number} " + "\ufdfa" * 1_200, f"{number} " + "\u00e9" * 1_800) for number in range(256)])
    longer = pairs_body([(f"{number}" + " word" * 720, f"{number}" + "?" * 3_600) for number in range(256)])
    return [*(request_of(pairs_body([(text, text)])) for text in long_texts), request_of(many), request_of(longer)]


def long_matches() -> list[bytes]:
    """Return pairs of long texts, all of whose tokens are compared."""
    prose = " ".join(synthetic_pairs(3_000)[1])
    return [request_of(pair_body(prose[:size], prose[size : 2 * size]), MATCH) for size in (40_000, 110_000)]


def largest_body() -> bytes:
    """Return the largest body with many pairs of prose."""
    prose = " ".join(synthetic_pairs(20_000)[1])
    texts = [prose[start : start + 1_800] for start in range(0, LARGEST - 60_000, 1_800)]
    return request_of(pairs_body(zip(texts[::2], texts[1::2], strict=False)))


# --- streams of very many lines, whose answers are read or not ---

STREAMS, STREAM_BYTES = 30, 3_000_000
UNREAD_BYTES = 4096  # that the system buffers for a client that does not read


async def wrong_lines(port: int, seconds: float) -> Counter[int]:
    """Send lines that are not JSON, and read the errors."""
    return await _streams(port, seconds, [b"{\n"], are_read=True)


async def wrong_lines_unread(port: int, seconds: float) -> Counter[int]:
    """Send lines that are not JSON, and read nothing."""
    return await _streams(port, seconds, [b"{\n"], are_read=False)


async def tiny_lines(port: int, seconds: float) -> Counter[int]:
    """Send blank lines, and the shortest valid ones."""
    return await _streams(port, seconds, [b"\n", pair_body("", "") + b"\n"], are_read=True)


async def pair_lines(streams: int, port: int, seconds: float) -> Counter[int]:
    """Send thousands of pairs of prose over each of some streams."""
    lines = b"".join(pair_body(*pair) + b"\n" for pair in zip(*synthetic_pairs(1_000), strict=True))
    return await _streams(port, seconds, [lines], streams, are_read=True)


async def _streams(
    port: int, seconds: float, lines: list[bytes], streams: int = STREAMS, *, are_read: bool
) -> Counter[int]:
    """Send streams as fast as the server reads them, each again and again."""
    chunks = [in_chunk(line * max(1, BLOCK // len(line))) for line in lines]
    statuses: Counter[int] = Counter()

    async def stream(chunk: bytes) -> None:
        while True:
            try:
                async with (
                    connected(port, receive_buffer=BLOCK if are_read else UNREAD_BYTES) as (reader, writer),
                    meanwhile(_send_stream(writer, chunk)),
                ):
                    statuses.update(await _distinct_statuses(reader) if are_read else await asyncio.Future())
            except OSError:
                await asyncio.sleep(0.05)  # the server has closed the stream

    await for_seconds(seconds, [stream(chunks[number % len(chunks)]) for number in range(streams)])
    return statuses


async def _send_stream(writer: asyncio.StreamWriter, chunk: bytes) -> None:
    await send(writer, stream_head())
    for _ in range(STREAM_BYTES // len(chunk)):
        await send(writer, chunk)
    await send(writer, in_chunk(b""))


async def _distinct_statuses(reader: asyncio.StreamReader) -> list[int]:
    """Read to the end of the connection; return the status, and that of an internal error in a line."""
    statuses: set[int] = set()
    while block := await reader.read(BLOCK):
        statuses.update(statuses_in(block))
    return sorted(statuses)


# --- clients that use all requests that a server has in progress at a time, and do next to nothing ---

SLOTS = 8
READ_TIMEOUT = 1.0
SLOT_OPTIONS = ("--max-requests", str(SLOTS), "--read-timeout", str(READ_TIMEOUT))  # of the server
PIPELINED = 50


async def unread_answers(port: int, seconds: float) -> Counter[int]:
    """Send requests with large answers one after another over each connection, and read none."""
    request = request_of(pairs_body([("a", "b")] * 1_000), close=False)

    async def client() -> None:
        async with connected(port, receive_buffer=UNREAD_BYTES) as (_, writer):
            for _ in range(PIPELINED):
                await send(writer, request)
            await asyncio.Event().wait()

    await for_seconds(seconds, [client() for _ in range(SLOTS)])
    return Counter()


async def slow_uploads(port: int, seconds: float) -> Counter[int]:
    """Send bodies of known length, and chunked ones, a byte at a time."""
    head, length, _ = request_of(b" " * 1_000).partition(b"\r\n\r\n")
    known = [head + length, *[b" "] * 1_000]
    chunked = [stream_head(), *[in_chunk(b" ")] * 1_000]
    return await _slowly(port, seconds, [known, chunked])


async def slow_lines(port: int, seconds: float) -> Counter[int]:
    """Send streams with a blank line now and then."""
    return await _slowly(port, seconds, [[stream_head(), *[in_chunk(b"\n")] * 1_000]])


async def _slowly(port: int, seconds: float, kinds: list[list[bytes]]) -> Counter[int]:
    async def client(parts: list[bytes]) -> None:
        async with connected(port) as (_, writer):
            for part in parts:
                await send(writer, part)
                await asyncio.sleep(READ_TIMEOUT / 2)

    await for_seconds(seconds, [client(kinds[number % len(kinds)]) for number in range(SLOTS)])
    return Counter()


# --- too many connections, clients that keep sending after the answer, and data that is not HTTP ---

OPEN_FILES = 256  # that the server may have at a time
IDLE = 400  # connections
LARGE_BODIES = 512  # as many requests as a server has in progress at a time by default
LIMIT = 10.0  # seconds within which a connection has to get an answer or its end


async def idle_connections(port: int, seconds: float) -> Counter[int]:
    """Open more connections than the server may have files, again if it closes one; send nothing."""

    async def client() -> None:
        while True:
            try:
                async with connected(port) as (reader, _):
                    await reader.read(1)
            except OSError:
                pass
            await asyncio.sleep(_PAUSE)

    await for_seconds(seconds, [client() for _ in range(IDLE)])
    return Counter()


async def large_bodies(port: int, seconds: float) -> Counter[int]:
    """Send one of the largest bodies over each of many connections, all at a time."""
    request = largest_body()
    statuses: Counter[int] = Counter()

    async def client() -> None:
        statuses[await status_of(request, port)] += 1

    await for_seconds(seconds, [client() for _ in range(LARGE_BODIES)])
    return statuses


async def odd_connections(port: int, seconds: float) -> Counter[int]:
    """Open connections of every odd kind over and over, and count those that get neither an answer nor their end."""
    statuses: Counter[int] = Counter()

    async def client(odd: Exchange) -> None:
        while True:
            statuses.update(await play(odd, port, LIMIT))
            await asyncio.sleep(_PAUSE)

    await for_seconds(max(seconds, LIMIT + 1), [client(odd) for odd in _odd_exchanges()])
    return statuses


def _odd_exchanges() -> list[Exchange]:
    pair = pair_body("a", "b")
    sound = request_of(pairs_body([("a", "b")]), close=False)
    head, _, body = sound.partition(b"\r\n\r\n")
    upload = [b" " * 1_000] * (LARGEST // 1_000)
    refused = request_of(b" " * LARGEST, SCORE, "text/plain", close=False).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    too_large = refused.replace(b"text/plain", b"application/json").replace(b": 1900000", b": 1000000000")
    both = head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + in_chunk(body) + in_chunk(b"")
    old = stream_head().replace(b"HTTP/1.1", b"HTTP/1.0") + in_chunk(pair + b"\n") + in_chunk(b"")
    malformed = [
        b"\r\n\r\n\r\nGET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        stream_head() + b"zz\r\nno length\r\n",
        stream_head() + in_chunk(pair) + b"-5\r\n",
        sound.replace(b"Content-Length: ", b"Content-Length: -"),
    ]
    waiting, half_closed = Ending.WAIT, Ending.HALF_CLOSE
    kinds = [
        ([refused, *upload], 0.01, waiting),
        ([too_large, *upload], 0.01, waiting),
        ([refused, *upload], 0.01, half_closed),
        ([both], 0.0, waiting),
        ([old], 0.0, waiting),
        ([sound], 0.0, half_closed),
        ([sound * 3], 0.0, half_closed),
        ([stream_head() + in_chunk(pair)], 0.0, half_closed),
        *(([content], 0.0, waiting) for content in malformed),
    ]
    # a server may keep a connection open after an answer, but not keep reading a refused body
    return [Exchange(parts, pause, ending, may_stay_open=True) for parts, pause, ending in kinds]


# --- the case ---

FEW = 4  # connections, if each request costs much
DRAIN = 5  # seconds for requests in progress at SIGTERM
LAST_SECONDS = 6  # after those, until the server has ended
BACK_SECONDS = 5.0  # within which an honest request is scored
HOLDING_SECONDS = 7.0  # for which slots are held at least, so that the end of the attack does not let others in
LOG_LINES = 300
PERMITTED = (503, 504)  # a full queue and a passed deadline are no faults of the server
HONEST = pairs_body([("It is cold today.", "It is freezing today.")])

_TAKING_SECONDS = 0.5  # within which all slots are taken: half of the time that the server waits for a client
_BEFORE_STOP = 1.0


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, and how the server is started for it."""

    traffic: Traffic
    options: tuple[str, ...] = ()
    open_files: int | None = None
    holds_slots: bool = False  # it has all requests that may be in progress, so others must be let in meanwhile


ATTACKS = {
    "duplicate keys": Attack(partial(repeat_requests, duplicate_keys, FEW)),
    "combining marks": Attack(partial(repeat_requests, combining_marks, FEW)),
    "wrong lines": Attack(wrong_lines),
    "wrong lines, unread": Attack(wrong_lines_unread),
    "tiny lines": Attack(tiny_lines),
    "unread answers": Attack(unread_answers, SLOT_OPTIONS, holds_slots=True),
    "slow uploads": Attack(slow_uploads, SLOT_OPTIONS, holds_slots=True),
    "slow lines": Attack(slow_lines, SLOT_OPTIONS, holds_slots=True),
    "dots": Attack(partial(repeat_requests, dots, 2 * (os.cpu_count() or 1))),
    "token bombs": Attack(partial(repeat_requests, token_bombs, FEW)),
    "long matches": Attack(partial(repeat_requests, long_matches, FEW), ("--long-text", "window")),
    "idle connections": Attack(idle_connections, open_files=OPEN_FILES),
    "large bodies": Attack(large_bodies),
    "odd connections": Attack(odd_connections),
}


def measure(settings: Settings) -> list[Figure]:
    """Attack a new server each time, and return for each bound the worst figure of all attacks, with its attack."""
    worst: dict[str, tuple[Figure, str]] = {}
    for name, attack in ATTACKS.items():
        figures = _figures_of(settings, attack)
        print(f"{name}: {', '.join(f'{one.name}: {one.median:.4g}' for one in figures)}", file=sys.stderr)
        for one in figures:
            if one.name not in worst or one.median > worst[one.name][0].median:
                worst[one.name] = one, name
    return [
        structs.replace(one, name=f"{one.name} ({name})" if one.median else one.name) for one, name in worst.values()
    ]


def _figures_of(settings: Settings, attack: Attack) -> list[Figure]:
    """Attack a new server twice: to the end, and until SIGTERM comes in the middle."""
    seconds = max(settings.sizes.attack_seconds, HOLDING_SECONDS if attack.holds_slots else 0)
    options = ("--drain", str(DRAIN), *attack.options)
    with Server(settings.minilm, *options, open_files=attack.open_files) as server:
        _until_scored(server)  # fills the server's caches
        lines = server.log().count("\n")
        with Watch(server) as watch:
            with Attacker(attack.traffic, server.port, seconds) as attacker:
                if attack.holds_slots:
                    time.sleep(_TAKING_SECONDS)
                    back = _until_scored(server)
                statuses = attacker.statuses()
            if not attack.holds_slots:
                back = _until_scored(server)
            slots = server.requests_left(SLOT_SECONDS)
            log = server.log()
            kept = watch.kept_mb()
        with Attacker(attack.traffic, server.port, seconds):
            time.sleep(_BEFORE_STOP)  # so that SIGTERM comes in the middle of the attack
            ending, exit_status = server.wait(server.stop(), 2 * (DRAIN + LAST_SECONDS))
    print(f"statuses of the answers to the attacker: {dict(statuses)}", file=sys.stderr)
    broken = sum(count for status, count in statuses.items() if status >= 500 and status not in PERMITTED)
    figures = [
        at_most("slowest /health/live", watch.slowest, "s", HEALTH_SECONDS, of_speed=True),
        none_of("probes of it without an answer", watch.unanswered),
        at_most("growth of memory", watch.growth_mb, "MB", MEMORY_MB),
        at_most(f"of which was kept after {RETURN_SECONDS:g} s", kept, "MB", KEPT_MB),
        none_of("answers to attackers, 5xx other than 503 and 504", broken),
        none_of("neither answered nor closed", statuses[NEVER]),
        at_most("until an honest request is scored", back, "s", BACK_SECONDS, of_speed=True),
        at_most(f"slots that are taken up {SLOT_SECONDS:g} s after the attack", slots, "", 0),
        none_of("tracebacks in the log", log.count("Traceback")),
        at_most("from SIGTERM to the end", ending, "s", DRAIN + LAST_SECONDS, of_speed=True),
        none_of("exit status other than 0", exit_status != 0),
    ]
    if attack.traffic is idle_connections:
        figures.append(at_most("lines logged", log.count("\n") - lines, "", LOG_LINES))
    return figures


def _until_scored(server: Server) -> float:
    """Send an honest request until it is scored; return the seconds, infinity after `BACK_SECONDS`."""
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < BACK_SECONDS:
        try:
            with Client(server.port, timeout=BACK_SECONDS - waited) as client:
                if client.post(HONEST)[0] == 200:
                    return time.monotonic() - begun
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.1)
    return math.inf
