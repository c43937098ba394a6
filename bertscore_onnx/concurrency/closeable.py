"""What is closed at the end of a `with` block."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closeable(ABC):
    """Something that holds what has to be released, and that a `with` block closes."""

    @abstractmethod
    def close(self) -> None:
        """Release it."""

    def __enter__(self) -> Self:
        """Return the thing itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
