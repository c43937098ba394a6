"""A base class of objects that are closed at the end of a `with` block."""

from abc import ABC, abstractmethod
from typing import Self


class Closeable(ABC):
    """An object with resources to release, which a `with` block closes."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources."""

    def __enter__(self) -> Self:
        """Return the object itself, which is closed at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the object."""
        self.close()
