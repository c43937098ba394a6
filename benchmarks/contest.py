"""Several contestants do the same work in turn, each in a process of its own, one at a time."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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


class Worker:
    """A process that answers requests; see `benchmarks.worker`."""

    def __init__(self, python: str = sys.executable) -> None:
        """Start the process."""
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- close() closes it
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

    def __enter__(self) -> Self:
        """Return the worker itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def environment() -> dict[str, str]:
    """Return the variables of a process that imports the library from this checkout, and asks no model hub."""
    folders = [str(ROOT), str(ROOT / "export"), str(ROOT / "models"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def build(builder: str, **arguments: Any) -> Any:
    """Have something made in a process that ends with it; see `benchmarks.builders`."""
    with Worker() as worker:
        return worker.ask("build", builder=builder, arguments=arguments)


def compete(
    contestants: Mapping[str, Contestant],
    workload: str,
    arguments: Mapping[str, Mapping[str, Any]],
    rounds: int,
    profiled: Sequence[str] = (),
    *,
    warm_up: bool = True,
) -> tuple[dict[str, Results], dict[str, str]]:
    """Let contestants do their work, once to warm up and then in so many rounds, one after the other in each.

    Args:
        contestants: by name.
        workload: a name out of `benchmarks.workloads`.
        arguments: the work of each contestant.
        rounds: how often.
        profiled: those whose stages are timed, in one more run after all others.
        warm_up: whether to do the work once before the rounds.

    Returns:
        The results of each contestant, and of those that could not take part the reason.
    """
    results: dict[str, Results] = {}
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for name, one in contestants.items():
            worker = stack.enter_context(Worker(one.python))
            try:
                worker.ask("load", engine=one.engine, path=one.path, options=dict(one.options))
                worker.ask("prepare", workload=workload, arguments=dict(arguments[name]))
                if warm_up:
                    worker.ask("run")
            except ContestantError as error:
                absent[name] = str(error)
                worker.close()
                continue
            workers[name] = worker
            results[name] = Results(scores=worker.ask("scores"))
        for _ in range(rounds):
            for name, worker in workers.items():
                time.sleep(REST)
                results[name].rounds.append(worker.ask("run"))
        for name, worker in workers.items():
            results[name].peak_memory = worker.ask("peak_memory")
            if name in profiled:
                time.sleep(REST)
                seconds, results[name].stages = worker.ask("profile")
                results[name].encode_seconds = seconds * results[name].stages["encode"]
    return results, absent
