"""Runs the batches of a plan."""

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.errors import ClosedError

T = TypeVar("T")


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
        batches: what to run; made one by one, a few before they are needed.
        threads: where to run them.
        is_stopped: ends the work between two runs once it is set.
        advance: called after each run with what it returned.

    Raises:
        ClosedError: `is_stopped` was set, or the threads were closed.
    """
    for number in threads.map(run, batches):
        advance(number)
        if is_stopped is not None and is_stopped.is_set():
            raise ClosedError("The caller went away before all was encoded.")
