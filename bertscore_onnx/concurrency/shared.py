"""Reference counting.

A `Shared` resource has several users, and is closed with the last of them.
"""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import ClosedError

R = TypeVar("R", bound=Closeable)


class Shared(Generic[R]):
    """A resource that is made for its first user.

    It is closed when nobody uses or keeps it. Threads may share it.
    """

    def __init__(self, make: Callable[[], R], *, is_kept: bool = True) -> None:
        """Prepare to make the resource.

        A resource that is kept stays open while nobody uses it, until it is replaced or this object
        is closed.
        """
        self._make, self._is_kept = make, is_kept
        self._current: R | None = None
        self._num_users: Counter[int] = Counter()
        self.is_closed = False  # whether no more users are admitted
        self._making, self._counting = threading.Lock(), threading.Lock()

    def acquire(self) -> R:
        """Return the resource to one more user.

        While a thread makes it the others wait.
        """
        with self._making:
            with self._counting:
                if self.is_closed:
                    raise ClosedError("The shared resource was closed. Make a new one.")
                current = self._current
                if current is not None:
                    self._num_users[id(current)] += 1
                    return current
            made = self._make()
            with self._counting:
                self._num_users[id(made)] += 1
                if not self.is_closed:  # else it is closed with this user
                    self._current = made
            return made

    def release(self, resource: R) -> None:
        """End one use of a resource; the last user closes it, unless it is kept."""
        with self._counting:
            self._num_users[id(resource)] -= 1
            is_kept = self._is_kept and resource is self._current
            is_over = not self._num_users[id(resource)] and not is_kept
            if is_over:
                self._forget(resource)
        if is_over:
            resource.close()

    def replace(self, stale: R) -> None:
        """Let the next user get a new resource.

        Nothing changes if the stale one was replaced already.
        """
        with self._counting:
            is_over = self._current is stale and not self._num_users[id(stale)]
            if self._current is stale:
                self._current = None
            if is_over:
                self._forget(stale)
        if is_over:
            stale.close()

    def close(self) -> None:
        """Admit no more users.

        The resource is closed at once, or with its last user.
        """
        with self._counting:
            self.is_closed = True
            current = self._current
        if current is not None:
            self.replace(current)

    @property
    def is_being_made(self) -> bool:
        """Whether a thread makes the resource at the moment.

        A forked child has no thread to finish it.
        """
        return self._making.locked()

    def _forget(self, resource: R) -> None:
        del self._num_users[id(resource)]
        if self._current is resource:
            self._current = None
