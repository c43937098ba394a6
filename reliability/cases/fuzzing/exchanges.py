"""A grammar of connections: what is sent over one, in what pieces, and how it ends; and a client that plays them."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from reliability.cases.fuzzing.heads import complete_request, odd_request
from reliability.traffic import CLOSED, NEVER, PIECE, connected, send, statuses_in

LIMIT = 10.0
"""Seconds within which a connection has to get its answers or its end."""

AT_A_TIME = 24
MOST_REQUESTS = 4
"""Over one connection."""

_PAUSE = 0.005


class Ending(Enum):
    """What the client does when it has sent all."""

    AWAIT = auto()
    """It waits for all answers."""

    HALF_CLOSE = auto()
    """It closes its side, and waits for the other to close."""

    RESET = auto()
    """It breaks the connection off."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """All that a client does over one connection."""

    pieces: list[bytes]
    """With a short pause after each."""

    requests: int
    ending: Ending


def exchanges(requests: int, seed: int = 0) -> Iterator[Exchange]:
    """Make up exchanges that have this many requests in all."""
    draw = random.Random(seed)  # noqa: S311 -- nothing secret
    while requests > 0:
        exchange = _exchange(min(requests, draw.choice([1, 1, 1, 2, MOST_REQUESTS])), draw)
        requests -= exchange.requests
        yield exchange


def _exchange(requests: int, draw: random.Random) -> Exchange:
    kind = draw.random()
    if kind < 0.3:
        return Exchange(_in_pieces(odd_request(draw), draw), 1, draw.choice([Ending.HALF_CLOSE, Ending.RESET]))
    content = b"".join(complete_request(draw) for _ in range(requests))
    if kind < 0.4:
        cut = content[: draw.randrange(len(content))]
        return Exchange(_in_pieces(cut, draw), requests, draw.choice([Ending.HALF_CLOSE, Ending.RESET]))
    ending = Ending.AWAIT if kind < 0.95 else Ending.HALF_CLOSE
    return Exchange(_in_pieces(content, draw), requests, ending)


def _in_pieces(content: bytes, draw: random.Random) -> list[bytes]:
    """Cut a request into pieces, in a part of all cases."""
    if draw.random() < 0.7:
        return [content]
    places = sorted(draw.randrange(len(content) + 1) for _ in range(draw.choice([1, 3, 10])))
    return [content[start:end] for start, end in zip([0, *places], [*places, len(content)], strict=True)]


async def play_all(requests: int, port: int, seconds: float) -> Counter[int]:
    """Play exchanges, several at a time; count the statuses, `CLOSED` where there had to be one, and `NEVER`."""
    statuses: Counter[int] = Counter()
    numbered = enumerate(exchanges(requests))  # all clients take from it

    async def client() -> None:
        for number, exchange in numbered:
            found = await play(exchange, port)
            statuses.update(found)
            if any(status <= CLOSED or status >= 500 for status in found):
                print(f"exchange {number}, {exchange.ending}: {found}", file=sys.stderr)

    async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
        for _ in range(AT_A_TIME):
            group.create_task(client())
    return statuses


async def play(exchange: Exchange, port: int) -> list[int]:
    """Send what an exchange has; return the statuses of its answers."""
    answers = bytearray()
    try:
        async with asyncio.timeout(LIMIT), connected(port) as sockets, asyncio.TaskGroup() as group:
            reading = group.create_task(_read(sockets[0], exchange, answers))
            await _send(sockets[1], exchange)
            if exchange.ending is Ending.RESET:
                reading.cancel()
    except TimeoutError:
        return [NEVER]
    found = statuses_in(answers)
    return found or ([CLOSED] if exchange.ending is Ending.AWAIT else [])


async def _send(writer: asyncio.StreamWriter, exchange: Exchange) -> None:
    try:
        for number, piece in enumerate(exchange.pieces):
            await asyncio.sleep(_PAUSE if number else 0)
            await send(writer, piece)
        if exchange.ending is Ending.HALF_CLOSE:
            writer.write_eof()
    except OSError:  # the server has closed the connection, which the reader sees
        pass


async def _read(reader: asyncio.StreamReader, exchange: Exchange, answers: bytearray) -> None:
    """Read to the end of the connection, or until all answers have begun."""
    try:
        while piece := await reader.read(PIECE):
            answers += piece
            if exchange.ending is Ending.AWAIT and len(statuses_in(answers)) >= exchange.requests:
                return
    except OSError:
        pass
