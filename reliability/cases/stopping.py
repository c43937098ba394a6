"""The server is told to stop while it answers many requests: it finishes those in time, and lets no more in."""

import http.client
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.bounds import at_least, at_most, none_of
from reliability.server import Client, Server, body_of
from reliability.settings import Settings

PAIRS = 24
EXIT_SECONDS = 30.0
SHORT_DRAIN = 0.1
"""Seconds; less than scoring all requests takes."""

CUT_SECONDS = 10.0
"""Within which the server ends after a short drain: running batches end, and answers get up to five seconds."""

NO_ANSWER = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """What became of the requests in progress at SIGTERM, of later ones, and of the server."""

    in_progress: int
    answers: Counter[int]
    late: Counter[int]
    seconds: float
    status: int | None
    """The exit status; None where it did not end."""


def measure(settings: Settings) -> list[Figure]:
    """Send SIGTERM when all requests are in: once with time to finish them, once without."""
    count = settings.sizes.in_flight
    finished, cut = _stop(settings, count), _stop(settings, count, "--drain", str(SHORT_DRAIN))
    refused = finished.late[503] + finished.late[NO_ANSWER]
    told = cut.answers[200] + cut.answers[503]
    return [
        none_of(f"of {count} requests, not in progress at SIGTERM", count - finished.in_progress),
        none_of("requests in progress that were not finished", count - finished.answers[200]),
        at_least("later requests told 503", finished.late[503], "", 1),
        none_of("later requests let in", finished.late.total() - refused),
        at_most("until it has ended", finished.seconds, "s", EXIT_SECONDS),
        none_of("exit status other than 0", int(finished.status != 0)),
        none_of(f"of {count} requests without time to finish, neither answered nor told 503", count - told),
        at_least("of these, told 503", cut.answers[503], "", 1),
        at_most("until it has ended without that time", cut.seconds, "s", CUT_SECONDS),
        none_of("exit status other than 0 without that time", int(cut.status != 0)),
    ]


def _stop(settings: Settings, count: int, *options: str) -> Stop:
    """Start a server, fill it with requests, and tell it to stop."""
    body = body_of(*synthetic_pairs(PAIRS))
    with Server(settings.minilm, *options) as server, ThreadPoolExecutor(count) as clients:
        asked = [clients.submit(_status, server.port, body) for _ in range(count)]
        in_progress = _await_all_in(server, count)
        begun = time.monotonic()
        server.stop()
        late = Counter(_ask_until_gone(server, body))
        try:
            status: int | None = server.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        seconds = time.monotonic() - begun
        answers = Counter(future.result() for future in asked)
    return Stop(round(in_progress), answers, late, seconds, status)


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
