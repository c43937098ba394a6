"""A clock to sleep by, which others may set to an earlier time."""

import math
import threading
import time


class Timer:
    """Wakes one thread at the earliest of the times that anyone has set; until then it costs nothing."""

    def __init__(self) -> None:
        # A Condition's own lock is reentrant, so that a signal handler may set the timer while it is being set.
        self._changed = threading.Condition()
        self._time = math.inf

    def set(self, at: float) -> None:
        """Ring at this time of `time.monotonic()`, or earlier where an earlier time is set."""
        with self._changed:
            if at < self._time:
                self._time = at
                self._changed.notify()

    def fire(self) -> None:
        """Ring now."""
        self.set(-math.inf)

    def wait(self) -> None:
        """Sleep until the timer fires, and clear it."""
        with self._changed:
            while (left := self._time - time.monotonic()) > 0:
                self._changed.wait(None if left == math.inf else min(left, threading.TIMEOUT_MAX))
            self._time = math.inf
