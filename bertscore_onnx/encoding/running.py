"""Runs the batches of a plan, in worker threads or in the caller's."""

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.batching import RunMode
from bertscore_onnx.errors import ClosedError

T = TypeVar("T")


def run_batches(
    run: Callable[[T], int],
    batches: Iterable[T],
    mode: RunMode,
    threads: ThreadPool,
    *,
    is_stopped: threading.Event | None = None,
    advance: Callable[[int], object] = lambda number: None,
) -> None:
    """Run batches.

    Args:
        run: runs one, and returns how much of the work that was.
        batches: what to run; made one by one, a few before they are needed.
        mode: where to run them.
        threads: the worker threads.
        is_stopped: ends the work between two runs once it is set.
        advance: called after each run with what it returned.

    Raises:
        ClosedError: `is_stopped` was set, or the threads were closed.
    """
    done: Iterable[int]
    if mode is RunMode.THROUGHPUT:
        done = threads.map(run, batches)
    elif mode is RunMode.IN_LINE:
        done = threads.map_in_line(run, [*batches])
    else:
        done = map(run, batches)
    for number in done:
        advance(number)
        if is_stopped is not None and is_stopped.is_set():
            raise ClosedError("The caller went away before all was encoded.")
