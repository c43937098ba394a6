"""How many threads compute, and how much memory a process holds, of those that score: this one and all below it."""

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

PAUSE = 0.2
"""Seconds between two looks."""

PROC = Path("/proc")
LIBRARY = "onnxruntime"


def watch(work: Callable[[], object]) -> tuple[list[int], float]:
    """Do some work and look at the processes meanwhile; on Linux.

    Returns:
        The threads that ran, or could have, at each look at which there were any; and the most memory that one of the
        processes ever held, in MB.
    """
    is_over = threading.Event()
    threads: list[int] = []
    peaks = [0.0]

    def look() -> None:
        while not is_over.wait(PAUSE):
            found = [*_scoring()]
            peaks.extend(map(_peak_memory, found))
            if running := sum(map(_running_threads, found)):
                threads.append(running)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        work()
    finally:
        is_over.set()
        watcher.join()
    return threads, max(peaks)


def _scoring() -> Iterator[int]:
    """Yield the processes from this one down that have loaded ONNX Runtime."""
    children = defaultdict(list)
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            children[int(_stat(folder)[1])].append(int(folder.name))
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        waiting += children[pid]
        with suppress(OSError):
            if LIBRARY in (PROC / str(pid) / "maps").read_text(encoding="utf-8", errors="replace"):
                yield pid


def _running_threads(pid: int) -> int:
    with suppress(OSError):
        return sum(_stat(thread)[0] == "R" for thread in (PROC / str(pid) / "task").iterdir())
    return 0


def _peak_memory(pid: int) -> float:
    with suppress(OSError):
        for line in (PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def _stat(folder: Path) -> list[str]:
    """Return the state of a process or a thread, the number of its parent, and more."""
    try:
        return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except ProcessLookupError as error:  # it ended meanwhile
        raise OSError from error
