"""The server in a process of its own, and a client for it that needs nothing but the standard library."""

import contextlib
import http.client
import json
import math
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from resource import RLIMIT_NOFILE, setrlimit
from typing import Any

from bertscore_onnx.concurrency.closeable import Closeable
from harness.checkout import environment

STARTING_SECONDS = 60
ENDPOINT = "/v1/score"


class Server(Closeable):
    """`bertscore-onnx serve`."""

    def __init__(self, bundle: Path, *options: str, open_files: int | None = None) -> None:
        """Start it, and wait until it listens.

        Args:
            bundle: the model to serve.
            options: of the command.
            open_files: how many files and sockets it may have open; the limit of this process by default.

        Raises:
            RuntimeError: it ended, or does not listen in time.
        """
        self._log = tempfile.NamedTemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- close() closes it
        self.process = subprocess.Popen(  # noqa: S603 -- our own code
            [sys.executable, "-m", "bertscore_onnx", "serve", "--model", str(bundle), "--port", "0", *options],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env=environment(),
            preexec_fn=partial(setrlimit, RLIMIT_NOFILE, (open_files, open_files)) if open_files else None,
        )
        self.port = self._await_port()

    def text(self, path: str) -> str:
        """Return what a GET answers."""
        with Client(self.port) as client:
            return client.get(path)

    def metric(self, name: str) -> float:
        """Return a metric, added up over its labels; 0 where there is none yet."""
        values = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", self.text("/metrics"), flags=re.MULTILINE)
        return sum(map(float, values))

    def requests_left(self, limit: float) -> float:
        """Wait until no request is in progress; return how many are when there is none, or the time is over."""
        until = time.monotonic() + limit
        left = math.inf
        while left and time.monotonic() < until:
            with contextlib.suppress(OSError, http.client.HTTPException):
                left = self.metric("bertscore_active_requests")
            time.sleep(0.05)  # between two looks, until the limit
        return left

    def log(self) -> str:
        """Return what it has said so far."""
        return Path(self._log.name).read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Tell it to stop."""
        self.process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End it at once, if it still runs."""
        self.process.kill()
        self.process.wait()
        self._log.close()

    def _await_port(self) -> int:
        until = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            if found := re.search(r"Serving .* on http://[^:]+:(\d+)", self.log()):
                return int(found[1])
            time.sleep(0.05)  # between two looks into the log, until STARTING_SECONDS are over
        said = self.log()
        self.close()
        raise RuntimeError(f"The server does not listen. It said: {said[-2000:]}")


class Client(Closeable):
    """One connection, kept open, and opened again where the server closed it."""

    def __init__(self, port: int, timeout: float = 60) -> None:
        """Prepare a connection."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def post(self, content: bytes, path: str = ENDPOINT, media_type: str = "application/json") -> tuple[int, bytes]:
        """Send a body; return status and answer.

        Raises:
            OSError, http.client.HTTPException: there was no answer.
        """
        self._connection.request("POST", path, content, {"Content-Type": media_type})
        with contextlib.closing(self._connection.getresponse()) as response:
            return response.status, response.read()

    def get(self, path: str) -> str:
        """Return what a GET answers."""
        self._connection.request("GET", path)
        with contextlib.closing(self._connection.getresponse()) as response:
            return response.read().decode()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()


def body_of(candidates: list[str], references: list[str]) -> bytes:
    """Return the body of a request that scores these pairs."""
    pairs: list[dict[str, Any]] = [
        {"candidate": candidate, "reference": reference}
        for candidate, reference in zip(candidates, references, strict=True)
    ]
    return json.dumps({"pairs": pairs}).encode()
