"""Keeps a process from being forked in the middle of a product of matrices.

Before a fork OpenBLAS, which numpy brings, tells its threads to end and waits for them. One that is at work for another
thread's product at that moment may miss it, and then the fork never returns.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 10.0
"""Seconds that a fork waits for products, and a product for a fork; then each goes its way, as without this."""


class ForkGate:
    """Lets many threads multiply side by side, and a fork only when none does."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin anew: in a forked child none of the other threads exists."""
        self._changed = threading.Condition()
        self._inside = 0
        self._is_forking = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Let no fork begin during the block."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking, PATIENCE)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no thread multiplies, and let none begin."""
        self._changed.acquire()
        self._is_forking = True
        self._changed.wait_for(lambda: self._inside <= 0, PATIENCE)

    def after_fork(self) -> None:
        """Let the parent's threads go on."""
        self._is_forking = False
        self._changed.notify_all()
        self._changed.release()


fork_gate = ForkGate()
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=fork_gate.before_fork, after_in_parent=fork_gate.after_fork, after_in_child=fork_gate.renew
    )
