"""Passes for threads inside native libraries.

Python exits only while no thread is inside a library of C++ or Rust. On exit, Python does not wait
for daemon threads, but ends each of them when it next requests the interpreter's lock. For a thread
that returns from ONNX Runtime, SentencePiece or tokenizers this aborts the process (before Python
3.14). So every thread inside holds a pass, and the exit takes all passes. The main thread needs
none: it runs the exit.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from bertscore_onnx.errors import ClosedError

NUMBER = 1024
"""The passes: more than there are threads at work."""

PATIENCE = 10.0
"""Seconds that the exit waits for a pass."""

_passes: SimpleQueue[None]
_is_exiting: bool


@contextmanager
def native_code() -> Iterator[None]:
    """Keep Python from exiting during a block. Once it exits, wait for ever.

    In the main thread raise a ClosedError.
    """
    if threading.get_ident() != threading.main_thread().ident:
        _passes.get()
        try:
            yield
        finally:
            _passes.put(None)
    elif _is_exiting:
        raise ClosedError(
            "Python is exiting, and `atexit` functions cannot score any more. Score before."
        )
    else:
        yield


def _make_passes() -> None:
    global _is_exiting, _passes
    _is_exiting = False
    _passes = SimpleQueue()
    for _ in range(NUMBER):
        _passes.put(None)


def _take_passes() -> None:
    global _is_exiting
    _is_exiting = True
    with suppress(Empty):
        for _ in range(NUMBER):
            _passes.get(timeout=PATIENCE)


_make_passes()
# called after the main thread and all other non-daemon threads have ended
atexit.register(_take_passes)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_passes)  # which has none of the threads inside
