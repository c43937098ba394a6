"""The server gets five times the requests it can answer: it refuses the rest at once, and recovers."""

import asyncio
import math
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from harness.results import Figure, percentile
from harness.texts import synthetic_pairs
from reliability.bounds import at_least, at_most, none_of
from reliability.server import Client, Server, body_of
from reliability.settings import Settings
from reliability.traffic import ask, request_of

FACTOR = 5
MAX_QUEUE = 16
PAIRS = 4
"""In a request."""

CLIENTS = 4
"""That measure the throughput: enough to keep the server busy, and no more than its queue holds."""

WINDOW = 3.0
"""Seconds over which the throughput after the overload is measured."""

RECOVERY_SECONDS = 10.0


@dataclass
class Answers:
    """What came back during the overload."""

    statuses: Counter[int] = field(default_factory=Counter)
    refused_after: list[float] = field(default_factory=list)
    """The seconds from a request to its 429."""

    sent_in: float = 0.0
    """The seconds it took to send all requests."""

    deepest: float = 0.0
    """The deepest queue that was seen."""


def measure(settings: Settings) -> list[Figure]:
    """Measure the throughput, overload the server, and measure the throughput again."""
    sizes = settings.sizes
    body = body_of(*synthetic_pairs(PAIRS))
    with Server(settings.minilm, "--max-queue", str(MAX_QUEUE), "--max-batch-tokens", "1024") as server:
        _throughput(server.port, body, 1.0)
        calm = _throughput(server.port, body, sizes.calm_seconds)
        answers = _overload(server, body, FACTOR * calm, sizes.overload_seconds)
        recovered = _recovery(server.port, body, calm)
        alive = server.process.poll() is None
    others = sum(count for status, count in answers.statuses.items() if status not in (200, 429))
    asked = sum(answers.statuses.values())
    offered = asked / answers.sent_in / calm
    slowest = 1000 * percentile(answers.refused_after or [math.inf], 99)
    return [
        at_least("requests offered, against those answered when calm", offered, "×", 4.5, of_speed=True),
        none_of(f"of {asked:,} answers, neither 200 nor 429", others),
        at_least("answers 429", answers.statuses[429], "", 1),
        at_least("answers 200", answers.statuses[200], "", 1),
        at_least("deepest queue that was seen", answers.deepest, "", 1),
        at_most("deepest queue", answers.deepest, "", MAX_QUEUE),
        at_most("p99 of a 429", slowest, "ms", 100, of_speed=True),
        at_most("until 90 % of the throughput is back", recovered, "s", RECOVERY_SECONDS, of_speed=True),
        none_of("servers that ended", not alive),
    ]


def _throughput(port: int, body: bytes, seconds: float) -> float:
    """Return the requests answered a second to a few clients that ask without a pause."""
    until = time.perf_counter() + seconds

    def ask() -> int:
        answered = 0
        with Client(port) as client:
            while time.perf_counter() < until:
                status, _ = client.post(body)
                answered += status == 200
        return answered

    begun = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        answered = sum(future.result() for future in [clients.submit(ask) for _ in range(CLIENTS)])
    return answered / (time.perf_counter() - begun)


def _overload(server: Server, body: bytes, rate: float, seconds: float) -> Answers:
    """Send requests at this rate, whatever comes back, and look at the queue meanwhile.

    Args:
        server: where to send them.
        body: of each.
        rate: requests a second.
        seconds: how long to go on.
    """
    answers = Answers()
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.1):
            answers.deepest = max(answers.deepest, server.metric("bertscore_queue_depth"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        asyncio.run(_send_all(server.port, body, rate, seconds, answers))
    finally:
        is_over.set()
        watcher.join()
    return answers


async def _send_all(port: int, body: bytes, rate: float, seconds: float, answers: Answers) -> None:
    request = request_of(body)

    async def client() -> None:
        begun = time.perf_counter()
        status = await ask(port, request)
        answers.statuses[status] += 1
        if status == 429:
            answers.refused_after.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(round(rate * seconds)):
            await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
            group.create_task(client())
        answers.sent_in = time.perf_counter() - begun


def _recovery(port: int, body: bytes, calm: float) -> float:
    """Return the seconds to the end of the first window with 90 % of the throughput; infinity where there is none."""
    begun = time.perf_counter()
    while time.perf_counter() - begun <= RECOVERY_SECONDS:
        if _throughput(port, body, WINDOW) >= 0.9 * calm:
            return time.perf_counter() - begun
    return math.inf
