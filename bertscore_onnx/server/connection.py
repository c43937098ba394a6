"""One connection: what uvicorn does with it, and bounds that uvicorn does not have.

A client could otherwise hold a connection for ever by a request head that never comes whole, or by not taking a
finished answer; open more connections than the system allows; or keep the event loop from everybody else with a body
in chunks of one byte or a head of thousands of lines.
"""

import asyncio
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bertscore_onnx.server.access_log import log_access
from bertscore_onnx.server.requests.record import RequestRecord

READ_BYTES = 16_384
"""Bytes that are read of a connection in one turn of the event loop."""

COSTLY_SECONDS = 0.002
"""What reading that much costs at most of a body as clients send it, several times over."""

COSTLY_SHARE = 4
"""Costly reading, of all connections together, gets the fourth part of the event loop's time."""


class ServerConfig(uvicorn.Config):
    """What all connections of a server share."""

    def __init__(self, app: Any, *, max_connections: int, **options: Any) -> None:
        """Take options as uvicorn does, and the most connections at a time."""
        super().__init__(app, http=Connection, **options)
        self.max_connections = max_connections
        self.next_costly = 0.0
        """When costly reading may go on, by the loop's clock."""


class Connection(H11Protocol):
    """A connection; `timeout_keep_alive` bounds it from its beginning, and not only after an answer."""

    config: ServerConfig

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look whether anything happens, unless there are too many connections."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        self._next_look = self.loop.call_later(self.timeout_keep_alive, self._look, None)
        if len(self.connections) > self.config.max_connections:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; where that was costly, let others go first."""
        begun = time.thread_time()
        super().data_received(data)
        cost = time.thread_time() - begun
        if cost > COSTLY_SECONDS and not self.transport.is_closing():
            self.config.next_costly = max(self.config.next_costly, self.loop.time()) + COSTLY_SHARE * cost
            self.transport.pause_reading()
            self.loop.call_at(self.config.next_costly, self._read_on)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, and take note of it as of any other request."""
        super().send_400_response(msg)
        record = RequestRecord(status=400, reason="malformed_http")
        self.app.state.metrics.note("other", record)
        log_access({"client": self.client, "method": "-", "raw_path": b"-"}, record)

    def _read_on(self) -> None:
        if not self.flow.read_paused:  # by uvicorn, for reasons of its own
            self.transport.resume_reading()

    def _look(self, before: object) -> None:
        """Break the connection off where it has had nothing to answer, or has been closing, since the last look."""
        is_idle = self.cycle is None or self.cycle.response_complete
        now = (self.transport.is_closing(), self.cycle)
        if now == before and (is_idle or self.transport.is_closing()):
            self.transport.abort()
            return
        self._next_look = self.loop.call_later(self.timeout_keep_alive, self._look, now)
