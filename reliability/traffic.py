"""Traffic over plain sockets, for clients that do what no HTTP library does, and processes that produce it."""

import asyncio
import json
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from itertools import cycle, islice

from bertscore_onnx.concurrency.closeable import Closeable
from harness.processes import Child

JSON, NDJSON = "application/json", "application/x-ndjson"
SCORE, MATCH = "/v1/score", "/v1/match"

# In place of the status of an answer:
CLOSED = 0  # the connection ended without one
NEVER = -1  # neither an answer nor the end of the connection came in time

INTERNAL = 500  # the status of any answer that reports an internal error, even in a line of a stream
BLOCK = 1 << 16  # bytes that are read, or written before waiting for the socket

_PAUSE = 0.05  # seconds before connecting again
_GRACE = 120.0  # seconds for a process to start, and to end in
_STATUS = re.compile(rb"HTTP/1\.1 ([2-5]\d\d) ")

Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Traffic = Callable[[int, float], Awaitable[Counter[int]]]  # at a port, for some seconds; returns the statuses


def request_of(content: bytes, path: str = SCORE, media_type: str = JSON, *, close: bool = True) -> bytes:
    """Return a POST with this body; `close` requests the end of the connection after the answer."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media_type}\r\nContent-Length: {len(content)}\r\n"
    return head.encode() + (b"Connection: close\r\n" if close else b"") + b"\r\n" + content


def stream_head(path: str = SCORE) -> bytes:
    """Return the head of a stream of lines, which are sent in chunks."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {NDJSON}\r\nTransfer-Encoding: chunked\r\n"
        "Connection: close\r\n\r\n"
    ).encode()


def in_chunk(content: bytes) -> bytes:
    """Return a chunk of a body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(content), content)


def pair_body(candidate: str, reference: str) -> bytes:
    """Return the JSON of one pair, a body of `/v1/match` or a line of a stream, with unescaped characters."""
    return json.dumps({"candidate": candidate, "reference": reference}, ensure_ascii=False).encode()


def pairs_body(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Return the body of a request to score pairs."""
    return b'{"pairs":[' + b",".join(pair_body(*pair) for pair in pairs) + b"]}"


@asynccontextmanager
async def connected(port: int, *, receive_buffer: int | None = None) -> AsyncIterator[Socket]:
    """Open a connection to a server on this machine, and abort it at the end of the block.

    `receive_buffer` limits the bytes of answers that the system buffers.
    """
    client = socket.socket()
    client.setblocking(False)
    if receive_buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=client, limit=receive_buffer or BLOCK)
    except BaseException:
        client.close()
        raise
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(OSError):  # the error that broke the connection
            await writer.wait_closed()


async def send(writer: asyncio.StreamWriter, content: bytes) -> None:
    """Write bytes no faster than the server reads them; raise `OSError` if it has closed the connection."""
    for start in range(0, len(content), BLOCK):
        writer.write(content[start : start + BLOCK])
        await writer.drain()


@asynccontextmanager
async def meanwhile(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a coroutine beside the block and cancel it at the end; its errors are ignored, for the reader sees them."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Ending(Enum):
    """The behaviour of a client when it has sent everything."""

    WAIT = auto()  # it waits for the answers, or for the server to close the connection
    HALF_CLOSE = auto()  # it closes its side, and waits for the server to close
    RESET = auto()  # it aborts the connection


@dataclass(frozen=True, slots=True)
class Exchange:
    """All that a client does over one connection."""

    parts: list[bytes]
    pause: float = 0.0  # seconds after each part
    ending: Ending = Ending.WAIT
    answers: int = 0  # to wait for; 0 to wait until the server closes the connection
    may_stay_open: bool = False  # if there is an answer and all is sent, the end of the connection need not come


async def play(exchange: Exchange, port: int, limit: float = 60.0) -> list[int]:
    """Play an exchange; return the statuses of its answers, or `NEVER` if neither they nor the end came in time."""
    content, all_sent = bytearray(), asyncio.Event()

    async def send_parts(writer: asyncio.StreamWriter) -> None:
        for part in exchange.parts:
            await send(writer, part)
            await asyncio.sleep(exchange.pause)
        all_sent.set()
        if exchange.ending is Ending.HALF_CLOSE:
            writer.write_eof()
        elif exchange.ending is Ending.RESET:
            writer.transport.abort()

    try:
        async with asyncio.timeout(limit), connected(port) as (reader, writer), meanwhile(send_parts(writer)):
            while block := await reader.read(BLOCK):
                content += block
                if 0 < exchange.answers <= len(statuses_in(content)):
                    break
    except TimeoutError:
        if not (exchange.may_stay_open and content and all_sent.is_set()):
            return [NEVER]
    except OSError:  # answers may have come before
        pass
    return statuses_in(content)


async def status_of(request: bytes, port: int) -> int:
    """Send a request that closes its connection; return the status, `CLOSED` or `NEVER`."""
    statuses = await play(Exchange([request]), port)
    return statuses[0] if statuses else CLOSED


def statuses_in(content: bytes | bytearray) -> list[int]:
    """Return the statuses of all answers on a connection, except for "100 Continue"."""
    if b'"code":"internal"' in content:
        return [INTERNAL]
    return [int(status) for status in _STATUS.findall(content)]


async def repeat_requests(
    make: Callable[[], Sequence[bytes]], connections: int, port: int, seconds: float
) -> Counter[int]:
    """Send the requests that `make` returns over and over, several at a time; count the statuses."""
    statuses: Counter[int] = Counter()
    requests = make()

    async def client(own: Iterator[bytes]) -> None:
        for request in own:
            status = await status_of(request, port)
            statuses[status] += 1
            if status == CLOSED:
                await asyncio.sleep(_PAUSE)

    starts = [islice(cycle(requests), start, None) for start in range(connections)]
    await for_seconds(seconds, [client(own) for own in starts])
    return statuses


async def for_seconds(seconds: float, clients: Sequence[Coroutine[None, None, None]]) -> None:
    """Run clients together and cancel them when the time is over; a refused connection is no error."""

    async def unless_refused(client: Coroutine[None, None, None]) -> None:
        with suppress(OSError):
            await client

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(unless_refused(client))


class Attacker(Closeable):
    """A process that produces traffic, so that only the server competes with it."""

    def __init__(self, traffic: Traffic, port: int, seconds: float) -> None:
        """Start the process; `traffic` is pickled, so it has to be a function of a module."""
        self._limit = seconds + _GRACE
        self._child = Child()
        self._child.do(callable, traffic, limit=_GRACE)  # it has finished its imports
        self._child.begin(_produce, traffic, port, seconds)

    def statuses(self) -> Counter[int]:
        """Wait for its end; return the statuses of its answers."""
        answers: Counter[int] = self._child.result(self._limit)
        return answers

    def close(self) -> None:
        """Kill it; its connections end with it."""
        self._child.close()


def _produce(traffic: Traffic, port: int, seconds: float) -> Counter[int]:
    async def bounded() -> Counter[int]:
        return await traffic(port, seconds)

    return asyncio.run(bounded())
