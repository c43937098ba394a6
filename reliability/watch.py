"""Watches a server while something is done to it: how fast it says that it lives, and how much memory it holds."""

import http.client
import threading
import time

from bertscore_onnx.concurrency.closeable import Closeable
from reliability.memory import resident_mb
from reliability.server import Client, Server

HEALTH_SECONDS = 1.0
"""The bound of an answer of `/health/live`."""

MEMORY_MB = 700.0
"""The bound of what memory grows by, whatever clients do."""

KEPT_MB = 150.0
"""How much of that may be kept afterwards."""

RETURN_SECONDS = 60.0
"""Within which the rest is given back."""

SLOT_SECONDS = 10.0
"""After the last client has gone, when no request may be in progress any more."""

_PROBE_SECONDS = 0.07
_PROBE_LIMIT = 20.0
_SAMPLE_SECONDS = 0.02


class Watch(Closeable):
    """A thread that asks for the server's health, over a fresh connection each time, and one that reads its memory."""

    def __init__(self, server: Server) -> None:
        """Start to watch."""
        self._server = server
        self._pid = server.process.pid
        self._begun_mb = self._peak_mb = resident_mb(self._pid)
        self.slowest = 0.0
        """Seconds of the slowest answer of `/health/live`."""

        self.unanswered = 0
        """How often there was none."""

        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._probe, self._sample)]
        for thread in self._threads:
            thread.start()

    @property
    def growth_mb(self) -> float:
        """How much more memory the server held at its peak than when the watch began."""
        return self._peak_mb - self._begun_mb

    def kept_mb(self, limit: float = RETURN_SECONDS) -> float:
        """Return how much more memory it holds than when the watch began, as soon as that is little or time is over."""
        until = time.monotonic() + limit
        while (kept := resident_mb(self._pid) - self._begun_mb) > KEPT_MB and time.monotonic() < until:
            time.sleep(_PROBE_SECONDS)  # between two looks, until the limit
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
