"""Keeps matrix products on the calling thread, and forks away from them.

OpenBLAS, which comes with numpy, distributes even small products to threads of its own. They keep spinning for
milliseconds afterwards, on the CPUs that the model needs. Before a fork it stops them and waits for them, but a thread
that is working at that moment may miss the signal; in the child, a lock that a product held stays locked. So importing
this module registers functions that make `os.fork` wait for the products in progress, for 10 seconds at most.
"""

import os
import threading
from collections.abc import Iterable
from functools import cached_property
from typing import Any

PATIENCE = 10.0
"""Seconds that a fork waits for products, and a product for a fork, before each continues regardless."""


class BlasGate:
    """Lets many threads multiply at the same time, and a process fork only while none does."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the state: in a forked child, none of the other threads exists."""
        self._changed = threading.Condition()
        self._inside = 0
        self._is_forking = False
        self._numbers: list[int] = []

    def __enter__(self) -> None:
        """Forbid forks and the distribution of products, in all threads, until every thread inside has left."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking, PATIENCE)
            if not self._inside:
                self._numbers = [library.get_num_threads() for library in self._openblas]
                self._set_num_threads([1] * len(self._numbers))
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        """Allow both again, if this is the last thread inside."""
        with self._changed:
            self._inside -= 1
            if not self._inside:
                self._set_num_threads(self._numbers)
            self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no thread multiplies, and let none start."""
        self._changed.acquire()
        self._is_forking = True
        self._changed.wait_for(lambda: self._inside <= 0, PATIENCE)

    def after_fork(self) -> None:
        """Let the parent's threads continue."""
        self._is_forking = False
        self._changed.notify_all()
        self._changed.release()

    def _set_num_threads(self, numbers: Iterable[int]) -> None:
        """Set the number of threads of each library, which threadpoolctl otherwise allows to one controlling thread."""
        for library, number in zip(self._openblas, numbers, strict=True):
            library.clear_controlling_thread(force=True)
            library.set_num_threads(number)
            library.clear_controlling_thread(force=True)

    @cached_property
    def _openblas(self) -> list[Any]:
        """The copies of OpenBLAS in this process with threads of their own; other BLAS libraries need no gate."""
        from threadpoolctl import ThreadpoolController  # inspects the loaded libraries, so numpy comes first

        libraries = ThreadpoolController().select(internal_api="openblas").lib_controllers
        return [library for library in libraries if library.threading_layer == "pthreads"]


blas_gate: BlasGate = BlasGate()
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=blas_gate.before_fork, after_in_parent=blas_gate.after_fork, after_in_child=blas_gate.reset
    )
