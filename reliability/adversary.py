"""Case 11: a server is attacked in many ways, each from a process of its own.

It must answer health checks, keep to its memory, let others in, and stop on SIGTERM.
"""

import asyncio
import math
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock

from msgspec import structs

from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.report import at_most, none_of
from reliability.server import Server, Watch
from reliability.settings import Settings
from reliability.traffic import (
    MATCH,
    SCORE,
    Attacker,
    Ending,
    Exchange,
    Traffic,
    Visit,
    connected,
    crowd,
    in_chunk,
    pair_body,
    pairs_body,
    play,
    repeated_requests,
    request_of,
    send_each,
    send_parts,
    upload_head,
)

# --- bodies that cost much more than others of their size ---

LARGEST = 1_900_000  # bytes; a little less than a server accepts by default
MARKS = "\u0315\u0300\u0315\u0323"  # combining marks, each of another class than the one before
DOTS_BYTES = 47_000  # most of these bytes are a token each
PAIR_BYTES = 34  # of a pair without its texts


@cache
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
    ]


@cache
def combining_marks() -> list[bytes]:
    """Return one letter with very many marks, which normalisation has to sort, for every
    endpoint.
    """
    requests = []
    for size in (200_000, LARGEST):
        pair = pair_body("a" + MARKS * (size // len(MARKS.encode())), "b")
        requests += [
            request_of(b'{"pairs":[' + pair + b"]}"),
            request_of(pair, MATCH),
        ]
    return requests


@cache
def dots() -> list[bytes]:
    """Return bodies of texts with a token per byte: many short texts, many words, long words, and
    one pair.
    """
    return [
        dense_body(DOTS_BYTES, words, longest)
        for words, longest in ((1, 4), (2, 6), (40, 6), (1, DOTS_BYTES // 2))
    ]


def dense_body(size: int, words: int, longest: int, most_pairs: int = 1_000) -> bytes:
    """Return a body of about `size` bytes with pairs of punctuation.

    Each text has `words` words of `longest` characters; if they are long enough, no two texts are
    alike.
    """
    draw = random.Random(0)
    pairs: list[tuple[str, str]] = []
    while size > 0 and len(pairs) < most_pairs:
        candidate, reference = (
            " ".join("".join(draw.choices("?!.,;", k=longest)) for _ in range(words))
            for _ in range(2)
        )
        pairs.append((candidate, reference))
        size -= len(candidate) + len(reference) + PAIR_BYTES
    return request_of(pairs_body(pairs))


@cache
def token_bombs() -> list[bytes]:
    """Return texts that grow when they are normalised, or that have no end of a word, in the
    largest bodies.
    """
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
    long_texts = [text * (LARGEST // (2 * len(text.encode()))) for text in ("\ufdfa", "x", family)]
    many = pairs_body(
        [
            (f"{number} " + "\ufdfa" * 1_200, f"{number} " + "\u00e9" * 1_800)
            for number in range(256)
        ]
    )
    longer = pairs_body(
        [(f"{number}" + " word" * 720, f"{number}" + "?" * 3_600) for number in range(256)]
    )
    return [
        *(request_of(pairs_body([(text, text)])) for text in long_texts),
        request_of(many),
        request_of(longer),
    ]


@cache
def long_matches() -> list[bytes]:
    """Return pairs of long texts, all of whose tokens are compared."""
    prose = " ".join(synthetic_pairs(3_000)[1])
    return [
        request_of(pair_body(prose[:size], prose[size : 2 * size]), MATCH)
        for size in (40_000, 110_000)
    ]


@cache
def largest_body() -> list[bytes]:
    """Return the largest body with many pairs of prose."""
    prose = " ".join(synthetic_pairs(20_000)[1])
    texts = [prose[start : start + 1_800] for start in range(0, LARGEST - 60_000, 1_800)]
    return [request_of(pairs_body(zip(texts[::2], texts[1::2], strict=False)))]


# --- visits by many clients together ---

UNREAD_BYTES = 4096  # that the system buffers for a client that does not read
SLOTS = 8  # requests in progress at a time, all of which some attacks use, doing next to nothing
READ_TIMEOUT = 1.0
# of the server
SLOT_OPTIONS = ("--limits", f"max_requests={SLOTS}", f"read_timeout={READ_TIMEOUT}")
PIPELINED = 50
OPEN_FILES = 256  # that the server may have at a time
IDLE = 400  # connections
LARGE_BODIES = 512  # as many requests as a server has in progress at a time by default
LIMIT = 10.0  # seconds within which a connection has to get an answer or its end


async def leave_unread(number: int, port: int) -> list[int]:
    """Send requests with large answers one after another over a connection, and read none."""
    request = request_of(pairs_body([("a", "b")] * 1_000), close=False)
    async with connected(port, receive_buffer=UNREAD_BYTES) as (_, writer):
        await send_parts(writer, [request] * PIPELINED)
        return await asyncio.Future()


async def send_slowly(kinds: Sequence[Sequence[bytes]], number: int, port: int) -> list[int]:
    """Send the parts of a request with a long pause after each."""
    async with connected(port) as (_, writer):
        await send_parts(writer, kinds[number % len(kinds)], READ_TIMEOUT / 2)
    return []


async def stay_idle(number: int, port: int) -> list[int]:
    """Open a connection and send nothing."""
    async with connected(port) as (reader, _):
        await reader.read(1)
    return []


async def connect_oddly(number: int, port: int) -> list[int]:
    """Open a connection of an odd kind; it has to get an answer or its end."""
    exchanges = odd_exchanges()
    return await play(exchanges[number % len(exchanges)], port, LIMIT)


@cache
def odd_exchanges() -> list[Exchange]:
    """Return clients that send on after the answer, do not speak HTTP, or close their side."""
    sound = request_of(pairs_body([("a", "b")]), close=False)
    head, _, body = sound.partition(b"\r\n\r\n")
    upload = [b" " * 1_000] * (LARGEST // 1_000)
    refused = (
        request_of(b" " * LARGEST, SCORE, "text/plain", close=False).partition(b"\r\n\r\n")[0]
        + b"\r\n\r\n"
    )
    too_large = refused.replace(b"text/plain", b"application/json").replace(
        b": 1900000", b": 1000000000"
    )
    both = head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + in_chunk(body) + in_chunk(b"")
    old = upload_head().replace(b"HTTP/1.1", b"HTTP/1.0") + in_chunk(body) + in_chunk(b"")
    malformed = [
        b"\r\n\r\n\r\nGET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        upload_head() + b"zz\r\nno length\r\n",
        upload_head() + in_chunk(body) + b"-5\r\n",
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
        ([upload_head() + in_chunk(body)], 0.0, half_closed),
        *(([content], 0.0, waiting) for content in malformed),
    ]
    # a server may keep a connection open after an answer, but not keep reading a refused body
    return [Exchange(parts, pause, ending, may_stay_open=True) for parts, pause, ending in kinds]


# --- the case ---

AT_A_TIME = 3  # attacks, each on a server of its own
FEW = 4  # connections, if each request costs much
DRAIN = 5  # seconds for requests in progress at SIGTERM
LAST_SECONDS = 6  # after those, until the server has ended
BACK_SECONDS = 5.0  # within which an honest request is scored
# for which slots are held at least, so that the end of the attack does not let others in
HOLDING_SECONDS = 7.0
LOG_LINES = 300
PERMITTED = (503, 504)  # a full queue and a passed deadline are no faults of the server
HONEST = pairs_body([("It is cold today.", "It is freezing today.")])

# within which all slots are taken: half of the time that the server waits for a client
_TAKING_SECONDS = 0.5
_BEFORE_STOP = 1.0
_UPLOADS = [
    [request_of(b" " * 1_000).removesuffix(b" " * 1_000), *[b" "] * 1_000],  # of known length
    [upload_head(), *[in_chunk(b" ")] * 1_000],
]


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack, and how the server is started for it."""

    traffic: Traffic
    options: tuple[str, ...] = ()
    open_files: int | None = None
    seconds: float = 0.0  # that it takes at least
    waits: bool = False  # it needs little of the processor
    # it has all requests that may be in progress, so others must be let in meanwhile
    holds_slots: bool = False
    log_lines: int | None = None  # the most that may be logged


def _holding(visit: Visit) -> Attack:
    traffic = partial(crowd, visit, SLOTS, once=True)
    return Attack(traffic, SLOT_OPTIONS, seconds=HOLDING_SECONDS, waits=True, holds_slots=True)


ATTACKS = {
    "duplicate keys": Attack(repeated_requests(duplicate_keys, FEW)),
    "combining marks": Attack(repeated_requests(combining_marks, FEW)),
    "unread answers": _holding(leave_unread),
    "slow uploads": _holding(partial(send_slowly, _UPLOADS)),
    "dots": Attack(repeated_requests(dots, 2 * (os.cpu_count() or 1))),
    "token bombs": Attack(repeated_requests(token_bombs, FEW)),
    "long matches": Attack(repeated_requests(long_matches, FEW), ("--long-text", "window")),
    "idle connections": Attack(
        partial(crowd, stay_idle, IDLE), open_files=OPEN_FILES, waits=True, log_lines=LOG_LINES
    ),
    "large bodies": Attack(
        partial(crowd, partial(send_each, largest_body), LARGE_BODIES, once=True)
    ),
    "odd connections": Attack(
        partial(crowd, connect_oddly, len(odd_exchanges())), seconds=LIMIT + 1, waits=True
    ),
}


def measure(settings: Settings) -> list[Figure]:
    """Attack a server of its own each time; return for each bound the worst figure of all attacks,
    with its attack.

    A few attacks run at a time, but only one of those that need much of the processor.
    """
    worst: dict[str, tuple[Figure, str]] = {}
    names = sorted(ATTACKS, key=lambda name: not ATTACKS[name].waits)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        attacked = pool.map(
            partial(_figures_of, settings, Lock()), [ATTACKS[name] for name in names]
        )
        for name, figures in zip(names, attacked, strict=True):
            print(
                f"{name}: {', '.join(f'{one.name}: {one.median:.4g}' for one in figures)}",
                file=sys.stderr,
            )
            for one in figures:
                if one.name not in worst or one.median > worst[one.name][0].median:
                    worst[one.name] = one, name
    return [
        structs.replace(one, name=f"{one.name} ({name})" if one.median else one.name)
        for one, name in worst.values()
    ]


def _figures_of(settings: Settings, alone: Lock, attack: Attack) -> list[Figure]:
    """Attack a new server twice: to the end, and until SIGTERM comes in the middle."""
    seconds = max(settings.sizes.attack_seconds, attack.seconds)
    options = ("--limits", f"drain={DRAIN}", *attack.options)
    with Server(settings.minilm, *options, open_files=attack.open_files) as server:
        _until_scored(server)  # fills the server's caches
        lines = server.log().count("\n")
        waiting = nullcontext() if attack.waits else alone
        with Attacker(attack.traffic, server.port, seconds) as attacker, waiting:
            with Watch(server) as watch:
                attacker.begin()
                if attack.holds_slots:
                    time.sleep(_TAKING_SECONDS)
                    back = _until_scored(server)
                statuses = attacker.statuses()
                if not attack.holds_slots:
                    back = _until_scored(server)
                figures = watch.figures(statuses, PERMITTED)
            lines = server.log().count("\n") - lines
            attacker.begin()
            time.sleep(_BEFORE_STOP)  # so that SIGTERM comes in the middle of the attack
            ending, exit_status = server.wait(server.stop(), 2 * (DRAIN + LAST_SECONDS))
    print(f"statuses of the answers to the attacker: {dict(statuses)}", file=sys.stderr)
    return [
        *figures,
        at_most("until an honest request is scored", back, "s", BACK_SECONDS, of_speed=True),
        at_most("from SIGTERM to the end", ending, "s", DRAIN + LAST_SECONDS, of_speed=True),
        none_of("exit status other than 0", exit_status != 0),
        *([at_most("lines logged", lines, "", attack.log_lines)] if attack.log_lines else []),
    ]


def _until_scored(server: Server) -> float:
    """Send an honest request until it is scored; return the seconds, infinity after
    `BACK_SECONDS`.
    """
    begun = time.monotonic()
    while (waited := time.monotonic() - begun) < BACK_SECONDS:
        if server.status(HONEST, timeout=BACK_SECONDS - waited) == 200:
            return time.monotonic() - begun
        time.sleep(0.1)
    return math.inf
