"""The server in a process of its own, a client for it from the standard library, and a watch on both."""

import contextlib
import http.client
import math
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from resource import RLIMIT_NOFILE, setrlimit

from bertscore_onnx.concurrency.closeable import Closeable
from harness.processes import environment, resident_mb
from reliability.traffic import JSON, SCORE

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
        """Start it with options of the command, and wait until it listens; raise `RuntimeError` if it does not.

        `open_files` limits its files and sockets; by default the limit of this process holds.
        """
        self._log = tempfile.NamedTemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- close() closes it
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bertscore_onnx", "serve", "--model", str(bundle), "--port", "0", *options],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env=environment(),
            preexec_fn=partial(setrlimit, RLIMIT_NOFILE, (open_files, open_files)) if open_files else None,
        )
        self.port = self._await_port()

    def get(self, path: str) -> str:
        """Return the answer to a GET."""
        with Client(self.port) as client:
            return client.get(path)

    def metric(self, name: str) -> float:
        """Return a metric, summed over its labels; 0 if there is none yet."""
        values = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", self.get("/metrics"), flags=re.MULTILINE)
        return sum(map(float, values))

    def requests_left(self, limit: float) -> float:
        """Wait up to `limit` seconds until no request is in progress; return how many there still are."""
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
        """Wait for the end; return the seconds since `begun` and the exit status, infinity and None after `limit`."""
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

    def post(self, content: bytes, path: str = SCORE, media_type: str = JSON) -> tuple[int, bytes]:
        """Send a body; return the status and the answer, or raise `OSError` or `http.client.HTTPException`."""
        self._connection.request("POST", path, content, {"Content-Type": media_type})
        with contextlib.closing(self._connection.getresponse()) as response:
            return response.status, response.read()

    def get(self, path: str) -> str:
        """Return the answer to a GET."""
        self._connection.request("GET", path)
        with contextlib.closing(self._connection.getresponse()) as response:
            return response.read().decode()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Watch(Closeable):
    """A thread that requests the server's health, each time over a new connection, and one that reads its memory."""

    def __init__(self, server: Server) -> None:
        """Start to watch."""
        self._server = server
        self._pid = server.process.pid
        self._begun_mb = self._peak_mb = resident_mb(self._pid)
        self.slowest = 0.0  # seconds of the slowest answer of `/health/live`
        self.unanswered = 0  # requests for it without an answer
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._probe, self._sample)]
        for thread in self._threads:
            thread.start()

    @property
    def growth_mb(self) -> float:
        """The growth of the server's memory from the start of the watch to its peak."""
        return self._peak_mb - self._begun_mb

    def kept_mb(self) -> float:
        """Return the growth of the server's memory by now; wait for `RETURN_SECONDS` if it is large."""
        until = time.monotonic() + RETURN_SECONDS
        while (kept := resident_mb(self._pid) - self._begun_mb) > KEPT_MB and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return kept

    def close(self) -> None:
        """Stop watching."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _probe(self) -> None:
        while not self._is_over.wait(_PROBE_SECONDS):
            begun = time.monotonic()
            try:
                with Client(self._server.port, _PROBE_LIMIT) as client:
                    self.unanswered += '"live"' not in client.get("/health/live")
            except (OSError, http.client.HTTPException):
                self.unanswered += 1
            self.slowest = max(self.slowest, time.monotonic() - begun)

    def _sample(self) -> None:
        while not self._is_over.wait(_SAMPLE_SECONDS):
            self._peak_mb = max(self._peak_mb, resident_mb(self._pid))
