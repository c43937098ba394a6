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

from bertscore_onnx.errors import InputError
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.connection import ServerConfig
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.registry import Models

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
