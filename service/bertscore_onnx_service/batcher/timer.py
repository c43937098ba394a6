"""A timer for one sleeping thread, which other threads may set to an earlier time."""

import math
import threading
import time


class Timer:
    """Wakes one thread at the earliest time that any thread has set, and costs nothing until then."""

    def __init__(self) -> None:
        # A Condition's own lock is reentrant, so that a signal handler may set the timer at any moment.
        self._changed = threading.Condition()
        self._time = math.inf

    def set(self, at: float) -> None:
        """Fire at this time of `time.monotonic()`, or at an earlier one that is already set."""
        with self._changed:
            if at < self._time:
                self._time = at
                self._changed.notify()

    def fire(self) -> None:
        """Fire now."""
        self.set(-math.inf)

    def wait(self) -> None:
        """Sleep until the timer fires, and clear it."""
        with self._changed:
            while (left := self._time - time.monotonic()) > 0:
                self._changed.wait(None if left == math.inf else min(left, threading.TIMEOUT_MAX))
            self._time = math.inf
