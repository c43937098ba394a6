"""Overlaps two steps of work: the first step of an item runs during the second step of the item before."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Generic, TypeVar

from bertscore_onnx.concurrency.thread_pool import ThreadPool

T = TypeVar("T")
Begun = TypeVar("Begun")
Result = TypeVar("Result")


def prefetch(items: Iterator[T], begin: Callable[[T], Begun], finish: Callable[[T, Begun], Result]) -> Iterator[Result]:
    """Yield `finish(item, begin(item))` for each item, in order.

    `begin` runs in a thread of its own, unless there is only one item, while the caller's thread runs `finish` for the
    item before. The caller's thread also reads the items; if that fails, the results of the items before come first.
    """
    reader = _Reader(items)
    first, second = reader.read(), reader.read()
    if first and not second:  # not worth a thread
        yield finish(first[0], begin(first[0]))
    elif second:
        yield from _overlapped([*first, *second], reader, begin, finish)
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
            self.failure = error
            return []


def _overlapped(
    first: list[T], reader: _Reader[T], begin: Callable[[T], Begun], finish: Callable[[T, Begun], Result]
) -> Iterator[Result]:
    thread = ThreadPool(1, "bertscore-chunk")
    begun: deque[tuple[T, Future[Begun]]] = deque()
    try:
        begun.extend((item, thread.submit(begin, item)) for item in first)
        while begun:
            yield _finish_first(begun, finish)
            begun.extend((item, thread.submit(begin, item)) for item in reader.read())
    finally:
        for _, future in begun:
            future.cancel()
        thread.close()


def _finish_first(begun: deque[tuple[T, Future[Begun]]], finish: Callable[[T, Begun], Result]) -> Result:
    """Finish the item begun first, without keeping it alive in a variable."""
    item, future = begun.popleft()
    return finish(item, future.result())
