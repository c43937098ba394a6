"""One contestant in a process of its own: answers requests, JSON lines on its standard input, on standard output.

Imports no engine, nor what one needs, until it is told which engine to load, so that its memory is the engine's.
"""

import json
import os
import sys
from functools import partial
from typing import Any

from harness.memory import peak_memory


class Contestant:
    """The engine and the work that it was given."""

    def __init__(self) -> None:
        self._scorer: Any = None
        self._work: Any = None
        self._scores: list[float] = []

    def load(self, engine: str, path: str, options: dict[str, Any]) -> None:
        """Load an engine."""
        from benchmarks.contest.engines import ENGINES

        self._scorer = ENGINES[engine](path, **options)

    def prepare(self, workload: str, arguments: dict[str, Any]) -> None:
        """Take the work to do."""
        from benchmarks.contest.workloads import WORKLOADS

        self._work = partial(WORKLOADS[workload], self._scorer, **arguments)

    def run(self) -> list[float]:
        """Do the work once; return the seconds of each call."""
        seconds, self._scores = self._work()
        result: list[float] = seconds
        return result

    def scores(self) -> list[float]:
        """Return the F of each pair of the last run."""
        return self._scores

    def profile(self) -> tuple[float, dict[str, float]]:
        """Do the work once and tell the seconds and the share of each stage."""
        from benchmarks.contest.stages import profile

        return profile(self._work)

    def watch(self) -> tuple[list[int], float]:
        """Do the work once and tell what `benchmarks.contest.scoring_processes` sees of it."""
        from benchmarks.contest.scoring_processes import watch

        return watch(self._work)

    def peak_memory(self) -> float:
        """Return the most memory that this process ever held, in MB."""
        return peak_memory()


def main() -> None:
    """Answer until there are no more requests."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not stand between the replies
    contestant = Contestant()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"value": getattr(contestant, request["do"])(**request["with"])}
        except Exception as error:  # whatever it is, the one who asked has to know
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=replies, flush=True)


if __name__ == "__main__":
    main()
