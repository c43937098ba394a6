"""Overlaps two steps of work: the first step of an item runs during the second step of the item before."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from bertscore_onnx.concurrency.thread_pool import Task, ThreadPool, next_result
from bertscore_onnx.errors import is_interrupt

T = TypeVar("T")
Begun = TypeVar("Begun")
Result = TypeVar("Result")


def prefetch(items: Iterator[T], begin: Callable[[T], Begun], finish: Callable[[T, Begun], Result]) -> Iterator[Result]:
    """Yield `finish(item, begin(item))` for each item, in order.

    `begin` runs in a thread of its own, unless there is only one item, while the caller's thread runs `finish` for the
    item before. The caller's thread also reads the items; if that fails, the results of the items before come first.
    No item is kept in a variable while it is finished.
    """

    def begin_one(item: T) -> tuple[T, Begun]:
        return item, begin(item)

    reader = _Reader(items)
    waiting = [*reader.read(), *reader.read()]
    if len(waiting) == 1:  # not worth a thread
        yield finish(*begin_one(waiting.pop()))
    elif waiting:
        thread = ThreadPool(1, "bertscore-chunk")
        begun: deque[Task[T, tuple[T, Begun]]] = deque()
        try:
            while waiting or begun:
                while waiting:
                    begun.append(thread.submit(begin_one, waiting.pop(0)))
                yield finish(*next_result(begun))
                waiting += reader.read()
        finally:
            for task in begun:
                task.cancel()
            thread.close()
    if reader.failure is not None:
        raise reader.failure


class _Reader(Generic[T]):
    """Reads items until there are no more, or reading fails."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self.failure: Exception | None = None

    def read(self) -> list[T]:
        """Return a list of the next item, or an empty one."""
        if self.failure is not None:
            return []
        try:
            return list(islice(self._items, 1))
        except Exception as error:
            if is_interrupt(error):
                raise
            self.failure = error
            return []
