"""Connections that are too many, that send on after the answer, or that do not speak HTTP."""

import asyncio
from collections import Counter

from reliability.cases.adversary.bodies import LARGEST, largest_body
from reliability.traffic import (
    NEVER,
    PIECE,
    SCORE,
    ask,
    connected,
    for_seconds,
    in_chunk,
    meanwhile,
    pair_body,
    pairs_body,
    request_of,
    send,
    statuses_in,
    stream_head,
)

OPEN_FILES = 256
"""That the server may have at a time."""

IDLE = 400
LARGE = 512
"""As many requests as a server has in progress at a time by default."""

LIMIT = 10.0
"""Seconds within which a connection has to get an answer or its end."""

_PAUSE = 0.1


async def idle(port: int, seconds: float) -> Counter[int]:
    """Open more connections than the server may have files, and again where it closes one; send nothing."""

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
    """Send a body of the largest size over each of many connections, all at a time."""
    request = largest_body()
    statuses: Counter[int] = Counter()

    async def client() -> None:
        statuses[await ask(port, request)] += 1

    await for_seconds(seconds, [client() for _ in range(LARGE)])
    return statuses


async def odd_ones(port: int, seconds: float) -> Counter[int]:
    """Open connections of every odd kind, over and over, and count those that get neither an answer nor their end."""
    statuses: Counter[int] = Counter()

    async def client(pieces: list[bytes], pause: float, is_half_closed: bool) -> None:
        while True:
            statuses.update(await _exchange(port, pieces, pause, is_half_closed=is_half_closed))
            await asyncio.sleep(_PAUSE)

    await for_seconds(max(seconds, LIMIT + 1), [client(*kind) for kind in _kinds()])
    return statuses


def _kinds() -> list[tuple[list[bytes], float, bool]]:
    """Return what is sent over connections, with the pause after each piece, and whether the sending side is closed."""
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
    return [
        ([refused, *upload], 0.01, False),
        ([too_large, *upload], 0.01, False),
        ([refused, *upload], 0.01, True),
        ([both], 0.0, False),
        ([old], 0.0, False),
        ([sound], 0.0, True),
        ([sound * 3], 0.0, True),
        ([stream_head() + in_chunk(pair)], 0.0, True),
        *(([content], 0.0, False) for content in malformed),
    ]


async def _exchange(port: int, pieces: list[bytes], pause: float, *, is_half_closed: bool) -> list[int]:
    """Send pieces, and wait for an answer and the end of the connection, or for the time to pass."""
    answer, all_sent = bytearray(), asyncio.Event()

    async def send_all(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            await send(writer, piece)
            await asyncio.sleep(pause)
        if is_half_closed:
            writer.write_eof()
        all_sent.set()

    try:
        async with asyncio.timeout(LIMIT), connected(port) as (reader, writer), meanwhile(send_all(writer)):
            while piece := await reader.read(PIECE):
                answer += piece
    except TimeoutError:  # a connection may be kept open after an answer, but not go on taking in what nobody wants
        return statuses_in(answer) if answer and all_sent.is_set() else [NEVER]
    except OSError:
        pass
    return statuses_in(answer)
