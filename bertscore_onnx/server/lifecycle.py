"""Runs the server until it is told to stop, and then lets it finish what it has begun."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from bertscore_onnx.errors import InputError
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.registry import Models

_log = logging.getLogger(__name__)

_BACKLOG = 2048

_LAST_SECONDS = 5
"""Seconds for answers to be sent, when all scoring is over."""

_IDLE_SECONDS = 15


class _Connection(H11Protocol):
    """A connection that `timeout_keep_alive` bounds from its beginning, and not only after an answer.

    uvicorn has no limit for a request head that never comes whole, nor for a finished answer that the client does not
    take: such clients could hold all the connections that the system allows.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look whether anything happens."""
        super().connection_made(transport)
        self._next_look = self.loop.call_later(self.timeout_keep_alive, self._look, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def _look(self, before: object) -> None:
        """Break the connection off where it has had nothing to answer, or has been closing, since the last look."""
        is_idle = self.cycle is None or self.cycle.response_complete
        now = (self.transport.is_closing(), self.cycle)
        if now == before and (is_idle or self.transport.is_closing()):
            self.transport.abort()
            return
        self._next_look = self.loop.call_later(self.timeout_keep_alive, self._look, now)


class _Server(uvicorn.Server):
    """A server of uvicorn that leaves signals to us: its own way is to die of them, once it is done."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def run(app: Starlette, models: Models, limits: Limits, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends at once.

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


def make_server(app: Starlette, *, idle_seconds: int = _IDLE_SECONDS) -> uvicorn.Server:
    """Return a server that leaves signals alone and logs errors only: the middleware writes the access lines.

    Args:
        app: the application.
        idle_seconds: how long a connection may have nothing to answer. It is closed after at most twice that time.
    """
    config = uvicorn.Config(
        app,
        http=_Connection,
        timeout_keep_alive=idle_seconds,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )
    return _Server(config)


async def _run(app: Starlette, models: Models, limits: Limits, listener: socket.socket) -> None:
    admission: Admission = app.state.admission
    server = make_server(app)
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if told_to_stop.is_set():
            server.force_exit = server.should_exit = True
            admission.abandon()
        told_to_stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
    serving = asyncio.create_task(server.serve([listener]))
    host, port = listener.getsockname()[:2]
    names = ", ".join(model.name for model in models)
    _log.info("Serving %s on http://%s:%d", names, f"[{host}]" if ":" in host else host, port)
    waiting = asyncio.create_task(told_to_stop.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    _log.info("Stopping; %d requests are in progress.", admission.active)
    if not await admission.drain(limits.drain):
        _log.warning("%d requests were not answered in %g s.", admission.active, limits.drain)
    await asyncio.to_thread(models.close)
    server.should_exit = True
    await serving
    _log.info("Stopped.")


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
