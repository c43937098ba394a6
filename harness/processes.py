"""Processes that import this checkout: environment, memory, and work with a time limit or in a
thread.
"""

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bertscore_onnx.concurrency.closeable import Closeable

ROOT = Path(__file__).parents[1]
WARM_UP_SECONDS = 120.0

Work = Callable[..., Any]


def environment() -> dict[str, str]:
    """Return the variables of a process that imports the library from this checkout and contacts no
    model hub.
    """
    folders = [
        str(ROOT),
        str(ROOT / "export"),
        str(ROOT / "models"),
        os.environ.get("PYTHONPATH", ""),
    ]
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
    }


def memory_mb(field: str, pid: int | None = None) -> float:
    """Return a field of `/proc/PID/status` in MB, by default of this process; 0 if the process has
    ended.
    """
    with contextlib.suppress(OSError):
        status = Path("/proc", str(pid or "self"), "status").read_text(
            encoding="utf-8", errors="replace"
        )
        for line in status.splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def resident_mb(pid: int | None = None) -> float:
    """Return the memory that a process holds now, in MB; 0 if it has ended."""
    return memory_mb("VmRSS", pid)


def peak_memory() -> float:
    """Return the most memory that this process has ever held, in MB.

    `getrusage` is for macOS only: on Linux its figure survives `exec`, so it may be that of the
    parent.
    """
    if peak := memory_mb("VmHWM"):
        return peak
    import resource  # macOS counts in bytes, and starts again at `exec`

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


class Background(Closeable):
    """A thread that calls a function again and again, with a pause before each call, until it is
    closed.
    """

    def __init__(self, work: Callable[[], object], pause: float = 0.0) -> None:
        """Start the thread."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, args=(work, pause))
        self._thread.start()

    def _repeat(self, work: Callable[[], object], pause: float) -> None:
        while not self._is_over.wait(pause):
            work()

    def close(self) -> None:
        """Wait for the end of the last call."""
        self._is_over.set()
        self._thread.join()


class ChildError(Exception):
    """A function in a process raised an error, crashed or did not end in time, as its message
    explains.
    """

    @property
    def reason(self) -> str:
        """The last line, which for a traceback is the error itself."""
        return str(self).strip().splitlines()[-1]


def call_in_child(work: Work, *arguments: Any, limit: float) -> Any:
    """Call a function in a process of its own, so that its imports stay out of the memory of this
    one.
    """
    with Child() as child:
        return child.do(work, *arguments, limit=limit)


def calls_in_children(
    work: Work,
    arguments: Iterable[tuple[Any, ...]],
    limit: float,
    warm_up: Callable[[], object] = int,
) -> Iterator[Any]:
    """Yield the result of each call, or the `ChildError` of a crash or a hang, after which a new
    process goes on.

    A new process first calls `warm_up`, so that the limit does not include imports.
    """
    child: Child | None = None
    for each in arguments:
        if child is None:
            child = Child()
            child.do(warm_up, limit=WARM_UP_SECONDS)
        try:
            yield child.do(work, *each, limit=limit)
        except ChildError as error:
            child.close()
            child = None
            yield error
    if child:
        child.close()


class Child(Closeable):
    """A process that calls one function after another; a hang or a crash in it is an error here.

    It imports only what the functions need, so its memory is theirs.
    """

    def __init__(self, python: str = sys.executable, *, hides_stderr: bool = False) -> None:
        """Start the process, or raise `ChildError` if there is no such interpreter."""
        self._log = None
        if hides_stderr:
            self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- close() closes it
        self._is_closed = False
        try:
            self._process = subprocess.Popen(
                [python, "-c", "from harness.processes import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                cwd=ROOT,
                env=environment(),
                start_new_session=True,
            )
        except OSError as error:
            if self._log:
                self._log.close()
            raise ChildError(f"{python} cannot be started: {error.strerror}") from error

    def do(self, work: Work, *arguments: Any, limit: float | None = None) -> Any:
        """Call a picklable function in the process and return its result, or raise `ChildError`.

        After a crash, or after `limit` seconds, the process is gone.
        """
        self.begin(work, *arguments)
        return self.result(limit)

    def begin(self, work: Work, *arguments: Any) -> None:
        """Begin a call, whose result has to be fetched before the next one."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the process has died, as `result` will notice
            self._process.stdin.write(pickle.dumps((work, arguments)))
            self._process.stdin.flush()

    def result(self, limit: float | None = None) -> Any:
        """Wait for the result of a call and return it, or raise `ChildError`, as `do` does."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], limit)[0]:
            self.close()
            raise ChildError(f"It hangs: there was no answer in {limit:g} s.")
        try:
            is_fine, answer = pickle.load(self._process.stdout)
        except EOFError:
            # `close` needs the process id
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
            last = self._last_line()
            self.close()
            raise ChildError(
                f"Its process ended with status {self._process.returncode}.{last}"
            ) from None
        if not is_fine:
            raise ChildError(answer)
        return answer

    def close(self) -> None:
        """Kill the process and what it has started, such as a server; a second call does
        nothing.
        """
        if self._is_closed:  # its process id may have been reused by now
            return
        self._is_closed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        if self._log:
            self._log.close()

    def _last_line(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        return " " + self._log.read().strip().split("\n")[-1]


def serve() -> None:
    """Call the functions that come on standard input, until it ends; the main function of a
    `Child`.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # so that nothing that a library prints comes between the replies
    while True:
        try:
            work, arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            reply = pickle.dumps((True, work(*arguments)))
        except Exception:
            reply = pickle.dumps((False, traceback.format_exc()))
        replies.write(reply)
        replies.flush()
