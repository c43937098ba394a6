"""Work in a process of its own, with a time limit: a hang or a crash in it is a finding, not the end."""

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from bertscore_onnx.concurrency.closeable import Closeable

Work = Callable[..., Any]


class ChildError(Exception):
    """The work ended in an error, a crash or not at all; the message says which."""


def call_in_child(work: Work, *arguments: Any, limit: float) -> Any:
    """Call a function in a process that ends with it, so that what it imports stays out of this one's memory.

    Raises:
        ChildError: as `Child.do`.
    """
    with Child() as child:
        return child.do(work, *arguments, limit=limit)


class Child(Closeable):
    """A process that does one piece of work after the other, and asks no model hub."""

    def __init__(self, method: str = "spawn") -> None:
        """Start the process by a method of `multiprocessing`."""
        context = multiprocessing.get_context(method)
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,))  # type: ignore[attr-defined]
        self._process.start()
        self._pid: int = self._process.pid
        self._is_closed = False
        theirs.close()

    def do(self, work: Work, *arguments: Any, limit: float) -> Any:
        """Let it call a function, and return what that returns.

        Args:
            work: the function; both it and its arguments are pickled.
            arguments: its arguments.
            limit: how many seconds it may take.

        Raises:
            ChildError: it raised something, crashed, or took too long; after the latter two the process is gone.
        """
        self._connection.send((work, arguments))
        if not self._connection.poll(limit):
            self.close()
            raise ChildError(f"It hangs: there was no answer in {limit:g} s.")
        try:
            is_fine, answer = self._connection.recv()
        except (EOFError, OSError):
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
            self.close()
            raise ChildError(f"Its process ended with status {self._process.exitcode}.") from None
        if not is_fine:
            raise ChildError(answer)
        return answer

    def close(self) -> None:
        """End the process, with what it started itself, such as a server; closing twice does nothing."""
        if self._is_closed:  # its number may be another's by now
            return
        self._is_closed = True
        self._connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()


def _serve(connection: Connection) -> None:
    os.setpgrp()
    os.environ["HF_HUB_OFFLINE"] = "1"
    while True:
        try:
            work, arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = True, work(*arguments)
        except Exception:
            answer = False, traceback.format_exc()
        connection.send(answer)
