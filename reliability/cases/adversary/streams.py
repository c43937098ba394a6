"""Streams of very many lines, whose answers are read or not."""

import asyncio
from collections import Counter

from harness.texts import synthetic_pairs
from reliability.traffic import connected, for_seconds, in_chunk, meanwhile, pair_body, send, statuses_in, stream_head

STREAMS = 30
BYTES = 3_000_000
"""Of each stream."""

_READ = 1 << 16
_UNREAD = 4096
"""What the system may keep for a client that does not read."""


async def wrong_lines(port: int, seconds: float) -> Counter[int]:
    """Send lines that are no JSON, and read the errors."""
    return await _streams(port, seconds, [b"{\n"], are_read=True)


async def wrong_lines_unread(port: int, seconds: float) -> Counter[int]:
    """Send lines that are no JSON, and read nothing."""
    return await _streams(port, seconds, [b"{\n"], are_read=False)


async def tiny_lines(port: int, seconds: float) -> Counter[int]:
    """Send blank lines, and the shortest that are right."""
    return await _streams(port, seconds, [b"\n", pair_body("", "") + b"\n"], are_read=True)


async def pair_lines(streams: int, port: int, seconds: float) -> Counter[int]:
    """Send thousands of pairs of prose over each of some streams."""
    pairs = zip(*synthetic_pairs(1_000), strict=True)
    lines = b"".join(pair_body(*pair) + b"\n" for pair in pairs)
    return await _streams(port, seconds, [lines], streams, are_read=True)


async def _streams(
    port: int, seconds: float, lines: list[bytes], streams: int = STREAMS, *, are_read: bool
) -> Counter[int]:
    """Send streams as fast as they are taken, again and again where one has ended."""
    chunks = [in_chunk(line * max(1, _READ // len(line))) for line in lines]
    statuses: Counter[int] = Counter()

    async def stream(chunk: bytes) -> None:
        while True:
            try:
                async with (
                    connected(port, receive_buffer=_READ if are_read else _UNREAD) as (reader, writer),
                    meanwhile(_send_all(writer, chunk)),
                ):
                    statuses.update(await _first_of(reader) if are_read else await asyncio.Future())
            except OSError:
                await asyncio.sleep(0.05)  # the server has broken the stream off

    await for_seconds(seconds, [stream(chunks[number % len(chunks)]) for number in range(streams)])
    return statuses


async def _send_all(writer: asyncio.StreamWriter, chunk: bytes) -> None:
    await send(writer, stream_head())
    for _ in range(BYTES // len(chunk)):
        await send(writer, chunk)
    await send(writer, in_chunk(b""))


async def _first_of(reader: asyncio.StreamReader) -> list[int]:
    """Read to the end of the connection; return the status, and that of an error in a line."""
    statuses: set[int] = set()
    while piece := await reader.read(_READ):
        statuses.update(statuses_in(piece))
    return sorted(statuses)
