"""Worker threads that start when they are first needed, and again in a forked child."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from bertscore_onnx.errors import ClosedError

T = TypeVar("T")
Result = TypeVar("Result")


class ThreadPool:
    """A few threads that many callers may give work to."""

    def __init__(self, number: int, name: str) -> None:
        """Prepare threads; `name` is what a debugger shows."""
        self._number, self._name = number, name
        self._restart()

    def map(self, work: Callable[[T], Result], items: Iterable[T]) -> Iterator[Result]:
        """Do the work for each item, in the threads, and yield the results in order.

        Only a few items wait at a time, so that the work of several callers goes on side by side. A caller that stops
        iterating, or gets an error, leaves at most those in progress to be finished.

        Raises:
            ClosedError: the threads were closed.
        """
        self._follow_fork()
        running: deque[Future[Result]] = deque()
        try:
            for item in items:
                running.append(self._submit(work, item))
                if len(running) > 2 * self._number:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()

    def map_in_line(self, work: Callable[[T], Result], items: Sequence[T]) -> list[Result]:
        """Do the work for a few items, the first in the caller's thread, and return the results in order.

        Raises:
            ClosedError: the threads were closed.
        """
        self._follow_fork()
        others = [self._submit(work, item) for item in items[1:]]
        first = [work(item) for item in items[:1]]
        return first + [future.result() for future in others]

    def close(self) -> None:
        """Let the threads end when they have done what they were given."""
        self._pool.shutdown(wait=False)

    def _follow_fork(self) -> None:
        """Forget the threads of the parent process, which do not exist in this one."""
        if self._pid != os.getpid():
            self._restart()

    def _restart(self) -> None:
        self._pool, self._pid = ThreadPoolExecutor(self._number, self._name), os.getpid()

    def _submit(self, work: Callable[[T], Result], item: T) -> Future[Result]:
        try:
            return self._pool.submit(work, item)
        except RuntimeError as error:
            raise ClosedError("The scorer was closed. Make a new one.") from error
