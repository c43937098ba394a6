"""Worker threads that start when they are first needed, and anew in a forked child."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

from bertscore_onnx.errors import ClosedError

Item = TypeVar("Item")
Result = TypeVar("Result")

_CLOSED = "The scorer was closed. Make a new one."


class WorkerThreads:
    """A few threads that many callers may give work to."""

    def __init__(self, number: int, name: str) -> None:
        """Prepare threads; `name` is what a debugger shows."""
        self._number, self._name = number, name
        self._is_closed = False
        self._renew()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Do the work for each item, in the threads, and yield the results in order.

        Where there are no more items than threads, the caller does the first one itself, for its way to another thread
        takes time; but only one caller at a time does.

        Only a few items wait at a time, so that the work of several callers goes on side by side. Whoever stops
        iterating, or gets an error, leaves at most those in progress to be finished.

        Raises:
            ClosedError: the threads were closed.
        """
        if self._is_closed:
            raise ClosedError(_CLOSED)
        if self._pid != os.getpid():
            self._renew()
        items = iter(items)
        few = list(islice(items, self._number + 1))
        if 0 < len(few) <= self._number and self._caller_works.acquire(blocking=False):
            yield from self._share(work, few)
            return
        running: deque[Future[Result]] = deque()
        try:
            for item in chain(few, items):
                running.append(self._submit(work, item))
                if len(running) > 2 * self._number:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            _cancel(running)

    def close(self) -> None:
        """Let the threads end when they have done what they were given."""
        self._is_closed = True
        self._pool.shutdown(wait=False)

    def _renew(self) -> None:
        self._pool, self._pid = ThreadPoolExecutor(self._number, self._name), os.getpid()
        self._caller_works = threading.Lock()

    def _share(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Do the work for the first item here, and for the others in the threads."""
        running: list[Future[Result]] = []
        try:
            try:
                running += [self._submit(work, item) for item in items[1:]]
                first = work(items[0])
            finally:
                self._caller_works.release()
            yield first
            for future in running:
                yield future.result()
        finally:
            _cancel(running)

    def _submit(self, work: Callable[[Item], Result], item: Item) -> Future[Result]:
        try:
            return self._pool.submit(work, item)
        except RuntimeError as error:  # closed just now
            raise ClosedError(_CLOSED) from error


def _cancel(futures: Iterable[Future[Result]]) -> None:
    for future in futures:
        future.cancel()
