"""The server is told to stop while it answers many requests: each is answered or told, new ones are refused."""

import http.client
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from harness.results import Figure
from harness.texts import made_up_pairs
from reliability.bounds import at_most, none_of
from reliability.server import Client, Server, body_of
from reliability.settings import Settings

PAIRS = 24
EXIT_SECONDS = 30.0
NO_ANSWER = 0


def measure(settings: Settings) -> list[Figure]:
    """Send SIGTERM when all requests are in."""
    count = settings.sizes.in_flight
    body = body_of(*made_up_pairs(PAIRS))
    with Server(settings.minilm) as server, ThreadPoolExecutor(count) as clients:
        asked = [clients.submit(_status, server.port, body) for _ in range(count)]
        in_flight = _await_all_in(server, count)
        begun = time.monotonic()
        server.stop()
        late = Counter(_ask_until_gone(server, body))
        try:
            status: int | None = server.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        seconds = time.monotonic() - begun
        answers = Counter(future.result() for future in asked)
    told = answers[200] + answers[503]
    return [
        none_of(f"of {count} requests, not in flight at SIGTERM", count - round(in_flight)),
        none_of("requests neither answered nor told", count - told),
        at_most("requests refused that were in flight", answers[503], "", count),
        none_of(f"of {late.total()} later requests, let in", late.total() - late[503] - late[NO_ANSWER]),
        at_most("until it has ended", seconds, "s", EXIT_SECONDS),
        none_of("exit status other than 0", int(status != 0)),
    ]


def _status(port: int, body: bytes) -> int:
    try:
        with Client(port) as client:
            return client.post(body)[0]
    except (OSError, http.client.HTTPException):
        return NO_ANSWER


def _await_all_in(server: Server, count: int) -> float:
    """Wait until all requests are being answered; return how many were at the end."""
    until = time.monotonic() + 20
    active = 0.0
    while active < count and time.monotonic() < until:
        active = max(active, server.metric("bertscore_active_requests"))
    return active


def _ask_until_gone(server: Server, body: bytes) -> list[int]:
    """Ask on and on while the server ends; return the statuses."""
    statuses = []
    until = time.monotonic() + EXIT_SECONDS
    pause = threading.Event()
    while server.process.poll() is None and time.monotonic() < until:
        pause.wait(0.05)
        statuses.append(_status(server.port, body))
    return statuses
