"""Worker threads that callers share.

They start when they are first needed, and again in a forked child.

A signal handler may raise an error in the main thread between any two steps of Python. In an
executor of `concurrent.futures`, while waiting for a future, or while starting a thread, this
leaves a lock locked for ever. So tasks and finished futures pass through queues that are written
in C, and each thread is started by another one.
"""

import _thread
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import ref

from bertscore_onnx.errors import ClosedError

T = TypeVar("T")
Result = TypeVar("Result")

Finished = SimpleQueue[Future[Result]]
"""Holds the future of a task once that is done."""


class Threads:
    """A few threads that many callers share."""

    def __init__(self, number: int, name: str) -> None:
        """Prepare `number` threads, named after `name` in a debugger.

        With 0, callers work inline, one at a time.
        """
        self._number, self._name = number, name
        self._restart()

    def map(
        self, work: Callable[[T], Result], items: Iterable[T], ahead: int | None = None
    ) -> Iterator[Result]:
        """Do the work for each item in the threads, and yield its results.

        Results come in the order of the items. Raises a ClosedError once closed. At most `ahead`
        items, by default two for each thread, follow the one whose result is awaited, so that the
        items of several callers alternate. If the caller leaves, these are still done.
        """
        most = 2 * self._number if ahead is None else ahead
        begun: deque[Finished[Result]] = deque()
        for item in items:
            begun.append(self._submit(work, item))
            if len(begun) > most:
                yield begun.popleft().get().result()
        while begun:
            yield begun.popleft().get().result()

    def close(self) -> None:
        """End the threads after the work that they were given."""
        self._follow_fork()
        with self._changing:
            self._is_closed = True
            self._tasks.put(None)

    def _submit(self, work: Callable[[T], Result], item: T) -> Finished[Result]:
        """Let the next free thread do the work for an item.

        Or do it inline, if there is no thread.
        """
        self._follow_fork()
        finished: Finished[Result] = SimpleQueue()
        with self._changing:
            if self._is_closed:
                raise ClosedError("The scorer was closed. Make a new one.")
            if not self._idle.empty():
                self._idle.get()
            elif self._num_started < self._number:
                self._start_thread()
            if self._num_started:
                self._tasks.put((work, item, finished))
                return finished
        with self._in_line:
            _do(work, item, finished)
        return finished

    def _start_thread(self) -> None:
        owner = ref(self, self._tasks.put)  # no `__del__`, which a signal handler could interrupt
        name = f"{self._name}_{self._num_started}"
        arguments = self._tasks, self._idle, owner
        thread = threading.Thread(target=_work, args=arguments, name=name, daemon=True)
        number: SimpleQueue[int] = SimpleQueue()
        # no more threads are allowed, or, in Python 3.12.1, the main thread has ended
        with suppress(RuntimeError):
            _thread.start_new_thread(_start, (thread, number))
            self._num_started += number.get()

    def _follow_fork(self) -> None:
        """Replace the threads of the parent process, which do not exist in a forked child."""
        if self._pid != os.getpid():
            self._restart()

    def _restart(self) -> None:
        self._pid = os.getpid()
        self._changing = threading.Lock()
        self._in_line = threading.RLock()
        # None once closed, the reference to the owner once that is gone
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        # an item for each thread that waits for a task
        self._idle: SimpleQueue[None] = SimpleQueue()
        self._num_started = 0
        self._is_closed = False


def _start(thread: threading.Thread, number: SimpleQueue[int]) -> None:
    """Start a thread, and put how many have started: 1, or 0."""
    try:
        thread.start()
    except RuntimeError:
        number.put(0)
    else:
        number.put(1)


def _work(tasks: SimpleQueue[Any], idle: SimpleQueue[None], owner: object) -> None:
    """Do tasks until the threads are closed or gone.

    Then end the next one. No task is kept after it is done.
    """
    while isinstance(task := tasks.get(), tuple):
        _do(*task)
        del task
        idle.put(None)
    tasks.put(None)


def _do(work: Callable[[T], Result], item: T, finished: Finished[Result]) -> None:
    future: Future[Result] = Future()
    try:
        result = work(item)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    finished.put(future)
    del work, item, finished, future  # the traceback of an error refers to these
