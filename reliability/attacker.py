"""A client in a process of its own, so that what it does keeps nobody waiting but the server."""

import asyncio
import multiprocessing
from collections import Counter
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

from bertscore_onnx.concurrency.closeable import Closeable

Rush = Callable[[int, float], Awaitable[Counter[int]]]
"""What a client does to the server at a port for some seconds; returns the statuses it was answered."""


class Attacker(Closeable):
    """A process that rushes at a server."""

    def __init__(self, rush: Rush, port: int, seconds: float) -> None:
        """Begin; `rush` is pickled, so it has to be a function of a module."""
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_rush, args=(sender, rush, port, seconds))
        self._process.start()
        sender.close()
        self._receiver.recv()  # it has imported what it needs

    def statuses(self) -> Counter[int]:
        """Wait until it is done; return the statuses it was answered."""
        answers: Counter[int] = self._receiver.recv()
        return answers

    def close(self) -> None:
        """End it, whatever it is at; its connections end with it."""
        self._process.kill()
        self._process.join()
        self._receiver.close()


def _rush(sender: Connection, rush: Rush, port: int, seconds: float) -> None:
    sender.send(None)
    sender.send(asyncio.run(_bounded(rush, port, seconds)))


async def _bounded(rush: Rush, port: int, seconds: float) -> Counter[int]:
    return await rush(port, seconds)
