"""One connection: what uvicorn does with it, and bounds that uvicorn does not have.

A client could otherwise hold a connection for ever by a request head that never comes whole, by not taking a finished
answer, or by sending on after a refusal; open more connections than the system allows; or keep the event loop from
everybody else with a body in chunks of one byte or a head of thousands of lines.
"""

import asyncio
import socket
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bertscore_onnx.server.access_log import log_access
from bertscore_onnx.server.requests.record import RequestRecord

READ_BYTES = 16_384
"""Bytes that are read of a connection in one turn of the event loop."""

SEND_BYTES = 131_072
"""Bytes of answers that the system keeps for a client; it would keep some megabytes by itself."""

LINGER_SECONDS = 1.0
"""How long a client may send on after its request was refused, so that it sees the answer."""

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
        self.connections: dict[Connection, None] = {}
        """Those that are open, the oldest first."""
        self.next_costly = 0.0
        """When costly reading may go on, by the loop's clock."""


class Connection(H11Protocol):
    """A connection; `timeout_keep_alive` bounds it from its beginning, and not only after an answer."""

    config: ServerConfig

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look whether anything happens; where there are too many connections, break off an idle one."""
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        self._next_look = self.loop.call_later(self.timeout_keep_alive, self._look, None)
        others = self.config.connections
        if len(others) >= self.config.max_connections:
            idle = next((other for other in others if other.is_idle), self)
            idle.transport.abort()
            others.pop(idle, None)
        if not transport.is_closing():
            others[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._next_look.cancel()
        self.config.connections.pop(self, None)
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to answer."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Read; where that was costly, let others go first."""
        begun = time.thread_time()
        super().data_received(data)
        cost = time.thread_time() - begun
        if cost > COSTLY_SECONDS and not self.transport.is_closing():
            self.config.next_costly = max(self.config.next_costly, self.loop.time()) + COSTLY_SHARE * cost
            self.transport.pause_reading()
            self.loop.call_at(self.config.next_costly, self._read_on)

    def on_response_complete(self) -> None:
        """Go on with the next request, or end a connection on which the rest of a refused one still comes."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(LINGER_SECONDS, self._end_upload, self.cycle)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, and take note of it as of any other request; one in progress is at its end."""
        if not self.is_idle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer has begun
            self.transport.abort()
        record = RequestRecord(status=400, reason="malformed_http")
        self.app.state.metrics.note("other", record)
        log_access({"client": self.client, "method": "-", "raw_path": b"-"}, record)

    def _read_on(self) -> None:
        if not self.flow.read_paused:  # by uvicorn, for reasons of its own
            self.transport.resume_reading()

    def _end_upload(self, cycle: object) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()

    def _look(self, before: object) -> None:
        """Break the connection off where it has had nothing to answer, or has been closing, since the last look."""
        now = (self.transport.is_closing(), self.cycle)
        if now == before and (self.is_idle or self.transport.is_closing()):
            self.transport.abort()
            return
        self._next_look = self.loop.call_later(self.timeout_keep_alive, self._look, now)
