"""Lets Python end only while no thread is inside a library of C++ or Rust.

When Python ends it does not wait for daemon threads, but ends each where it next asks for the interpreter's lock. For
one that returns from ONNX Runtime, SentencePiece or tokenizers this aborts the process (before Python 3.14). So the
calls into these libraries pass this gate, and at exit it closes.
"""

import atexit
import os
import threading

from bertscore_onnx.errors import ClosedError

PATIENCE = 10.0
"""Seconds that Python's end waits for the calls in progress."""


class ExitGate:
    """Lets threads in until Python ends."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start afresh: in a forked child none of the other threads exists."""
        # a Condition's own lock is reentrant, so that a signal handler may score whatever it interrupts
        self._left = threading.Condition()
        self._inside = 0
        self._is_closed = False

    def check(self) -> None:
        """Return where Python goes on; where it ends, a daemon thread stops here for good."""
        if not self._is_closed:
            return
        if threading.current_thread().daemon:
            threading.Event().wait()
        raise ClosedError("Python is ending: its `atexit` functions can no longer score. Do it before.")

    def __enter__(self) -> None:
        """Let Python end no earlier than this thread leaves; stop or raise as `check` does."""
        with self._left:
            is_open = not self._is_closed
            self._inside += is_open
        if not is_open:
            self.check()

    def __exit__(self, *error: object) -> None:
        """Leave."""
        with self._left:
            self._inside -= 1
            if self._is_closed:
                self._left.notify_all()

    def close(self) -> None:
        """Let no thread in, and wait for those inside."""
        with self._left:
            self._is_closed = True
            self._left.wait_for(lambda: self._inside <= 0, PATIENCE)


exit_gate: ExitGate = ExitGate()
"""The gate of this process."""

atexit.register(exit_gate.close)  # called when the main thread and all that are no daemons have ended
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=exit_gate.reset)
