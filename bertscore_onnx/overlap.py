"""Lets one step of a work run while the other step is at the item before."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Begun = TypeVar("Begun")
Result = TypeVar("Result")


def one_ahead(
    items: Iterator[Item], begin: Callable[[Item], Begun], finish: Callable[[Item, Begun], Result]
) -> Iterator[Result]:
    """Work on items in two steps.

    Args:
        items: read in the caller's thread while the item before is begun.
        begin: the first step, in a thread of its own.
        finish: the second step, in the caller's thread, while the next item is begun.

    Yields:
        What `finish` returns, in order. Where `items` fails, first the results of the items before.
    """
    thread = ThreadPoolExecutor(1, "bertscore-window")
    begun: deque[tuple[Item, Future[Begun]]] = deque()
    failure: Exception | None = None
    try:
        while failure is None:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception as error:
                failure = error
            else:
                begun.append((item, thread.submit(begin, item)))
                if len(begun) > 1:
                    yield _finish_first(begun, finish)
        while begun:
            yield _finish_first(begun, finish)
        if failure is not None:
            raise failure
    finally:
        thread.shutdown(wait=False, cancel_futures=True)


def _finish_first(begun: deque[tuple[Item, Future[Begun]]], finish: Callable[[Item, Begun], Result]) -> Result:
    """Finish the item begun first; nothing of it stays behind in a variable, and so in memory."""
    item, future = begun.popleft()
    return finish(item, future.result())
