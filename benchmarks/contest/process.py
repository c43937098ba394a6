"""One contestant in a process of its own: its engine, its work, and their measurements.

Imports an engine only when it is loaded, so that the memory of the process is that of its engine.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.processes import memory_mb

SAMPLE_SECONDS = 0.2
PROC = Path("/proc")

_contestant = SimpleNamespace(scorer=None, work=None, scores=[])  # of this process


def load(engine: str, path: str, options: dict[str, Any]) -> None:
    """Load an engine."""
    from benchmarks.contest.engines import ENGINES

    _contestant.scorer = ENGINES[engine](path, **options)


def prepare(workload: str, arguments: dict[str, Any]) -> None:
    """Set the work to do."""
    from benchmarks.contest.engines import WORKLOADS

    _contestant.work = partial(WORKLOADS[workload], _contestant.scorer, **arguments)


def run() -> list[float]:
    """Do the work once; return the seconds of each call."""
    seconds: list[float]
    seconds, _contestant.scores = _contestant.work()
    return seconds


def scores() -> list[float]:
    """Return the F of each pair of the last run."""
    values: list[float] = _contestant.scores
    return values


def profile() -> tuple[float, dict[str, float]]:
    """Do the work once; return the seconds, and the share of each stage."""
    from benchmarks.contest import stages

    return stages.profile(_contestant.work)


def watch() -> tuple[list[int], float]:
    """Do the work once and sample the processes that score meanwhile, this one and its descendants; on Linux.

    Returns the number of running or runnable threads in each sample with any, and the most memory that one of the
    processes ever held, in MB.
    """
    is_over = threading.Event()
    threads: list[int] = []
    peaks = [0.0]

    def sample() -> None:
        while not is_over.wait(SAMPLE_SECONDS):
            scoring = [*_scoring_processes()]
            peaks.extend(memory_mb("VmHWM", pid) for pid in scoring)
            if running := sum(map(_running_threads, scoring)):
                threads.append(running)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        _contestant.work()
    finally:
        is_over.set()
        sampler.join()
    return threads, max(peaks)


def _scoring_processes() -> Iterator[int]:
    """Yield this process and its descendants, if they have loaded ONNX Runtime."""
    children = defaultdict(list)
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            children[int(_stat(folder)[1])].append(int(folder.name))
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        waiting += children[pid]
        with suppress(OSError):
            if "onnxruntime" in (PROC / str(pid) / "maps").read_text(encoding="utf-8", errors="replace"):
                yield pid


def _running_threads(pid: int) -> int:
    with suppress(OSError):
        return sum(_stat(thread)[0] == "R" for thread in (PROC / str(pid) / "task").iterdir())
    return 0


def _stat(folder: Path) -> list[str]:
    """Return the state of a process or a thread, the id of its parent, and more."""
    return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
