"""Worker threads that start when they are first needed, and again in a forked child.

Those of `concurrent.futures` accept no work after the main thread has returned, when other threads may still score.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from bertscore_onnx.concurrency.exit_gate import exit_gate
from bertscore_onnx.errors import ClosedError, is_interrupt

T = TypeVar("T")
Result = TypeVar("Result")

PATIENCE = 10.0
"""Seconds that a thread waits for the others before it starts the work."""


class Task(Generic[T, Result]):
    """Work for one item, which a thread does unless it is cancelled before.

    Where the main thread waits for it, C code alone does: the error of a signal handler leaves nothing locked.
    """

    def __init__(self, work: Callable[[T], Result], item: T) -> None:
        self.call: tuple[Callable[[T], Result], T] | None = (work, item)
        """The work and its item; None once it has begun, or was cancelled."""
        self.outcomes: SimpleQueue[tuple[Result | None, BaseException | None]] = SimpleQueue()
        """The result, or the error, until it is taken."""

    def cancel(self) -> None:
        """Do not begin the work; nobody waits for it any more."""
        self.call = None

    def result(self) -> Result:
        """Wait for the work, and return its result or raise its error, once."""
        result, error = self.outcomes.get()
        if error is None:
            return result  # type: ignore[return-value]  # which may be None itself
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame


Tasks = SimpleQueue[Task[Any, Any] | ReferenceType["ThreadPool"] | None]
"""The tasks of a pool's threads; None once it was closed, or the reference to it once it is gone."""


def next_result(tasks: deque[Task[T, Result]]) -> Result:
    """Wait for the first task and remove it then, so that it can still be cancelled meanwhile."""
    result = tasks[0].result()
    tasks.popleft()
    return result


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
        running: deque[Task[T, Result]] = deque()
        try:
            for item in items:
                running.append(self.submit(work, item))
                if len(running) > 2 * self._number:
                    yield next_result(running)
            while running:
                yield next_result(running)
        finally:
            for task in running:
                task.cancel()

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

    def submit(self, work: Callable[[T], Result], item: T) -> Task[T, Result]:
        """Do the work for one item in the next free thread; or inline, if no thread could be started."""
        exit_gate.check()
        self._follow_fork()
        task = Task(work, item)
        with self._changed:
            self._check_open()
            if not self._has_idle() and self._num_started < self._number:
                name = f"{self._name}_{self._num_started}"
                with suppress(RuntimeError):  # no more threads allowed, or, in Python 3.12.1, the main thread has ended
                    arguments = self._tasks, self._idle, ref(self, self._tasks.put)  # no `__del__` to interrupt
                    threading.Thread(target=_work, args=arguments, name=name, daemon=True).start()
                    self._num_started += 1
            if self._num_started:
                self._tasks.put(task)
                return task
        with self._in_line:
            _do(task)
        return task

    def close(self) -> None:
        """End the threads after the work that they were given."""
        self._follow_fork()
        with self._changed:
            self._is_closed = True
            self._tasks.put(None)

    def _run_inline(self, work: Callable[[T], Result], item: T) -> Result:
        """Do the work for one item in the caller's thread, without a future."""
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

    def _has_idle(self) -> bool:
        """Return whether a thread has nothing to do, which then counts as busy."""
        with suppress(Empty):
            self._idle.get_nowait()
            return True
        return False

    def _restart(self) -> None:
        self._pid, self._changed, self._is_closed = os.getpid(), threading.Lock(), False
        self._tasks: Tasks = SimpleQueue()
        self._idle: SimpleQueue[None] = SimpleQueue()  # an item for each thread that waits for a task
        self._in_line, self._joining = threading.RLock(), threading.Lock()
        self._num_started = 0


def _work(tasks: Tasks, idle: SimpleQueue[None], pool: ReferenceType[ThreadPool]) -> None:
    """Do tasks until the pool is closed or gone, without keeping a finished task alive; then end the next thread."""
    while isinstance(task := tasks.get(), Task):
        _do(task)
        del task
        idle.put(None)
    tasks.put(None)


def _do(task: Task[T, Result]) -> None:
    if (call := task.call) is None:
        return
    task.call = None
    outcomes, (work, item) = task.outcomes, call
    del call
    try:
        outcome = work(item), None
    except BaseException as error:
        outcomes.put((None, error))
        del task, outcomes, work, item  # the error's traceback refers to these
    else:
        outcomes.put(outcome)


# Overlapping two steps of work: the first step of an item runs during the second step of the item before.

Begun = TypeVar("Begun")


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
