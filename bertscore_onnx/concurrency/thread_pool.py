"""Worker threads that start when they are first needed, and again in a forked child.

Those of `concurrent.futures` accept no work after the main thread has returned, when other threads may still score.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from bertscore_onnx.concurrency.exit_gate import exit_gate
from bertscore_onnx.errors import ClosedError

T = TypeVar("T")
Result = TypeVar("Result")
Task = Callable[[], None]

PATIENCE = 10.0
"""Seconds that a thread waits for the others before it starts the work."""


class ThreadPool:
    """A few threads that many callers share."""

    def __init__(self, number: int, name: str) -> None:
        """Prepare `number` threads, named after `name` in a debugger; with 0, callers work inline, one at a time."""
        self._number, self._name = number, name
        self._restart()

    def map(self, work: Callable[[T], Result], items: Iterable[T]) -> Iterator[Result]:
        """Do the work for each item in the threads, and yield the results in order; raise a ClosedError once closed.

        Only a few items wait at a time, so that the callers' items alternate. After a caller stops iterating, or an
        error, only the items in progress are still finished.
        """
        if not self._number:
            yield from (self._run_inline(work, item) for item in items)
            return
        running: deque[Future[Result]] = deque()
        try:
            for item in items:
                running.append(self.submit(work, item))
                if len(running) > 2 * self._number:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()

    def run_in_each(self, work: Callable[[], object]) -> None:
        """Do the work once in each thread; or once inline, if there are none.

        All threads wait for each other first, so that no thread does the work twice.
        """
        number = max(self._number, 1)
        together = threading.Barrier(number)

        def join_and_work(_: int) -> None:
            with suppress(threading.BrokenBarrierError):  # not all threads could be started, or they were closed
                together.wait(PATIENCE)
            work()

        self._follow_fork()
        with self._joining:  # two callers would each hold threads for which the other waits
            deque(self.map(join_and_work, range(number)), maxlen=0)

    def submit(self, work: Callable[[T], Result], item: T) -> Future[Result]:
        """Do the work for one item in the next free thread; or inline, if no thread could be started."""
        exit_gate.check()
        self._follow_fork()
        future: Future[Result] = Future()
        with self._changed:
            self._check_open()
            if self._num_started < self._number and not self._idle.acquire(blocking=False):
                name = f"{self._name}_{self._num_started}"
                with suppress(RuntimeError):  # no more threads allowed, or, in Python 3.12.1, the main thread has ended
                    threading.Thread(target=_work, args=(self._tasks, self._idle), name=name, daemon=True).start()
                    self._num_started += 1
            if self._num_started:
                self._tasks.put(lambda: _do(future, work, item))
                return future
        with self._in_line:
            _do(future, work, item)
        return future

    def close(self) -> None:
        """End the threads after the work that they were given."""
        self._follow_fork()
        with self._changed:
            self._is_closed = True
            self._end_threads()

    def __del__(self) -> None:
        """End the threads."""
        self._end_threads()

    def _run_inline(self, work: Callable[[T], Result], item: T) -> Result:
        """Do the work for one item in the caller's thread, without a future."""
        exit_gate.check()
        self._follow_fork()
        self._check_open()
        with self._in_line:
            return work(item)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("The scorer was closed. Make a new one.")

    def _follow_fork(self) -> None:
        """Replace the threads of the parent process, which do not exist in a forked child."""
        if self._pid != os.getpid():
            self._restart()

    def _restart(self) -> None:
        self._pid, self._changed, self._is_closed = os.getpid(), threading.Lock(), False
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._in_line, self._joining = threading.RLock(), threading.Lock()
        self._num_started = 0

    def _end_threads(self) -> None:
        for _ in range(self._num_started):
            self._tasks.put(None)


def _work(tasks: SimpleQueue[Task | None], idle: threading.Semaphore) -> None:
    """Run tasks until None comes, without keeping a finished task alive."""
    while (task := tasks.get()) is not None:
        task()
        del task
        idle.release()


def _do(future: Future[Result], work: Callable[[T], Result], item: T) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work(item)
    except BaseException as error:
        future.set_exception(error)
        del future, work, item  # the error's traceback refers to these
    else:
        future.set_result(result)
