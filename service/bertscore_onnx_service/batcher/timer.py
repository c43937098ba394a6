"""Wakes one sleeping thread, at once or at a time that other threads set.

A thread that wakes another one calls nothing but C: an exception that a signal handler raises in the main thread may
arrive between any two steps of Python, such as those of a `threading.Condition`, and would leave its lock locked.
"""

import math
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue


class Wakeup:
    """Lets one thread sleep until another wakes it; a wakeup that comes before the sleep ends that at once."""

    def __init__(self) -> None:
        self._wakeups: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Wake the thread."""
        self._wakeups.put(None)

    def wait(self, seconds: float) -> None:
        """Sleep until woken, or for this time, which may be infinite; clear all wakeups."""
        with suppress(Empty):
            self._wakeups.get(timeout=min(max(seconds, 0), threading.TIMEOUT_MAX))
            while True:
                self._wakeups.get_nowait()


class Timer:
    """Wakes one thread at the earliest time that any thread has set, and costs nothing until then."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._wakeup = Wakeup()
        self._time = math.inf

    def set(self, at: float) -> None:
        """Fire at this time of `time.monotonic()`, or at an earlier one that is already set."""
        with self._lock:
            if at < self._time:
                self._wakeup.set()  # first, so that an interrupt in between loses nothing
                self._time = at

    def fire(self) -> None:
        """Fire now."""
        self.set(-math.inf)

    def wait(self) -> None:
        """Sleep until the timer fires, and clear it."""
        while True:
            with self._lock:
                if (left := self._time - time.monotonic()) <= 0:
                    self._time = math.inf
                    return
            self._wakeup.wait(left)
