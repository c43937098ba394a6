"""Several contestants do the same work in turn, each in a process of its own, one at a time."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertscore_onnx.concurrency.closeable import Closeable

ROOT = Path(__file__).parents[1]
REST = 0.05
"""Seconds before each run, in which the thread pools of the process that ran before stop spinning."""


class ContestantError(RuntimeError):
    """A contestant could not do what it was asked to."""


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


class Worker(Closeable):
    """A process that answers requests; see `benchmarks.worker`."""

    def __init__(self, python: str = sys.executable) -> None:
        """Start the process.

        Raises:
            ContestantError: there is no such interpreter.
        """
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- close() closes it
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- our own module
                [python, "-m", "benchmarks.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
                cwd=ROOT,
                env=environment(),
            )
        except OSError as error:
            self._log.close()
            raise ContestantError(f"{python} cannot be started: {error.strerror}") from error

    def ask(self, what: str, **arguments: Any) -> Any:
        """Send a request and wait for its answer.

        Raises:
            ContestantError: it failed; the message says why.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, "with": arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died; its last words are in the log
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            last = self._log.read().strip().split("\n")[-1]
            raise ContestantError(f"its process ended with status {self._process.wait()}: {last}")
        answer = json.loads(line)
        if "error" in answer:
            raise ContestantError(answer["error"])
        return answer["value"]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._log.close()


def environment() -> dict[str, str]:
    """Return the variables of a process that imports the library from this checkout, and asks no model hub."""
    folders = [str(ROOT), str(ROOT / "export"), str(ROOT / "models"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def build(builder: str, **arguments: Any) -> Any:
    """Have something made in a process that ends with it; see `benchmarks.builders`."""
    with Worker() as worker:
        return worker.ask("build", builder=builder, arguments=arguments)


@dataclass(frozen=True, slots=True)
class Contest:
    """The same work for several contestants."""

    contestants: Mapping[str, Contestant]
    """By name."""

    workload: str
    """A name out of `benchmarks.workloads`."""

    arguments: Mapping[str, Mapping[str, Any]]
    """The work of each contestant."""

    profiled: Sequence[str] = ()
    """Those whose stages are timed, in one more run after all others."""

    warm_up: bool = True
    """Whether to do the work once before the rounds."""

    def hold(self, rounds: int) -> tuple[dict[str, Results], dict[str, str]]:
        """Let the contestants do their work in so many rounds, one after the other in each, there and back again.

        Returns:
            The results of each contestant, and of those that failed the reason.
        """
        workers: dict[str, Worker] = {}
        results = {name: Results() for name in self.contestants}
        absent: dict[str, str] = {}
        order = [*results]
        try:
            for step in (self._load, *[self._run] * rounds, self._finish):
                order.reverse()  # who comes later may find the processor awake
                for name in [name for name in order if name not in absent]:
                    try:
                        step(name, workers, results[name])
                    except ContestantError as error:
                        absent[name] = str(error)
        finally:
            for worker in workers.values():
                worker.close()
        return {name: one for name, one in results.items() if name not in absent}, absent

    def _load(self, name: str, workers: dict[str, Worker], results: Results) -> None:
        one = self.contestants[name]
        workers[name] = Worker(one.python)
        workers[name].ask("load", engine=one.engine, path=one.path, options=dict(one.options))
        workers[name].ask("prepare", workload=self.workload, arguments=dict(self.arguments[name]))
        if self.warm_up:
            workers[name].ask("run")

    def _run(self, name: str, workers: dict[str, Worker], results: Results) -> None:
        time.sleep(REST)  # or the threads of the process before count in
        results.rounds.append(workers[name].ask("run"))

    def _finish(self, name: str, workers: dict[str, Worker], results: Results) -> None:
        results.scores = workers[name].ask("scores")
        results.peak_memory = workers[name].ask("peak_memory")
        if name in self.profiled:
            seconds, results.stages = workers[name].ask("profile")
            results.encode_seconds = seconds * results.stages["encode"]
