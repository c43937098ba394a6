"""Several contestants do the same work in turn, each in a process of its own, one at a time.

A process imports an engine only when it is loaded, so that its memory is that of its engine.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.processes import Child, ChildError, peak_memory
from harness.results import Case, Goal, Skipped, Timing, figure, percentile, ratio

PEER = "bert-score"  # whose scores those of the others are compared with
# seconds before each run, in which the idle thread pools of the previous process stop spinning
REST = 0.05


@dataclass(frozen=True, slots=True)
class Contestant:
    """An engine, with the model that it loads, its options and what only it gets of the work."""

    label: str
    engine: str
    # of a bundle or a model folder, which is made now; may raise `ChildError`
    path: Callable[[], Path]
    options: Mapping[str, Any] = field(default_factory=dict)
    work: Mapping[str, Any] = field(default_factory=dict)
    # the interpreter of the environment in which the engine is installed
    python: Path = Path(sys.executable)


@dataclass(slots=True)
class Results:
    """The measurements of one contestant."""

    # for each round the seconds of its calls
    rounds: list[list[float]] = field(default_factory=list)
    # for each round the processor seconds of a call, over all cores
    processor_seconds: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    peak_memory: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)  # the share of each stage, if profiled
    encode_seconds: float = 0.0

    @property
    def seconds(self) -> list[float]:
        """The seconds of each round; of a round of many calls, their median."""
        return [percentile(calls, 50) for calls in self.rounds]


@dataclass(frozen=True, slots=True)
class Contest:
    """The same work for several contestants, whose results are added to a case."""

    case: Case
    contestants: Mapping[str, Contestant]  # by name
    workload: str  # a key of `benchmarks.engines.WORKLOADS`
    work: Mapping[str, Any]  # the arguments of the workload
    pairs: int  # in a call
    profiled: str = ""  # the contestant whose stages are timed, in a run after all others
    warm_up: bool = True  # do the work once before the rounds
    # of the contestants that did not fail
    results: dict[str, Results] = field(default_factory=dict)

    def run(self, rounds: int, left_out: Sequence[str] = ()) -> "Contest":
        """Let the contestants work in turn, each round in the reverse order of the last; skip those
        that fail.
        """
        workers: dict[str, Child] = {}
        self.results.update({name: Results() for name in self.contestants if name not in left_out})
        order = [*self.results]
        failed = {name: "left out by --skip" for name in self.contestants if name in left_out}
        try:
            for step in (self._load, *[self._run_once] * rounds, self._finish):
                order.reverse()  # a later contestant may find the processor at a higher clock rate
                for name in [name for name in order if name in self.results]:
                    try:
                        step(name, workers, self.results[name])
                    except ChildError as error:
                        failed[name] = error.reason
                        del self.results[name]
        finally:
            for worker in workers.values():
                worker.close()
        self.case.skipped += [
            Skipped(one.label, failed[name])
            for name, one in self.contestants.items()
            if name in failed
        ]
        self.case.timings += [self._timing(name, result) for name, result in self.results.items()]
        return self

    def compare(self, ours: str, theirs: str, goal: float | None = None, name: str = "") -> None:
        """Add to the case how many times faster one contestant is than another, if neither
        failed.
        """
        if {ours, theirs} <= self.results.keys():
            name = (
                name or f"{self.contestants[ours].label}, against {self.contestants[theirs].label}"
            )
            our, their = self.results[ours].seconds, self.results[theirs].seconds
            self.case.figures.append(ratio(name, our, their, None if goal is None else Goal(goal)))

    def add_stages(self, flops: float | None = None, goal: float | None = None) -> None:
        """Add to the case the stages of the profiled contestant, and if `flops` are given the rate
        of the model.

        `goal` is the largest percentage of the time that may pass outside the model.
        """
        if result := self.results.get(self.profiled):
            self.case.stages = result.stages
            if flops is not None:
                outside = 100 * (1 - result.stages["encode"])
                target = None if goal is None else Goal(goal, at_most=True)
                self.case.figures.append(
                    figure("our time outside the model", "%", [outside], target)
                )
                self.case.encode_rate = flops / result.encode_seconds

    def _timing(self, name: str, result: Results) -> Timing:
        difference = None
        peer = self.results.get(PEER)
        if peer and name != PEER and result.scores:
            difference = max(
                abs(our - their) for our, their in zip(result.scores, peer.scores, strict=True)
            )
        rate = self.pairs / statistics.median(result.seconds)
        return Timing(
            self.contestants[name].label,
            result.seconds,
            result.processor_seconds,
            rate,
            result.peak_memory,
            difference,
        )

    def _load(self, name: str, workers: dict[str, Child], results: Results) -> None:
        contestant = self.contestants[name]
        path = str(contestant.path())
        worker = workers[name] = Child(str(contestant.python), hides_stderr=True)
        work = {**self.work, **contestant.work}
        worker.do(load, contestant.engine, path, dict(contestant.options), self.workload, work)
        if self.warm_up:
            worker.do(run)

    def _run_once(self, name: str, workers: dict[str, Child], results: Results) -> None:
        time.sleep(REST)
        seconds, processor_seconds, results.scores = workers[name].do(run)
        results.rounds.append(seconds)
        results.processor_seconds.append(processor_seconds)

    def _finish(self, name: str, workers: dict[str, Child], results: Results) -> None:
        results.peak_memory = workers[name].do(peak_memory)
        if name == self.profiled:
            on_cpu = self.contestants[name].options.get("device", "cpu") == "cpu"
            results.encode_seconds, results.stages = workers[name].do(profile, on_cpu)


# --- in the process of a contestant ---

_contestant = SimpleNamespace(work=None)  # of this process


def load(
    engine: str, path: str, options: dict[str, Any], workload: str, work: dict[str, Any]
) -> None:
    """Load an engine, and set the work to do."""
    from benchmarks.engines import ENGINES, WORKLOADS

    _contestant.work = partial(WORKLOADS[workload], ENGINES[engine](path, **options), **work)


def run() -> tuple[list[float], float, list[float]]:
    """Do the work once; return the seconds of each call, its mean processor seconds, and each F."""
    begin = time.process_time()
    seconds, scores = _contestant.work()
    return seconds, (time.process_time() - begin) / len(seconds), scores


def profile(on_cpu: bool) -> tuple[float, dict[str, float]]:
    """Do the work once; return the seconds of the model, and the share of each stage."""
    from benchmarks import stages

    return stages.profile(_contestant.work, on_cpu=on_cpu)
