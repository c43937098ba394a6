"""Clients that take up all requests that a server has in progress at a time, and do next to nothing."""

import asyncio
from collections import Counter
from collections.abc import Iterator

from reliability.traffic import (
    connected,
    for_seconds,
    in_chunk,
    pairs_body,
    request_of,
    send,
    stream_head,
)

SLOTS = 8
READ_TIMEOUT = 1.0
OPTIONS = ("--max-requests", str(SLOTS), "--read-timeout", str(READ_TIMEOUT))
"""Of the server that is attacked."""

PIPELINED = 50
_PAUSE = READ_TIMEOUT / 2


async def unread_answers(port: int, seconds: float) -> Counter[int]:
    """Send one request after the other over each connection, with large answers, and read none."""
    request = request_of(pairs_body([("a", "b")] * 1_000), close=False)

    async def client() -> None:
        async with connected(port, receive_buffer=4096) as (_, writer):
            for _ in range(PIPELINED):
                await send(writer, request)
            await asyncio.Event().wait()

    await for_seconds(seconds, [client() for _ in range(SLOTS)])
    return Counter()


async def slow_uploads(port: int, seconds: float) -> Counter[int]:
    """Send bodies of known lengths, and chunked ones, a byte at a time."""
    head, length, _ = request_of(b" " * 1_000).partition(b"\r\n\r\n")
    known = [head + length, *[b" "] * 1_000]
    chunked = [stream_head(), *[in_chunk(b" ")] * 1_000]
    return await _slowly(port, seconds, [known, chunked])


async def slow_lines(port: int, seconds: float) -> Counter[int]:
    """Send streams that bring a blank line now and then."""
    return await _slowly(port, seconds, [[stream_head(), *[in_chunk(b"\n")] * 1_000]])


async def _slowly(port: int, seconds: float, kinds: list[list[bytes]]) -> Counter[int]:
    async def client(pieces: Iterator[bytes]) -> None:
        async with connected(port) as (_, writer):
            for piece in pieces:
                await send(writer, piece)
                await asyncio.sleep(_PAUSE)

    await for_seconds(seconds, [client(iter(kinds[number % len(kinds)])) for number in range(SLOTS)])
    return Counter()
