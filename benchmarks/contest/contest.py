"""Several contestants do the same work in turn, each in a process of its own, one at a time."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.contest import process
from harness.processes import Child, ChildError, peak_memory

REST = 0.05  # seconds before each run, in which the idle thread pools of the previous process stop spinning


@dataclass(frozen=True, slots=True)
class Contestant:
    """An engine, with the model that it loads and the options."""

    label: str
    engine: str
    path: str  # of a bundle or a model folder
    options: Mapping[str, Any] = field(default_factory=dict)
    python: str = sys.executable  # the interpreter of the environment in which the engine is installed


@dataclass(slots=True)
class Results:
    """The measurements of one contestant."""

    rounds: list[list[float]] = field(default_factory=list)  # for each round the seconds of its calls
    scores: list[float] = field(default_factory=list)
    peak_memory: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)  # the share of each stage, if profiled
    encode_seconds: float = 0.0
    running_threads: list[int] = field(default_factory=list)  # of the scoring processes, sampled, if watched
    process_memory: float = 0.0  # the most memory that one of these processes held, in MB

    @property
    def round_seconds(self) -> list[float]:
        """The seconds of each round, if a round is one call."""
        return [calls[0] for calls in self.rounds]


@dataclass(frozen=True, slots=True)
class Contest:
    """The same work for several contestants."""

    contestants: Mapping[str, Contestant]  # by name
    workload: str  # a key of `benchmarks.contest.engines.WORKLOADS`
    arguments: Mapping[str, Mapping[str, Any]]  # of the workload, for each contestant
    profiled: Sequence[str] = ()  # contestants whose stages are timed, in a run after all others
    watched: Sequence[str] = ()  # contestants whose processes are watched, in such a run
    warm_up: bool = True  # do the work once before the rounds

    def run(self, rounds: int) -> tuple[dict[str, Results], dict[str, str]]:
        """Let the contestants work in turn, each round in the reverse order of the last.

        Returns the results of each contestant, and the reasons of those that failed.
        """
        workers: dict[str, Child] = {}
        results = {name: Results() for name in self.contestants}
        failed: dict[str, str] = {}
        order = [*results]
        try:
            for step in (self._load, *[self._run_once] * rounds, self._finish):
                order.reverse()  # a later contestant may find the processor at a higher clock rate
                for name in [name for name in order if name not in failed]:
                    try:
                        step(name, workers, results[name])
                    except ChildError as error:
                        failed[name] = error.reason
        finally:
            for worker in workers.values():
                worker.close()
        return {name: result for name, result in results.items() if name not in failed}, failed

    def _load(self, name: str, workers: dict[str, Child], results: Results) -> None:
        contestant = self.contestants[name]
        worker = workers[name] = Child(contestant.python, hides_stderr=True)
        worker.do(process.load, contestant.engine, contestant.path, dict(contestant.options))
        worker.do(process.prepare, self.workload, dict(self.arguments[name]))
        if self.warm_up:
            worker.do(process.run)

    def _run_once(self, name: str, workers: dict[str, Child], results: Results) -> None:
        time.sleep(REST)
        results.rounds.append(workers[name].do(process.run))

    def _finish(self, name: str, workers: dict[str, Child], results: Results) -> None:
        results.scores = workers[name].do(process.scores)
        results.peak_memory = workers[name].do(peak_memory)
        if name in self.profiled:
            seconds, results.stages = workers[name].do(process.profile)
            results.encode_seconds = seconds * results.stages["encode"]
        if name in self.watched:
            results.running_threads, results.process_memory = workers[name].do(process.watch)
