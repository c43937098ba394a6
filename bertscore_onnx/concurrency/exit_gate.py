"""Lets Python exit only while no thread is inside a library of C++ or Rust.

On exit, Python does not wait for daemon threads, but ends each of them when it next requests the interpreter's lock.
For a thread that returns from ONNX Runtime, SentencePiece or tokenizers this aborts the process (before Python 3.14).
So the calls into these libraries pass this gate, which closes on exit.

The main thread runs the exit itself, and so is not inside by then: it is not counted. It is also the only thread in
which a signal handler may raise an error, at any moment; it holds nothing here that such an error could leave locked.
"""

import atexit
import os
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue

from bertscore_onnx.errors import ClosedError

PATIENCE = 10.0
"""Seconds that the exit waits for the calls in progress."""


class ExitGate:
    """Admits threads until Python exits."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the state: in a forked child, none of the other threads exists."""
        self._changing = threading.Lock()
        self._inside = 0
        self._is_closed = False
        self._left: SimpleQueue[None] = SimpleQueue()  # an item once the last thread inside a closed gate has left

    def check(self) -> None:
        """Return unless Python is exiting; then block a daemon thread forever, and raise a ClosedError in another."""
        if not self._is_closed:
            return
        if threading.current_thread().daemon:
            threading.Event().wait()
        raise ClosedError("Python is exiting, and `atexit` functions cannot score any more. Score before.")

    def __enter__(self) -> None:
        """Make the exit wait until this thread leaves; block or raise as `check` does."""
        if not _is_main_thread():
            with self._changing:
                is_open = not self._is_closed
                self._inside += is_open
            if is_open:
                return
        self.check()

    def __exit__(self, *error: object) -> None:
        """Let the exit proceed, if this is the last thread inside."""
        if not _is_main_thread():
            with self._changing:
                self._inside -= 1
                if self._is_closed and not self._inside:
                    self._left.put(None)

    def close(self) -> None:
        """Admit no more threads, and wait for those inside."""
        with self._changing:
            self._is_closed = True
            is_empty = not self._inside
        with suppress(Empty):
            if not is_empty:
                self._left.get(timeout=PATIENCE)


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


exit_gate: ExitGate = ExitGate()
"""The gate of this process."""

atexit.register(exit_gate.close)  # called after the main thread and all other non-daemon threads have ended
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=exit_gate.reset)
