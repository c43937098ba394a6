"""Keeps matrix products on the calling thread, and forks away from them.

OpenBLAS, which comes with numpy, distributes even small products to threads of its own. They keep
spinning for milliseconds afterwards, on the CPUs that the model needs. Before a fork it stops them
and waits for them, but a thread that is working at that moment may miss the signal; in the child, a
lock that a product held stays locked. So importing this module registers functions that make
`os.fork` wait for the products in progress, for 10 seconds at most.
"""

import os
import threading
import time
from collections.abc import Iterable
from functools import cached_property
from typing import Any

PATIENCE = 10.0
"""Seconds that a fork waits for products before it continues regardless."""


class BlasGate:
    """Lets many threads multiply at the same time.

    A process may fork only while none does. If the error of a signal handler ends `__enter__` or
    `__exit__` in between, the thread counts as inside until it next leaves, and holds nothing
    locked.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Reset the state: in a forked child, none of the other threads exists."""
        self._changing = threading.Lock()  # held by a fork too
        self._inside: set[int] = set()  # the threads
        self._numbers: list[int] = []  # of the threads of each library outside of the gate

    def __enter__(self) -> None:
        """Forbid forks and the distribution of products, in all threads.

        They are forbidden until every thread inside has left.
        """
        with self._changing:
            if not self._numbers:
                self._numbers = [library.get_num_threads() for library in self._openblas]
            if not self._inside:
                self._set_num_threads([1] * len(self._numbers))
            self._inside.add(threading.get_ident())

    def __exit__(self, *error: object) -> None:
        """Allow both again, if this is the last thread inside."""
        self._inside.discard(threading.get_ident())
        with self._changing:
            self._restore()

    def before_fork(self) -> None:
        """Wait until no other thread multiplies, and let none start."""
        self._changing.acquire()
        self._inside.discard(threading.get_ident())
        end = time.monotonic() + PATIENCE
        while self._inside and time.monotonic() < end:
            time.sleep(0.001)
        self._restore()

    def after_fork(self) -> None:
        """Let the parent's threads continue."""
        self._changing.release()

    def _restore(self) -> None:
        """Let the libraries distribute products as before.

        Nothing changes while a thread is inside.
        """
        if self._numbers and not self._inside:
            self._set_num_threads(self._numbers)
            self._numbers = []

    def _set_num_threads(self, numbers: Iterable[int]) -> None:
        """Set the number of threads of each library.

        By itself, threadpoolctl allows this to one controlling thread.
        """
        for library, number in zip(self._openblas, numbers, strict=True):
            library.clear_controlling_thread(force=True)
            library.set_num_threads(number)
            library.clear_controlling_thread(force=True)

    @cached_property
    def _openblas(self) -> list[Any]:
        """The copies of OpenBLAS in this process with threads of their own.

        Other BLAS libraries need no gate.
        """
        # inspects the loaded libraries, so numpy comes first
        from threadpoolctl import ThreadpoolController

        libraries = ThreadpoolController().select(internal_api="openblas").lib_controllers
        return [library for library in libraries if library.threading_layer == "pthreads"]


blas_gate: BlasGate = BlasGate()
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=blas_gate.before_fork,
        after_in_parent=blas_gate.after_fork,
        after_in_child=blas_gate.reset,
    )
