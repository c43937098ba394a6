"""Cases 1, 2, 6, 10 and 12: batchers and servers with many clients, with too many, and with greedy
ones.
"""

import asyncio
import math
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx_service import MicroBatcher
from harness.processes import Background
from harness.results import Figure, percentile
from harness.texts import synthetic_pairs
from reliability.adversary import DOTS_BYTES, PAIR_BYTES, dense_body, dots
from reliability.report import at_least, at_most, none_of
from reliability.server import Client, Server
from reliability.settings import Settings
from reliability.traffic import (
    CLOSED,
    Attacker,
    Traffic,
    pairs_body,
    repeated_requests,
    request_of,
    status_of,
)

Values = NDArray[np.float32]

# --- case 1: many clients submit requests of mixed lengths to one batcher ---

TOLERANCE = 1e-5
DISTINCT_REQUESTS, MOST_PAIRS = 150, 4  # clients draw from these requests; pairs per request


def measure_batching(settings: Settings) -> list[Figure]:
    """Compare every answer with the scores of its request when scored alone: none is lost, none is
    another's.
    """
    requests = _mixed_requests()
    with BERTScorer(settings.minilm, device="cpu") as scorer:
        alone = [_stacked(scorer.score(*request)) for request in requests]
        with MicroBatcher(scorer, deadline=600) as batcher:

            def submit(number: int) -> float:
                """Return the largest difference of an answer from the solo scores, NaN for no
                answer.
                """
                try:
                    answer = _stacked(batcher.submit(*requests[number]).result())
                except Exception:
                    return math.nan
                return difference(answer, alone[number])

            numbers = random.Random(1).choices(range(len(requests)), k=settings.sizes.requests)
            with ThreadPoolExecutor(settings.sizes.clients) as clients:
                differences = np.array(list(clients.map(submit, numbers)))
            stats = batcher.stats()
    lost = np.isnan(differences)
    return [
        none_of(f"of {len(numbers):,} requests, lost", lost.sum()),
        at_most(
            "largest difference from the solo score",
            differences[~lost].max(initial=0),
            "",
            TOLERANCE,
        ),
        none_of(
            "requests that the counts do not account for", abs(stats.submitted - stats.completed)
        ),
    ]


def _mixed_requests() -> list[tuple[list[str], list[str]]]:
    draw = random.Random(0)
    pairs = iter(zip(*synthetic_pairs(DISTINCT_REQUESTS * MOST_PAIRS), strict=True))
    groups = [list(islice(pairs, draw.randint(1, MOST_PAIRS))) for _ in range(DISTINCT_REQUESTS)]
    return [([cand for cand, _ in group], [ref for _, ref in group]) for group in groups]


def _stacked(scores: Sequence[Values]) -> Values:
    return np.stack(list(scores))  # (3, pairs)


def difference(one: Values, other: Values) -> float:
    """Return the largest difference, infinity for other numbers of pairs."""
    return float(np.abs(one - other).max()) if one.shape == other.shape else math.inf


# --- case 2: a server gets five times the requests that it can answer ---

FACTOR = 5
MAX_QUEUE = 16
OVERLOAD_PAIRS = 4  # per request
# measure the throughput: enough to keep the server busy, no more than its queue holds
CALM_CLIENTS = 4
WINDOW = 2.0  # seconds over which the throughput after the overload is measured
RECOVERY_SECONDS = 10.0


@dataclass
class Overload:
    """The answers that clients got during the overload."""

    statuses: Counter[int] = field(default_factory=Counter)
    refused_after: list[float] = field(default_factory=list)  # seconds from a request to its 429
    sent_in: float = 0.0  # seconds to send all requests
    deepest: float = 0.0  # the deepest queue that was seen


def measure_overload(settings: Settings) -> list[Figure]:
    """Measure the throughput, overload the server, which refuses the excess at once, and measure
    again.
    """
    sizes = settings.sizes
    body = _body_of(OVERLOAD_PAIRS)
    with Server(
        settings.minilm, "--limits", f"max_queue={MAX_QUEUE}", "max_batch_tokens=1024"
    ) as server:
        _throughput(server.port, body, 1.0)
        calm = _throughput(server.port, body, sizes.calm_seconds)
        overload = _overload(server, body, FACTOR * calm, sizes.overload_seconds)
        recovered = _recovery(server.port, body, calm)
        is_alive = server.process.poll() is None
    others = sum(count for status, count in overload.statuses.items() if status not in (200, 429))
    answers = overload.statuses.total()
    offered = answers / overload.sent_in / calm
    slowest = 1000 * percentile(overload.refused_after or [math.inf], 99)
    return [
        at_least(
            "requests offered, against those answered when calm", offered, "×", 4.5, of_speed=True
        ),
        none_of(f"of {answers:,} answers, neither 200 nor 429", others),
        at_least("answers 429", overload.statuses[429], "", 1),
        at_least("answers 200", overload.statuses[200], "", 1),
        at_least("deepest queue that was seen", overload.deepest, "", 1),
        at_most("deepest queue", overload.deepest, "", MAX_QUEUE),
        at_most("p99 of a 429", slowest, "ms", 100, of_speed=True),
        at_most(
            "until 90 % of the throughput is back", recovered, "s", RECOVERY_SECONDS, of_speed=True
        ),
        none_of("servers that ended", not is_alive),
    ]


def _body_of(pairs: int) -> bytes:
    return pairs_body(zip(*synthetic_pairs(pairs), strict=True))


def _throughput(port: int, body: bytes, seconds: float) -> float:
    """Return the requests answered per second to a few clients that send one after the other."""
    return (
        asyncio.run(repeated_requests(lambda: [request_of(body)], CALM_CLIENTS)(port, seconds))[200]
        / seconds
    )


def _overload(server: Server, body: bytes, rate: float, seconds: float) -> Overload:
    """Send requests at this rate per second, for any answers, and watch the queue."""
    overload = Overload()

    def look() -> None:
        overload.deepest = max(overload.deepest, server.metric("bertscore_queue_depth"))

    with Background(look, 0.1):
        asyncio.run(_send_at_rate(server.port, body, rate, seconds, overload))
    return overload


async def _send_at_rate(
    port: int, body: bytes, rate: float, seconds: float, overload: Overload
) -> None:
    request = request_of(body)

    async def client() -> None:
        begun = time.perf_counter()
        status = await status_of(request, port)
        overload.statuses[status] += 1
        if status == 429:
            overload.refused_after.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(round(rate * seconds)):
            await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
            group.create_task(client())
        overload.sent_in = time.perf_counter() - begun


def _recovery(port: int, body: bytes, calm: float) -> float:
    """Return the seconds to the end of the first window with 90 % of the throughput, infinity if
    there is none.
    """
    begun = time.perf_counter()
    while time.perf_counter() - begun <= RECOVERY_SECONDS:
        if _throughput(port, body, WINDOW) >= 0.9 * calm:
            return time.perf_counter() - begun
    return math.inf


# --- case 6: a server gets SIGTERM while many requests are in progress ---

STOPPING_PAIRS = 24  # per request
EXIT_SECONDS = 30.0
SHORT_DRAIN = 0.1  # seconds; less than scoring all requests takes
# within which a server ends after a short drain: running batches end, answers get five seconds
CUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Stop:
    """The outcome of the requests in progress at SIGTERM, of later ones, and of the server."""

    in_progress: int
    answers: Counter[int]
    late: Counter[int]
    seconds: float
    status: int | None  # the exit status; None if the server did not end


def measure_stopping(settings: Settings) -> list[Figure]:
    """Send SIGTERM when all requests are in progress: once with time to finish them, once
    without.
    """
    count = settings.sizes.in_flight
    finished, cut = (
        _stop(settings, count),
        _stop(settings, count, "--limits", f"drain={SHORT_DRAIN}"),
    )
    refused = finished.late[503] + finished.late[CLOSED]
    answered = cut.answers[200] + cut.answers[503]
    return [
        none_of(f"of {count} requests, not in progress at SIGTERM", count - finished.in_progress),
        none_of("requests in progress that were not finished", count - finished.answers[200]),
        at_least("later requests answered 503", finished.late[503], "", 1),
        none_of("later requests let in", finished.late.total() - refused),
        at_most("until it has ended", finished.seconds, "s", EXIT_SECONDS),
        none_of("exit status other than 0", finished.status != 0),
        none_of(
            f"of {count} requests without time to finish, answered neither 200 nor 503",
            count - answered,
        ),
        at_least("of these, answered 503", cut.answers[503], "", 1),
        at_most("until it has ended without that time", cut.seconds, "s", CUT_SECONDS),
        none_of("exit status other than 0 without that time", cut.status != 0),
    ]


def _stop(settings: Settings, count: int, *options: str) -> Stop:
    """Start a server, fill it with requests, and stop it."""
    body = _body_of(STOPPING_PAIRS)
    with Server(settings.minilm, *options) as server, ThreadPoolExecutor(count) as clients:
        requests = [clients.submit(server.status, body) for _ in range(count)]
        in_progress = _await_requests(server, count)
        begun = server.stop()
        late = Counter(_request_until_gone(server, body))
        seconds, status = server.wait(begun, EXIT_SECONDS)
        answers = Counter(request.result() for request in requests)
    return Stop(round(in_progress), answers, late, seconds, status)


def _await_requests(server: Server, count: int) -> float:
    """Wait until this many requests are in progress; return their number at the end."""
    until = time.monotonic() + 20
    active = 0.0
    while active < count and time.monotonic() < until:
        active = max(active, server.metric("bertscore_active_requests"))
    return active


def _request_until_gone(server: Server, body: bytes) -> list[int]:
    """Send one request after another while the server ends; return the statuses."""
    statuses = []
    until = time.monotonic() + EXIT_SECONDS
    while server.process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
        statuses.append(server.status(body))
    return statuses


# --- case 10: what a server costs over direct calls ---

SERVED_PAIRS = 32  # per request
SERVED_CLIENTS = 4


def measure_serving(settings: Settings) -> list[Figure]:
    """Score the same requests by direct calls and by a server in turn, and compare the times of
    each round.
    """
    pairs = zip(*synthetic_pairs(SERVED_PAIRS * settings.sizes.served_requests), strict=True)
    requests = [list(islice(pairs, SERVED_PAIRS)) for _ in range(settings.sizes.served_requests)]
    bodies = [pairs_body(request) for request in requests]
    ratios, refused = [], 0
    with BERTScorer(settings.minilm, device="cpu") as scorer, Server(settings.minilm) as server:
        for number in range(settings.sizes.served_rounds + 1):
            begun = time.perf_counter()
            for request in requests:
                scorer.score([cand for cand, _ in request], [ref for _, ref in request])
            direct = time.perf_counter() - begun
            begun = time.perf_counter()
            refused += _serve_all(server, bodies)
            if number:  # the first round warms both up
                ratios.append((time.perf_counter() - begun) / direct)
    title = f"time of {len(requests)} requests of {SERVED_PAIRS} pairs, against direct calls"
    return [
        none_of("requests not answered with 200", refused),
        at_most(title, statistics.median(ratios), "×", 1.35, of_speed=True),
    ]


def _serve_all(server: Server, bodies: list[bytes]) -> int:
    """Send all requests, a few at a time; return how many were not answered with 200."""

    def send(own: list[bytes]) -> int:
        with Client(server.port) as client:
            return sum(client.post(body) != 200 for body in own)

    with ThreadPoolExecutor(SERVED_CLIENTS) as clients:
        return sum(
            clients.map(send, [bodies[start::SERVED_CLIENTS] for start in range(SERVED_CLIENTS)])
        )


# --- case 12: a polite client beside a greedy one waits little longer than beside an ordinary one
# ---

STARVED_RATIO = 3.0  # by which the p99 of the polite client may grow
GREEDY_PAIRS, ORDINARY_PAIRS = 512, 32  # in a request to a batcher
GREEDY_THREADS = 8

_WARM_SECONDS = 1.0
_RETRY_SECONDS = 0.05
_WAIT_SECONDS = 60.0  # for which a request is tried


@dataclass
class Polite:
    """The waits and failures of a client with one pair at a time."""

    # seconds until each request was scored, retries included
    waits: list[float] = field(default_factory=list)
    failures: int = 0  # answers 5xx, or errors

    @property
    def p99(self) -> float:
        """The p99 of the waits; infinity if nothing was scored."""
        return percentile(self.waits or [math.inf], 99)

    def request_for(self, seconds: float, is_scored: Callable[[], bool]) -> None:
        """Make one request after another for some seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            begun = time.monotonic()
            self.failures += not is_scored()
            self.waits.append(time.monotonic() - begun)


def measure_starvation(settings: Settings) -> list[Figure]:
    """Compare the waits beside each greedy client with those beside an ordinary one."""
    seconds, figures = settings.sizes.starved_seconds, []
    models = {"MiniLM": settings.minilm} | (
        {"roberta-large's size": settings.large} if settings.large else {}
    )
    for model, bundle in models.items():
        failures = 0
        for name, neighbours in NEIGHBOURS.items():
            both = [_served_beside(neighbour, bundle, seconds) for neighbour in neighbours]
            failures += sum(one.failures for one in both)
            figures.append(starved(f"{model}: {name}", *both))
        figures.append(none_of(f"{model}: answers 5xx to the polite client", failures))
        both = [
            _submitted_beside(pairs, bundle, seconds) for pairs in (GREEDY_PAIRS, ORDINARY_PAIRS)
        ]
        figures.append(starved(f"{model}: threads with {GREEDY_PAIRS} pairs", *both))
        failures = sum(one.failures for one in both)
        figures.append(none_of(f"{model}: requests of the polite thread that failed", failures))
    return figures


def _served_beside(neighbour: Traffic, bundle: Path, seconds: float) -> Polite:
    """Send one pair after another to a server while a neighbour sends its requests."""
    polite = Polite()
    bodies = cycle([pairs_body([pair]) for pair in zip(*synthetic_pairs(100), strict=True)])
    with (
        Server(bundle) as server,
        Attacker(neighbour, server.port, seconds + _WARM_SECONDS) as attacker,
    ):
        attacker.begin()
        time.sleep(_WARM_SECONDS)  # so that the neighbour is at full speed
        polite.request_for(seconds, lambda: _is_let_in(server, next(bodies)))
        attacker.statuses()
    return polite


def _is_let_in(server: Server, body: bytes) -> bool:
    """Send a request again while it is refused with 429; return whether no fault of the server ends
    this.
    """
    begun = time.monotonic()
    while (status := server.status(body)) == 429 and time.monotonic() - begun < _WAIT_SECONDS:
        time.sleep(_RETRY_SECONDS)
    return CLOSED < status < 500


def _submitted_beside(pairs: int, bundle: Path, seconds: float) -> Polite:
    """Submit one pair after another to a batcher while other threads submit many at a time."""
    candidates, references = synthetic_pairs(pairs)
    polite = Polite()
    # the batcher is closed before the threads are joined, so that nobody waits for their last
    # requests
    with (
        BERTScorer(bundle, device="cpu") as scorer,
        ExitStack() as neighbours,
        MicroBatcher(scorer) as batcher,
    ):

        def submit_many() -> None:
            with suppress(BertScoreOnnxError):  # requests of this size may exceed the deadline
                batcher.submit(candidates, references).result()

        for _ in range(GREEDY_THREADS):
            neighbours.enter_context(Background(submit_many))
        polite.request_for(
            seconds, lambda: batcher.submit(candidates[:1], references[:1]).exception() is None
        )
    return polite


def starved(name: str, beside_greedy: Polite, beside_ordinary: Polite) -> Figure:
    """Compare the waits of the polite client."""
    title = f"{name}: p99 of a polite client, against beside an ordinary one"
    print(f"{title}: {beside_greedy.p99:.3f} s and {beside_ordinary.p99:.3f} s", file=sys.stderr)
    return at_most(
        title, beside_greedy.p99 / beside_ordinary.p99, "×", STARVED_RATIO, of_speed=True
    )


@cache
def _many_pairs() -> list[bytes]:
    return [dense_body(60_000, 1, 40, most_pairs=512)]


@cache
def _dense_pair() -> list[bytes]:
    return [dense_body(850, 1, 400, most_pairs=1)]


@cache
def _prose(size: int) -> list[bytes]:
    """Return requests with pairs of prose, each of about this many bytes."""
    requests, pairs, used = [], [], 0
    for candidate, reference in zip(*synthetic_pairs(2_000), strict=True):
        pairs.append((candidate, reference))
        used += len(candidate) + len(reference) + PAIR_BYTES
        if used >= size:
            requests.append(request_of(pairs_body(pairs)))
            pairs, used = [], 0
    return requests


def _ordinary(size: int, clients: int) -> Traffic:
    return repeated_requests(partial(_prose, size), clients)


NEIGHBOURS: dict[str, tuple[Traffic, Traffic]] = {
    # a greedy client, and an ordinary one with as many connections and bytes per body
    "bodies of 512 pairs": (repeated_requests(_many_pairs, 8), _ordinary(60_000, 8)),
    "64 connections": (repeated_requests(_dense_pair, 64), _ordinary(850, 64)),
    "bodies of dots": (repeated_requests(dots, 8), _ordinary(DOTS_BYTES, 8)),
}
