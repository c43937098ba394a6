"""Matrix products: each on the thread that asks for it, and none while the process is forked.

OpenBLAS, which numpy brings, shares out even small products among threads of its own. These go on spinning for
milliseconds after it, on the processors that the model needs. Before a fork it tells them to end and waits for them,
and one that is at work at that moment may miss it; in the child, a lock that a product held stays locked. So importing
this module registers functions that make `os.fork` wait for the products in progress, for 10 seconds at most.
"""

import os
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import Any

PATIENCE = 10.0
"""Seconds that a fork waits for products, and a product for a fork; then each goes its way, as without this."""


class BlasGate:
    """Lets many threads multiply side by side, and a fork only when none does."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start afresh: in a forked child none of the other threads exists."""
        self._changed = threading.Condition()
        self._inside = 0
        self._is_forking = False
        self._numbers: list[int] = []

    def __enter__(self) -> None:
        """Let no fork begin, and no product be shared out, by any thread, until all have left that entered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking, PATIENCE)
            if not self._inside:
                self._numbers = [library.get_num_threads() for library in self._openblas]
                self._set_num_threads([1] * len(self._numbers))
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        """Leave."""
        with self._changed:
            self._inside -= 1
            if not self._inside:
                self._set_num_threads(self._numbers)
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

    def _set_num_threads(self, numbers: Iterable[int]) -> None:
        """Set the threads of each library; threadpoolctl lets one thread at a time do so, unless that is cleared."""
        for library, number in zip(self._openblas, numbers, strict=True):
            library.clear_controlling_thread(force=True)
            library.set_num_threads(number)
            library.clear_controlling_thread(force=True)

    @cached_property
    def _openblas(self) -> list[Any]:
        """The copies of OpenBLAS in this process that have threads of their own; other kinds of BLAS need no gate."""
        from threadpoolctl import ThreadpoolController  # looks at the libraries that are loaded, so numpy comes first

        libraries = ThreadpoolController().select(internal_api="openblas").lib_controllers
        return [library for library in libraries if library.threading_layer == "pthreads"]


blas_gate: BlasGate = BlasGate()
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=blas_gate.before_fork, after_in_parent=blas_gate.after_fork, after_in_child=blas_gate.reset
    )
