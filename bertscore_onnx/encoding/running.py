"""Runs the batches of a plan."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.errors import ClosedError

T = TypeVar("T")

TURN_SECONDS = 0.005
"""How long a thread runs batches of one caller before it takes those of another. To wake a thread takes as long as a
small run, so that a thread for each of these would wait more than it computes."""


def run_batches(
    run: Callable[[T], int],
    batches: Iterable[T],
    threads: ThreadPool,
    *,
    is_stopped: threading.Event | None = None,
    advance: Callable[[int], object] = lambda number: None,
) -> None:
    """Run batches.

    Args:
        run: runs one, and returns how much of the work that was.
        batches: what to run.
        threads: where to run them.
        is_stopped: ends the work between two runs once it is set.
        advance: called after a run, or after some short ones, with what they returned together.

    Raises:
        ClosedError: `is_stopped` was set, or the threads were closed.
    """
    waiting = _Waiting(batches)

    def take_turn(_: None) -> int:
        """Run a batch, and more of them until the turn is over."""
        number, end = 0, time.monotonic() + TURN_SECONDS
        for batch in waiting:
            number += run(batch)
            if time.monotonic() > end or (is_stopped is not None and is_stopped.is_set()):
                break
        return number

    for number in threads.map(take_turn, waiting.turns()):
        advance(number)
        if is_stopped is not None and is_stopped.is_set():
            raise ClosedError("The caller went away before all was encoded.")


class _Waiting(Generic[T]):
    """Items that several threads take."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._taking = threading.Lock()
        self._is_empty = False

    def __iter__(self) -> Iterator[T]:
        """Take items until there are no more."""
        return self

    def __next__(self) -> T:
        with self._taking:
            try:
                return next(self._items)
            except StopIteration:
                self._is_empty = True
                raise

    def turns(self) -> Iterator[None]:
        """Yield as long as there may be items."""
        while not self._is_empty:
            yield
