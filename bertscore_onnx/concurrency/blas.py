"""Products of matrices: each on the thread that asks for it, and none while the process is forked.

OpenBLAS, which numpy brings, shares out even small ones among threads of its own. These go on turning for milliseconds
after it, on the processors that the model needs. Before a fork it tells them to end and waits for them, and one that is
at work at that moment may miss it; in the child, a lock that a product held stays locked.
"""

import os
import threading
from collections.abc import Callable
from ctypes import CDLL
from functools import cached_property
from itertools import product

PATIENCE = 10.0
"""Seconds that a fork waits for products, and a product for a fork; then each goes its way, as without this."""


class BlasGate:
    """Lets many threads multiply side by side, and a fork only when none does."""

    def __init__(self) -> None:
        self._blas = BlasThreads()
        self.renew()

    def renew(self) -> None:
        """Begin anew: in a forked child none of the other threads exists."""
        self._changed = threading.Condition()
        self._inside = 0
        self._is_forking = False

    def __enter__(self) -> None:
        """Let no fork begin, and no product be shared out, whoever asks for it, until all have left who entered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking, PATIENCE)
            if not self._inside:
                self._blas.limit()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        """Leave."""
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
        self._numbers = [get_number() for get_number, _ in self._libraries]
        for _, set_number in self._libraries:
            set_number(1)

    def restore(self) -> None:
        """Give back what there was before `limit`, unless somebody has set something else meanwhile."""
        for before, (get_number, set_number) in zip(self._numbers, self._libraries, strict=True):
            if get_number() == 1:
                set_number(before)

    @cached_property
    def _libraries(self) -> list[tuple[Callable[[], int], Callable[[int], object]]]:
        from threadpoolctl import ThreadpoolController  # looks at the libraries that are loaded, so numpy comes first

        return [
            _number_functions(library.dynlib)
            for library in ThreadpoolController().lib_controllers
            if library.internal_api == "openblas" and library.threading_layer == "pthreads"
        ]


def _number_functions(library: CDLL) -> tuple[Callable[[], int], Callable[[int], object]]:
    """Return OpenBLAS's functions that get and set the number of threads, whatever its builder added to their names."""
    before, after = next(
        affixes
        for affixes in product(("", "scipy_"), ("", "64_", "_64"))
        if hasattr(library, "{}openblas_set_num_threads{}".format(*affixes))
    )
    get_number: Callable[[], int] = library[f"{before}openblas_get_num_threads{after}"]
    set_number: Callable[[int], object] = library[f"{before}openblas_set_num_threads{after}"]
    return get_number, set_number


blas_gate = BlasGate()
"""The gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=blas_gate.before_fork, after_in_parent=blas_gate.after_fork, after_in_child=blas_gate.renew
    )
