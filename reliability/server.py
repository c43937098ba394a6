"""The server in a process of its own, a client for it, and a watch on its health and memory."""

import contextlib
import http.client
import math
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from resource import RLIMIT_NOFILE, setrlimit

from bertscore_onnx.concurrency.closeable import Closeable
from harness.processes import Background, environment, resident_mb
from harness.results import Figure
from reliability.report import at_most, none_of
from reliability.traffic import CLOSED, JSON, NEVER, SCORE

STARTING_SECONDS = 60

HEALTH_SECONDS = 1.0  # the bound of an answer of `/health/live`
MEMORY_MB = 700.0  # the bound of the growth of memory under any traffic
KEPT_MB = 150.0  # the part of the growth that may remain afterwards
RETURN_SECONDS = 60.0  # within which the rest is released
SLOT_SECONDS = 10.0  # after which no request of clients that have gone may be in progress

_LOOK_SECONDS = 0.05
_PROBE_SECONDS = 0.07
_PROBE_LIMIT = 20.0
_SAMPLE_SECONDS = 0.02


class Server(Closeable):
    """`bertscore-onnx serve`."""

    def __init__(self, bundle: Path, *options: str, open_files: int | None = None) -> None:
        """Start it with options of the command, and wait until it listens; raise `RuntimeError` if
        it does not.

        `open_files` limits its files and sockets; by default the limit of this process holds.
        """
        self._log = tempfile.NamedTemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- close() closes it
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bertscore_onnx",
                "serve",
                "--model",
                str(bundle),
                "--port",
                "0",
                *options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env=environment(),
            preexec_fn=partial(setrlimit, RLIMIT_NOFILE, (open_files, open_files))
            if open_files
            else None,
        )
        self.port = self._await_port()

    def get(self, path: str) -> str:
        """Return the answer to a GET."""
        with Client(self.port) as client:
            return client.get(path)

    def status(self, body: bytes, timeout: float = 60) -> int:
        """Return the status of the answer to a request to score pairs, `CLOSED` if there is
        none.
        """
        try:
            with Client(self.port, timeout) as client:
                return client.post(body)
        except (OSError, http.client.HTTPException):
            return CLOSED

    def metric(self, name: str) -> float:
        """Return a metric, summed over its labels; 0 if there is none yet."""
        values = re.findall(
            rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", self.get("/metrics"), flags=re.MULTILINE
        )
        return sum(map(float, values))

    def requests_left(self, limit: float) -> float:
        """Wait up to `limit` seconds until no request is in progress; return how many there still
        are.
        """
        until = time.monotonic() + limit
        left = math.inf
        while left and time.monotonic() < until:
            with contextlib.suppress(OSError, http.client.HTTPException):
                left = self.metric("bertscore_active_requests")
            time.sleep(_LOOK_SECONDS)
        return left

    def log(self) -> str:
        """Return the log so far."""
        return Path(self._log.name).read_text(encoding="utf-8", errors="replace")

    def stop(self) -> float:
        """Send SIGTERM; return the time, by `time.monotonic()`."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return begun

    def wait(self, begun: float, limit: float) -> tuple[float, int | None]:
        """Wait for the end; return the seconds since `begun` and the exit status, infinity and None
        after `limit`.
        """
        try:
            status = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return math.inf, None
        return time.monotonic() - begun, status

    def close(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.wait()
        self._log.close()

    def _await_port(self) -> int:
        until = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            if match := re.search(r"Serving .* on http://[^:]+:(\d+)", self.log()):
                return int(match[1])
            time.sleep(_LOOK_SECONDS)
        log = self.log()
        self.close()
        raise RuntimeError(f"The server does not listen. Its log: {log[-2000:]}")


class Client(Closeable):
    """A connection that is kept open, and opened again if the server has closed it."""

    def __init__(self, port: int, timeout: float = 60) -> None:
        """Prepare a connection."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def post(self, body: bytes) -> int:
        """Send a body to score; return the status, or raise `OSError` or
        `http.client.HTTPException`.
        """
        self._connection.request("POST", SCORE, body, {"Content-Type": JSON})
        with contextlib.closing(self._connection.getresponse()) as response:
            response.read()
            return response.status

    def get(self, path: str) -> str:
        """Return the answer to a GET."""
        self._connection.request("GET", path)
        with contextlib.closing(self._connection.getresponse()) as response:
            return response.read().decode()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Watch(Closeable):
    """Requests the server's health during a block, each time over a new connection, and reads its
    memory.
    """

    def __init__(self, server: Server) -> None:
        """Start to watch."""
        self._server = server
        self._pid = server.process.pid
        self._begun_mb = self._peak_mb = resident_mb(self._pid)
        self.slowest = 0.0  # seconds of the slowest answer of `/health/live`
        self.unanswered = 0  # requests for it without an answer
        self._threads = [
            Background(self._probe, _PROBE_SECONDS),
            Background(self._sample, _SAMPLE_SECONDS),
        ]

    def figures(self, statuses: Counter[int], permitted: tuple[int, ...] = ()) -> list[Figure]:
        """Return the bounds that hold under any traffic, once it is over; `statuses` are those of
        its answers.

        Errors 5xx other than the `permitted` ones are faults of the server.
        """
        broken = sum(
            count for status, count in statuses.items() if status >= 500 and status not in permitted
        )
        besides = f" other than {' and '.join(map(str, permitted))}" if permitted else ""
        left = self._server.requests_left(SLOT_SECONDS)
        log = self._server.log()
        kept = self._kept_mb()
        return [
            at_most("slowest /health/live", self.slowest, "s", HEALTH_SECONDS, of_speed=True),
            none_of("probes of it without an answer", self.unanswered),
            at_most("growth of memory", self._peak_mb - self._begun_mb, "MB", MEMORY_MB),
            at_most(f"of which was kept after {RETURN_SECONDS:g} s", kept, "MB", KEPT_MB),
            none_of(f"answers 5xx{besides}", broken),
            none_of("neither answered nor closed", statuses[NEVER]),
            at_most(f"slots that are taken up {SLOT_SECONDS:g} s afterwards", left, "", 0),
            none_of("tracebacks in the log", log.count("Traceback")),
        ]

    def close(self) -> None:
        """Stop watching."""
        for thread in self._threads:
            thread.close()

    def _kept_mb(self) -> float:
        """Return the growth of the server's memory by now; wait for `RETURN_SECONDS` if it is
        large.
        """
        until = time.monotonic() + RETURN_SECONDS
        while (
            kept := resident_mb(self._pid) - self._begun_mb
        ) > KEPT_MB and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return kept

    def _probe(self) -> None:
        begun = time.monotonic()
        try:
            with Client(self._server.port, _PROBE_LIMIT) as client:
                self.unanswered += '"live"' not in client.get("/health/live")
        except (OSError, http.client.HTTPException):
            self.unanswered += 1
        self.slowest = max(self.slowest, time.monotonic() - begun)

    def _sample(self) -> None:
        self._peak_mb = max(self._peak_mb, resident_mb(self._pid))
