"""Runs the server until it is told to stop, and then lets it finish what it has begun."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from bertscore_onnx.errors import InputError
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models import Models
from bertscore_onnx.server.request_log import RequestRecord, log_access

# One connection: what uvicorn does with it, and bounds that uvicorn does not have. A client could otherwise hold a
# connection for ever by a request head that never comes whole, by not taking a finished answer, or by sending on
# after a refusal; open more connections than the system allows; or keep the event loop from everybody else with a
# body in chunks of one byte or a head of thousands of lines.


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


_log = logging.getLogger(__name__)

_BACKLOG = 2048
"""Connections that wait to be accepted."""

_OTHER_FILES = 64
"""Open files that are not connections."""

_LAST_SECONDS = 2.0
"""Seconds of the drain time for ending what is not done, and for its answers to be sent; at most half of it."""

_IDLE_SECONDS = 15


class _Server(uvicorn.Server):
    """A server of uvicorn that leaves signals to us: its own way is to die of them, once it is done."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept; uvicorn lets no more connections wait than are accepted at a time."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)


def run(app: Starlette, models: Models, limits: Limits, *, host: str, port: int) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP, then drain; a second signal ends at once.

    While it drains the server still answers, so that a load balancer reads from `/health/ready` that it is to send
    nothing more; requests that score are refused. What has not been scored when the drain time is over fails.

    Args:
        app: the application.
        models: its models.
        limits: its limits.
        host, port: where to listen; port 0 for any that is free.

    Raises:
        InputError: it cannot listen there.
    """
    asyncio.run(_run(app, models, limits, listen(host, port)))


def make_server(app: Starlette, *, idle_seconds: int = _IDLE_SECONDS, max_files: int = 65_536) -> uvicorn.Server:
    """Return a server that leaves signals alone and logs errors only: the middleware writes the access lines.

    Args:
        app: the application.
        idle_seconds: how long a connection may have nothing to answer. It is closed after at most twice that time.
        max_files: how many files this process may have open; connections beyond what that allows are broken off.
    """
    accepted = min(_BACKLOG, max_files // 8)  # in one turn of the event loop, before they are counted
    config = ServerConfig(
        app,
        max_connections=max(max_files - 2 * accepted - _OTHER_FILES, 1),  # as many may be about to be closed
        backlog=accepted,
        timeout_keep_alive=idle_seconds,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    return _Server(config)


async def _run(app: Starlette, models: Models, limits: Limits, listener: socket.socket) -> None:
    admission: Admission = app.state.admission
    server = make_server(app, max_files=_allow_files())
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if told_to_stop.is_set():
            server.force_exit = server.should_exit = True
            admission.abandon()
        told_to_stop.set()

    for number in _stop_signals():
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
    serving = asyncio.create_task(server.serve([listener]))
    host, port = listener.getsockname()[:2]
    names = ", ".join(model.name for model in models)
    _log.info("Serving %s on http://%s:%d", names, f"[{host}]" if ":" in host else host, port)
    waiting = asyncio.create_task(told_to_stop.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    _log.info("Stopping; %d requests are in progress.", admission.active)
    seconds = limits.drain - min(_LAST_SECONDS, limits.drain / 2)
    if not await admission.drain(seconds):
        _log.warning("%d requests were not answered in %g s.", admission.active, seconds)
    await asyncio.to_thread(models.close)
    server.should_exit = True
    await serving
    _log.info("Stopped.")


def end_at_signals() -> None:
    """End this process with status 0 when it is told to stop, as long as `run` does not see to that.

    The first process of a container would otherwise not hear SIGTERM while it loads its models.
    """

    def end(number: int, frame: object) -> None:
        raise SystemExit(0)

    for number in _stop_signals():
        signal.signal(number, end)


def _stop_signals() -> list[signal.Signals]:
    """Return the signals that tell a server to stop; a hang-up only where nobody asked for it to be ignored."""
    signals = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


def _allow_files() -> int:
    """Let this process open as many files as the system allows it; return their number."""
    if os.name != "posix":
        return 1 << 16
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most in (-1, resource.RLIM_INFINITY):
        most = 1 << 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def listen(host: str, port: int) -> socket.socket:
    """Open the socket to listen on; port 0 is any that is free.

    Raises:
        InputError: it cannot be opened.
    """
    with ExitStack() as on_failure:
        try:
            # The protocol is named since asyncio sends small answers without delay only where it is.
            options = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
            family, kind, protocol, _, address = options[0]
            listener = on_failure.enter_context(socket.socket(family, kind, protocol))
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise InputError(
                f"Cannot listen on {host}, port {port}: {error}. Choose others with --host and --port."
            ) from error
        on_failure.pop_all()
    return listener
