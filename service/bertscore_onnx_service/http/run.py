"""The process of the server, from its start to its end.

It runs until a signal stops it, and then finishes the requests in progress.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, NoReturn

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from bertscore_onnx.errors import InputError
from bertscore_onnx_service.http.admission import Admission
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models
from bertscore_onnx_service.http.request_log import RequestLog

_BACKLOG = 2048
"""Connections that wait to be accepted."""

_OTHER_FILES = 64
"""Open files that are not connections."""

_LAST_SECONDS = 2.0
"""Seconds of the drain time for failing the remaining requests and sending their answers; at most
half of it.
"""

_MARGIN_SECONDS = 0.5
"""Seconds after the drain time in which the process may still end by itself."""

_LOOK_SECONDS = 0.01

_IDLE_SECONDS = 15

_log = logging.getLogger(__name__)


def run(app: Starlette, models: Models, limits: Limits, *, host: str, port: int) -> NoReturn:
    """Serve until SIGTERM, SIGINT or SIGHUP, drain, and end the process.

    A second signal ends the drain at once.

    While the server drains it still answers, so that a load balancer learns from `/health/ready` to
    send no more; requests to score are refused. What has not been scored when the drain time is
    over fails.
    """
    listener = listen(host, port)
    _end_after_drain(limits.drain)
    asyncio.run(_run(app, models, limits, listener))
    _end()


def _end_after_drain(seconds: float) -> None:
    """End the process when the drain time after a signal is over, even if the main thread is inside
    native code.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    # Python writes to it when a signal arrives
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    def wait_and_end() -> None:
        with receiver, sender:
            receiver.recv(1)
            time.sleep(min(seconds + _MARGIN_SECONDS, threading.TIMEOUT_MAX))
            _end()

    threading.Thread(target=wait_and_end, name="bertscore-end", daemon=True).start()


def _end() -> NoReturn:
    """End without exit handlers, which would wait for threads in native code.

    Log lines are written already.
    """
    os._exit(0)


async def _run(app: Starlette, models: Models, limits: Limits, listener: socket.socket) -> None:
    admission: Admission = app.state.admission
    server = make_server(app, max_files=_raise_file_limit())
    is_stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if is_stopping.is_set():
            server.force_exit = server.should_exit = True
            admission.cancel_drain()
        is_stopping.set()

    for number in _stop_signals():
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
    serving = asyncio.create_task(server.serve([listener]))
    host, port = listener.getsockname()[:2]
    names = ", ".join(models.names)
    _log.info("Serving %s on http://%s:%d", names, f"[{host}]" if ":" in host else host, port)
    waiting = asyncio.create_task(is_stopping.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    _log.info("Stopping; %d requests are in progress.", admission.active)
    last = min(_LAST_SECONDS, limits.drain / 2)
    seconds = limits.drain - last
    if not await admission.drain(seconds):
        _log.warning("%d requests were not answered in %g s.", admission.active, seconds)
    await asyncio.to_thread(models.close)
    await _stop_listening(server, listener)
    # for the next request of each connection: its answer closes the connection
    until = loop.time() + last / 2
    while server.server_state.connections and not server.should_exit and loop.time() < until:
        await asyncio.sleep(_LOOK_SECONDS)
    server.should_exit = True
    await serving
    _log.info("Stopped.")


async def _stop_listening(server: uvicorn.Server, listener: socket.socket) -> None:
    """Accept the connections that wait, and then close the listener."""
    loop = asyncio.get_running_loop()
    waiting = []
    with suppress(NotImplementedError, BlockingIOError):  # the former on Windows
        loop.remove_reader(listener)
        await asyncio.sleep(_LOOK_SECONDS)  # for asyncio to begin accepted requests
        while True:
            waiting.append(listener.accept()[0])
    # at once, since the system resets the connections that wait by then
    for listening in server.servers:
        listening.close()
    config = server.config
    state = server.server_state
    make = partial(config.http_protocol_class, config, state, {})  # type: ignore[call-arg]
    for connection in waiting:
        await loop.connect_accepted_socket(make, connection)


def end_at_signals() -> None:
    """End this process with status 0 on a signal to stop.

    This holds until `run` handles these signals.

    The first process of a container would otherwise ignore SIGTERM while it loads its models.
    """

    def end(number: int, frame: object) -> None:
        raise SystemExit(0)

    for number in _stop_signals():
        signal.signal(number, end)


def _stop_signals() -> list[signal.Signals]:
    """Return the signals that stop a server.

    A hang-up only if it is not ignored, as under nohup.
    """
    signals = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


def _raise_file_limit() -> int:
    """Raise the process's limit of open files as far as the system allows, and return it."""
    if os.name != "posix":
        return 1 << 16
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most in (-1, resource.RLIM_INFINITY):
        most = 1 << 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def listen(host: str, port: int) -> socket.socket:
    """Open the socket to listen on, with any free port for 0.

    An InputError is raised if that fails.
    """
    with ExitStack() as on_failure:
        try:
            # The protocol is named because asyncio sends small answers without delay only if it is.
            options = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
            family, kind, protocol, _, address = options[0]
            listener = on_failure.enter_context(socket.socket(family, kind, protocol))
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise InputError(
                f"Cannot listen on {host}, port {port} ({error.strerror}). Choose others with "
                "--host and --port."
            ) from error
        on_failure.pop_all()
    return listener


def make_server(
    app: Starlette, *, idle_seconds: int = _IDLE_SECONDS, max_files: int = 65_536
) -> uvicorn.Server:
    """Return a uvicorn server.

    The server logs errors only, since the middleware writes the access lines.

    A connection without a request is closed after `idle_seconds`, or at most twice that time;
    connections beyond what `max_files` open files allow are broken off.
    """
    # in one turn of the event loop, before they are counted
    accepted = min(_BACKLOG, max_files // 8)
    config = _Config(
        app,
        # as many may be about to be closed
        max_connections=max(max_files - 2 * accepted - _OTHER_FILES, 1),
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


class _Server(uvicorn.Server):
    """A uvicorn server without signal handlers, and with a longer backlog.

    uvicorn raises a signal again after its shutdown, and has no hook before it: reliability case 6
    needs answers while the server drains, and exit status 0. With few files uvicorn's `backlog`,
    which is also the number of connections it accepts at once, is too short for the idle
    connections of case 11.
    """

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)


# The bounds on connections that no server has options for, tried with cases 6, 9 and 11 of `make
# reliability`: uvicorn answers 503 instead of closing idle connections, begins to time one after
# its first answer, and gives half-closed clients no answer; hypercorn accepts more connections than
# the system allows. A client could otherwise keep a connection for ever by an incomplete request
# head, by not receiving a finished answer, or by continuing to send after a refusal; open more
# connections than the system allows; or block the event loop with a body in chunks of one byte or a
# head of thousands of lines.

READ_BYTES = 16_384
"""Bytes that are read from a connection in one turn of the event loop."""

SEND_BYTES = 131_072
"""Bytes of answers that the system buffers for a client; by default it buffers some megabytes."""

LINGER_SECONDS = 1.0
"""How long a client may keep sending after its request was refused, so that it receives the
answer.
"""

COSTLY_SECONDS = 0.002
"""Several times the cost of reading `READ_BYTES` of an ordinary body."""

COSTLY_SHARE = 4
"""Costly reads of all connections together get a quarter of the event loop's time."""


class _Config(uvicorn.Config):
    """The state that all connections of a server share."""

    def __init__(self, app: Any, *, max_connections: int, **options: Any) -> None:
        """Take the options of uvicorn, and the most connections at a time."""
        super().__init__(app, http=_Connection, **options)
        self.max_connections = max_connections
        self.connections: dict[_Connection, None] = {}
        """The open ones, the oldest first."""
        self.next_costly = 0.0
        """When costly reads may continue, by the loop's clock."""


class _Connection(H11Protocol):
    """A connection with bounds.

    `timeout_keep_alive` applies from its beginning, and not only after an answer.
    """

    config: _Config

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the checks.

        If there are too many connections, break off an idle one (case 11).
        """
        super().connection_made(transport)
        self._has_ended = False
        transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES
        )
        self._next_check = self.loop.call_later(self.timeout_keep_alive, self._check, None)
        connections = self.config.connections
        if len(connections) >= self.config.max_connections:
            idle = next((connection for connection in connections if connection.is_idle), self)
            idle.transport.abort()
            connections.pop(idle, None)
        if not transport.is_closing():
            connections[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the checks."""
        self._next_check.cancel()
        self.config.connections.pop(self, None)
        super().connection_lost(exc)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to answer."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _is_waiting(self) -> bool:
        """Whether a request has arrived to its end, and has no answer yet."""
        return not self.is_idle and not self.cycle.more_body

    def data_received(self, data: bytes) -> None:
        """Read data.

        If that was costly, let other connections go first (case 11: chunks of one byte).
        """
        begun = time.thread_time()
        super().data_received(data)
        cost = time.thread_time() - begun
        if cost > COSTLY_SECONDS and not self.transport.is_closing():
            self.config.next_costly = (
                max(self.config.next_costly, self.loop.time()) + COSTLY_SHARE * cost
            )
            self.transport.pause_reading()
            self.loop.call_at(self.config.next_costly, self._resume_reading)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open while a request waits for its answer.

        The request is whole, and the client can still receive the answer.
        """
        self._has_ended = True
        return self._is_waiting

    def on_response_complete(self) -> None:
        """Continue with the next request, or end a connection.

        A connection ends that still sends the rest of a refused request (case 11).
        """
        super().on_response_complete()
        if self._has_ended and not self._is_waiting:
            self.transport.close()
        if self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(LINGER_SECONDS, self._end_upload, self.cycle)

    def send_400_response(self, msg: str) -> None:
        """Answer and log data that is not HTTP.

        End the current request (cases 9 and 11).
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer has begun
            self.transport.abort()
        log = RequestLog(status=400, reason="malformed_http")
        self.app.state.metrics.count("other", log)
        log.write({"client": self.client, "method": "-", "raw_path": b"-"})

    def _resume_reading(self) -> None:
        if not self.flow.read_paused:  # by uvicorn, for reasons of its own
            self.transport.resume_reading()

    def _end_upload(self, cycle: object) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()

    def _check(self, before: object) -> None:
        """Break off a connection that is idle or does not close.

        Since the last check it has had nothing to answer, or has been closing.
        """
        now = (self.transport.is_closing(), self.cycle)
        if now == before and (self.is_idle or self.transport.is_closing()):
            self.transport.abort()
            return
        self._next_check = self.loop.call_later(self.timeout_keep_alive, self._check, now)
