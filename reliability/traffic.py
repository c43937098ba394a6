"""Traffic over plain sockets, for clients that do what no HTTP library does, and processes that
produce it.
"""

import asyncio
import json
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import count

from bertscore_onnx.concurrency.closeable import Closeable
from harness.processes import Child

JSON = "application/json"
SCORE, MATCH = "/v1/score", "/v1/match"

# In place of the status of an answer:
CLOSED = 0  # the connection ended without one
NEVER = -1  # neither an answer nor the end of the connection came in time

INTERNAL = 500  # the status of any answer that reports an internal error
BLOCK = 1 << 16  # bytes that are read, or written before waiting for the socket

_PAUSE = 0.05  # seconds before a client that got no answer connects again
_GRACE = 120.0  # seconds for a process to start, and to end in
_STATUS = re.compile(rb"HTTP/1\.1 ([2-5]\d\d) ")

Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]
# at a port, for some seconds; its statuses
Traffic = Callable[[int, float], Coroutine[None, None, Counter[int]]]
# with its number, at a port; its statuses
Visit = Callable[[int, int], Coroutine[None, None, Iterable[int]]]


def request_of(
    content: bytes, path: str = SCORE, media_type: str = JSON, *, close: bool = True
) -> bytes:
    """Return a POST with this body; `close` requests the end of the connection after the answer."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media_type}\r\nContent-Length: "
        f"{len(content)}\r\n"
    )
    return head.encode() + (b"Connection: close\r\n" if close else b"") + b"\r\n" + content


def upload_head(path: str = SCORE) -> bytes:
    """Return the head of a request whose body is sent in chunks."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nTransfer-Encoding: chunked\r\n"
        "Connection: close\r\n\r\n"
    ).encode()


def in_chunk(content: bytes) -> bytes:
    """Return a chunk of a body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(content), content)


def pair_body(candidate: str, reference: str) -> bytes:
    """Return the JSON of one pair, a body of `/v1/match`, with unescaped characters."""
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


async def send_parts(
    writer: asyncio.StreamWriter, parts: Iterable[bytes], pause: float = 0.0
) -> None:
    """Write parts no faster than the server reads them; raise `OSError` if it has closed the
    connection.
    """
    for part in parts:
        for start in range(0, len(part), BLOCK):
            writer.write(part[start : start + BLOCK])
            await writer.drain()
        await asyncio.sleep(pause)


@asynccontextmanager
async def meanwhile(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a coroutine beside the block and cancel it at the end; its errors are ignored, for the
    reader sees them.
    """
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
    # if there is an answer and all is sent, the end of the connection need not come
    may_stay_open: bool = False


async def play(exchange: Exchange, port: int, limit: float = 60.0) -> list[int]:
    """Play an exchange; return the statuses of its answers, or `NEVER` if neither they nor the end
    came in time.
    """
    content, all_sent = bytearray(), asyncio.Event()

    async def send_all(writer: asyncio.StreamWriter) -> None:
        await send_parts(writer, exchange.parts, exchange.pause)
        all_sent.set()
        if exchange.ending is Ending.HALF_CLOSE:
            writer.write_eof()
        elif exchange.ending is Ending.RESET:
            writer.transport.abort()

    try:
        async with (
            asyncio.timeout(limit),
            connected(port) as (reader, writer),
            meanwhile(send_all(writer)),
        ):
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


async def crowd(
    visit: Visit, clients: int, port: int, seconds: float, *, once: bool = False
) -> Counter[int]:
    """Let clients visit a server together, each again and again or `once`; count the statuses of
    the answers.
    """
    statuses: Counter[int] = Counter()

    async def client(first: int) -> None:
        for number in [first] if once else count(first, clients):
            found: list[int] = []
            with suppress(OSError):  # the server has refused or closed the connection
                found += await visit(number, port)
            statuses.update(found)
            if not any(found):
                await asyncio.sleep(_PAUSE)

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(client(number))
    return statuses


async def send_each(make: Callable[[], Sequence[bytes]], number: int, port: int) -> list[int]:
    """Send one of the requests that `make` returns, by turns."""
    requests = make()
    return [await status_of(requests[number % len(requests)], port)]


def repeated_requests(make: Callable[[], Sequence[bytes]], clients: int) -> Traffic:
    """Return traffic of clients that send these requests over and over; `make` is cached."""
    return partial(crowd, partial(send_each, make), clients)


class Attacker(Closeable):
    """A process that produces traffic, so that only the server competes with it."""

    def __init__(self, traffic: Traffic, port: int, seconds: float) -> None:
        """Start the process; `traffic` is pickled, so it has to be a function of a module."""
        self._work = traffic, port, seconds
        self._limit = seconds + _GRACE
        self._child = Child()
        self._child.do(callable, traffic, limit=_GRACE)  # it has finished its imports

    def begin(self) -> None:
        """Start the traffic, again once it is over."""
        self._child.begin(_produce, *self._work)

    def statuses(self) -> Counter[int]:
        """Wait for its end; return the statuses of its answers."""
        answers: Counter[int] = self._child.result(self._limit)
        return answers

    def close(self) -> None:
        """Kill it; its connections end with it."""
        self._child.close()


def _produce(traffic: Traffic, port: int, seconds: float) -> Counter[int]:
    return asyncio.run(traffic(port, seconds))
