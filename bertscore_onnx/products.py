"""Products of matrices: each on the thread that asks for it, and none while the process is forked.

OpenBLAS, which numpy brings, shares out even small ones among threads of its own. These go on turning for milliseconds
after it, on the processors that the model needs. Before a fork it tells them to end and waits for them, and one that is
at work at that moment may miss it; in the child, a lock that a product held stays locked.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

PATIENCE = 10.0
"""Seconds that a fork waits for products, and a product for a fork; then each goes its way, as without this."""


class ProductGate:
    """Lets many threads multiply side by side, and a fork only when none does."""

    def __init__(self) -> None:
        self._blas = BlasThreads()
        self.renew()

    def renew(self) -> None:
        """Begin anew: in a forked child none of the other threads exists."""
        self._changed = threading.Condition()
        self._inside = 0
        self._is_forking = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Let no fork begin during the block, and no product be shared out, whoever asks for it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking, PATIENCE)
            if not self._inside:
                self._blas.limit()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if not self._inside:
                    self._blas.restore()
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


class BlasThreads:
    """The threads of OpenBLAS, where it has its own; other kinds of BLAS do not need this."""

    def __init__(self) -> None:
        self._numbers: list[int] = []

    def limit(self) -> None:
        """Keep each product to the thread that asks for it."""
        self._numbers = [library.num_threads for library in self._libraries]
        self._set([1] * len(self._numbers))

    def restore(self) -> None:
        """Give back what there was before `limit`, unless somebody has set something else meanwhile."""
        now = [library.num_threads for library in self._libraries]
        self._set([before if one == 1 else one for before, one in zip(self._numbers, now, strict=True)])

    @cached_property
    def _libraries(self) -> list[Any]:
        from threadpoolctl import ThreadpoolController  # looks at the libraries that are loaded, so numpy comes first

        return [
            library
            for library in ThreadpoolController().lib_controllers
            if library.internal_api == "openblas" and library.threading_layer == "pthreads"
        ]

    def _set(self, numbers: list[int]) -> None:
        for library, number in zip(self._libraries, numbers, strict=True):
            library.clear_controlling_thread(force=True)  # else it heeds the first thread alone that set a number
            library.set_num_threads(number)
            library.clear_controlling_thread(force=True)


product_gate = ProductGate()
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=product_gate.before_fork, after_in_parent=product_gate.after_fork, after_in_child=product_gate.renew
    )
