"""Warnings about the texts, which whoever scores for many callers can hear instead of showing them.

`warnings.catch_warnings` will not do for that: it changes the filters of the whole process, so two threads that use it
undo each other's changes. A context variable belongs to one thread or task.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


def notice(message: str, *, stacklevel: int) -> None:
    """Tell the listener of this thread or task, or else warn.

    Args:
        message: what the caller should know of the texts.
        stacklevel: whose line to show, counted from the caller of this function as 1.
    """
    listener = _listener.get()
    if listener is None:
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)
    else:
        listener(message)


@contextmanager
def heard_by(listener: Callable[[str], object]) -> Iterator[None]:
    """Give the notices of this thread or task to a function while the block runs."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
