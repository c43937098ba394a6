"""Counts what a user should hear of the texts, so that one warning tells it for a whole call.

Whoever scores for many callers can listen instead of having warnings shown. `warnings.catch_warnings` will not do for
that: it changes the filters of the whole process, so two threads that use it undo each other's changes. A context
variable belongs to one thread or task.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Callable[[str], object]) -> Iterator[None]:
    """Give the notices of this thread or task to a function while the block runs."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass(slots=True)
class Notices:
    """How often something happened during one call."""

    empty: int = 0
    """Pairs of which a side is empty."""

    weightless: int = 0
    """Pairs of which a side has words, but none that weighs anything."""

    cut: int = 0
    """Texts that were longer than the model's maximum."""

    max_length: int = 0
    """That maximum, in tokens."""

    def warn(self, stacklevel: int) -> None:
        """Tell the listener of each kind that happened, or else warn, as the caller so many levels up."""
        if self.empty:
            _tell(f"{_pairs_score(self.empty)} 0 because a side is empty.", stacklevel)
        if self.weightless:
            _tell(f"{_pairs_score(self.weightless)} 0 because every token of a side weighs 0.", stacklevel)
        if self.cut:
            texts = "1 text is" if self.cut == 1 else f"{self.cut} texts are"
            _tell(
                f"{texts} longer than {self.max_length} tokens and cut there, as bert-score does without a word. "
                'What is beyond does not count; with long_text="window" it does.',
                stacklevel,
            )


def _pairs_score(count: int) -> str:
    return "1 pair scores" if count == 1 else f"{count} pairs score"


def _tell(message: str, stacklevel: int) -> None:
    listener = _listener.get()
    if listener is None:
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 2)
    else:
        listener(message)
