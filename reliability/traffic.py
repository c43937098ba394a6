"""Traffic over plain sockets, for clients that do what no library of HTTP does."""

import asyncio
import json
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import cycle, islice

JSON, NDJSON = "application/json", "application/x-ndjson"
SCORE, MATCH = "/v1/score", "/v1/match"

CLOSED = 0
"""In place of a status: the connection ended without an answer."""

NEVER = -1
"""In place of a status: neither an answer nor the end of the connection came in time."""

INTERNAL = 500
"""The status of an answer that calls itself an internal error, be it in a line of a stream."""

PIECE = 1 << 16
"""Bytes that are written before the socket is waited for."""

_PAUSE = 0.05
"""Seconds between two tries to connect."""

_STATUS = re.compile(rb"HTTP/1\.1 ([2-5]\d\d) ")

Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def request_of(content: bytes, path: str = SCORE, media_type: str = JSON, *, close: bool = True) -> bytes:
    """Return a POST of this body; `close` asks for the end of the connection after the answer."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media_type}\r\nContent-Length: {len(content)}\r\n"
    return head.encode() + (b"Connection: close\r\n" if close else b"") + b"\r\n" + content


def stream_head(path: str = SCORE) -> bytes:
    """Return the head of a stream of lines, to be sent in chunks."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {NDJSON}\r\nTransfer-Encoding: chunked\r\n"
        "Connection: close\r\n\r\n"
    ).encode()


def in_chunk(content: bytes) -> bytes:
    """Return a chunk of a body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(content), content)


def pair_body(candidate: str, reference: str) -> bytes:
    """Return one pair, as `/v1/match` and a line of a stream take it, with its characters as they are."""
    return json.dumps({"candidate": candidate, "reference": reference}, ensure_ascii=False).encode()


def pairs_body(pairs: Sequence[tuple[str, str]]) -> bytes:
    """Return the body of a request that scores these pairs, with their characters as they are."""
    return b'{"pairs":[' + b",".join(pair_body(*pair) for pair in pairs) + b"]}"


@asynccontextmanager
async def connected(port: int, *, receive_buffer: int | None = None) -> AsyncIterator[Socket]:
    """Open a connection to the server on this machine, and break it off at the end.

    Args:
        port: of the server.
        receive_buffer: how many bytes of answers the system may keep; its own choice by default.
    """
    client = socket.socket()
    client.setblocking(False)
    if receive_buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=client, limit=receive_buffer or PIECE)
    except BaseException:
        client.close()
        raise
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(OSError):  # what broke the connection
            await writer.wait_closed()


async def send(writer: asyncio.StreamWriter, content: bytes) -> None:
    """Write bytes no faster than they are taken.

    Raises:
        OSError: the other side has closed the connection.
    """
    for start in range(0, len(content), PIECE):
        writer.write(content[start : start + PIECE])
        await writer.drain()


@asynccontextmanager
async def meanwhile(work: Coroutine[None, None, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Do some work in another task, and end it with the block; that it failed is seen by the one that reads."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def ask(port: int, request: bytes, limit: float = 60.0) -> int:
    """Send a request that asks for the end of its connection; return the status, or `CLOSED`, or `NEVER`."""
    content = bytearray()
    try:
        async with asyncio.timeout(limit), connected(port) as (reader, writer), meanwhile(send(writer, request)):
            while piece := await reader.read(PIECE):
                content += piece
    except TimeoutError:
        return NEVER
    except OSError:  # the answer may have come before
        pass
    statuses = statuses_in(content)
    return statuses[0] if statuses else CLOSED


def statuses_in(content: bytes | bytearray) -> list[int]:
    """Return the statuses of all answers in what a connection sent, those that say to go on sending left out."""
    if b'"code":"internal"' in content:
        return [INTERNAL]
    return [int(status) for status in _STATUS.findall(content)]


async def keep_asking(make: Callable[[], Sequence[bytes]], connections: int, port: int, seconds: float) -> Counter[int]:
    """Send the requests that `make` makes over some connections, each going round them; count the statuses."""
    statuses: Counter[int] = Counter()
    requests = make()

    async def client(own: Iterator[bytes]) -> None:
        for request in own:
            status = await ask(port, request)
            statuses[status] += 1
            if status == CLOSED:
                await asyncio.sleep(_PAUSE)

    starts = [islice(cycle(requests), start, None) for start in range(connections)]
    await for_seconds(seconds, [client(own) for own in starts])
    return statuses


async def for_seconds(seconds: float, clients: Sequence[Coroutine[None, None, None]]) -> None:
    """Let clients do what they do, and break all off when the time is over; that one is refused is no error."""

    async def unless_refused(client: Coroutine[None, None, None]) -> None:
        with suppress(OSError):
            await client

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(unless_refused(client))
