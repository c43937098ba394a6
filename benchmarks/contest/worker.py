"""A process that answers requests, one at a time."""

import json
import subprocess
import sys
import tempfile
from typing import Any

from bertscore_onnx.concurrency.closeable import Closeable
from harness.checkout import ROOT, environment


class ContestantError(RuntimeError):
    """A contestant could not do what it was asked to."""


class Worker(Closeable):
    """A process that answers requests; see `benchmarks.contest.worker_process`."""

    def __init__(self, python: str = sys.executable) -> None:
        """Start the process.

        Raises:
            ContestantError: there is no such interpreter.
        """
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- close() closes it
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- our own module
                [python, "-m", "benchmarks.contest.worker_process"],
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
