"""Several contestants do the same work in turn, each in a process of its own, one at a time."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.contest.worker import ContestantError, Worker

REST = 0.05
"""Seconds before each run, in which the thread pools of the process that ran before stop spinning."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """An engine, what it loads and how."""

    label: str
    engine: str
    path: str
    """A bundle, or a model folder."""

    options: Mapping[str, Any] = field(default_factory=dict)
    python: str = sys.executable
    """The interpreter of the environment that the engine is installed in."""


@dataclass(slots=True)
class Results:
    """What one contestant did."""

    rounds: list[list[float]] = field(default_factory=list)
    """For each round the seconds of its calls."""

    scores: list[float] = field(default_factory=list)
    peak_memory: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    """The share of each stage, where it was asked for."""

    encode_seconds: float = 0.0
    running_threads: list[int] = field(default_factory=list)
    """Of the processes that score, at many looks, where it was asked for."""

    process_memory: float = 0.0
    """The most memory that one of these processes held, in MB."""


@dataclass(frozen=True, slots=True)
class Contest:
    """The same work for several contestants."""

    contestants: Mapping[str, Contestant]
    """By name."""

    workload: str
    """A name out of `benchmarks.contest.workloads`."""

    arguments: Mapping[str, Mapping[str, Any]]
    """The work of each contestant."""

    profiled: Sequence[str] = ()
    """Those whose stages are timed, in one more run after all others."""

    watched: Sequence[str] = ()
    """Those whose processes are watched, in one more run."""

    warm_up: bool = True
    """Whether to do the work once before the rounds."""

    def run(self, rounds: int) -> tuple[dict[str, Results], dict[str, str]]:
        """Let the contestants do their work in turn, round after round, each round in the reverse order of the last.

        Returns:
            The results of each contestant, and of those that failed the reason.
        """
        workers: dict[str, Worker] = {}
        results = {name: Results() for name in self.contestants}
        failed: dict[str, str] = {}
        order = [*results]
        try:
            for step in (self._load, *[self._run_once] * rounds, self._finish):
                order.reverse()  # who comes later may find the processor awake
                for name in [name for name in order if name not in failed]:
                    try:
                        step(name, workers, results[name])
                    except ContestantError as error:
                        failed[name] = str(error)
        finally:
            for worker in workers.values():
                worker.close()
        return {name: one for name, one in results.items() if name not in failed}, failed

    def _load(self, name: str, workers: dict[str, Worker], results: Results) -> None:
        one = self.contestants[name]
        workers[name] = Worker(one.python)
        workers[name].ask("load", engine=one.engine, path=one.path, options=dict(one.options))
        workers[name].ask("prepare", workload=self.workload, arguments=dict(self.arguments[name]))
        if self.warm_up:
            workers[name].ask("run")

    def _run_once(self, name: str, workers: dict[str, Worker], results: Results) -> None:
        time.sleep(REST)  # or the threads of the process before count in
        results.rounds.append(workers[name].ask("run"))

    def _finish(self, name: str, workers: dict[str, Worker], results: Results) -> None:
        results.scores = workers[name].ask("scores")
        results.peak_memory = workers[name].ask("peak_memory")
        if name in self.profiled:
            seconds, results.stages = workers[name].ask("profile")
            results.encode_seconds = seconds * results.stages["encode"]
        if name in self.watched:
            results.running_threads, results.process_memory = workers[name].ask("watch")
