"""Lets Python exit only while no thread is inside a library of C++ or Rust.

On exit, Python does not wait for daemon threads, but ends each of them when it next requests the interpreter's lock.
For a thread that returns from ONNX Runtime, SentencePiece or tokenizers this aborts the process (before Python 3.14).
So the calls into these libraries pass this gate, which closes on exit.
"""

import atexit
import os
import threading

from bertscore_onnx.errors import ClosedError

PATIENCE = 10.0
"""Seconds that the exit waits for the calls in progress."""


class ExitGate:
    """Admits threads until Python exits."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the state: in a forked child, none of the other threads exists."""
        # a Condition's own lock is reentrant, so that a signal handler may score at any moment
        self._left = threading.Condition()
        self._inside = 0
        self._is_closed = False

    def check(self) -> None:
        """Return unless Python is exiting; then block a daemon thread forever, and raise a ClosedError in another."""
        if not self._is_closed:
            return
        if threading.current_thread().daemon:
            threading.Event().wait()
        raise ClosedError("Python is exiting, and `atexit` functions cannot score any more. Score before.")

    def __enter__(self) -> None:
        """Make the exit wait until this thread leaves; block or raise as `check` does."""
        with self._left:
            is_open = not self._is_closed
            self._inside += is_open
        if not is_open:
            self.check()

    def __exit__(self, *error: object) -> None:
        """Let the exit proceed, if this is the last thread inside."""
        with self._left:
            self._inside -= 1
            if self._is_closed:
                self._left.notify_all()

    def close(self) -> None:
        """Admit no more threads, and wait for those inside."""
        with self._left:
            self._is_closed = True
            self._left.wait_for(lambda: self._inside <= 0, PATIENCE)


exit_gate: ExitGate = ExitGate()
"""The gate of this process."""

atexit.register(exit_gate.close)  # called after the main thread and all other non-daemon threads have ended
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=exit_gate.reset)
