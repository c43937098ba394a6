"""A greedy client beside a polite one: the polite one waits little longer than beside an ordinary neighbour."""

import http.client
import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.serving import MicroBatcher
from harness.results import Figure, percentile
from harness.texts import synthetic_pairs
from reliability.attacker import Attacker, Rush
from reliability.bounds import at_most, none_of
from reliability.cases.adversary.bodies import DOTS, FIELDS, dense_body, dots
from reliability.cases.adversary.streams import pair_lines
from reliability.server import Client, Server, body_of
from reliability.settings import Settings
from reliability.traffic import keep_asking, pairs_body, request_of
from reliability.watch import SLOT_SECONDS

RATIO = 3.0
"""That the p99 of the polite client may grow by."""

_WARM_SECONDS = 1.0
_RETRY_SECONDS = 0.05
_WAIT_SECONDS = 60.0
"""For which a request is tried."""

_GREEDY_PAIRS, _ORDINARY_PAIRS = 512, 32
"""In a request to a batcher."""

_THREADS = 8


@dataclass
class Polite:
    """What a client with one pair at a time has seen."""

    waits: list[float] = field(default_factory=list)
    """Seconds until each request was scored, with those until it was let in."""

    failures: int = 0
    """Answers 5xx, or errors."""

    @property
    def p99(self) -> float:
        """The p99 of the waits; infinity where nothing was scored."""
        return percentile(self.waits or [math.inf], 99)


def measure(settings: Settings) -> list[Figure]:
    """Compare the waits beside each greedy client with those beside an ordinary one."""
    models = {"MiniLM": settings.minilm} | ({"roberta-large's size": settings.large} if settings.large else {})
    figures = []
    for model, bundle in models.items():
        figures += _in_a_server(model, bundle, settings.sizes.starved_seconds)
        figures += _in_a_batcher(model, bundle, settings.sizes.starved_seconds)
    return figures


def _in_a_server(model: str, bundle: Path, seconds: float) -> list[Figure]:
    figures, failures = [], 0
    with Server(bundle) as server:
        for name, (greedy, ordinary) in NEIGHBOURS.items():
            beside_greedy = _served_beside(greedy, server, seconds)
            beside_ordinary = _served_beside(ordinary, server, seconds)
            failures += beside_greedy.failures + beside_ordinary.failures
            figures.append(_growth(f"{model}: {name}", beside_greedy, beside_ordinary))
    return [*figures, none_of(f"{model}: answers 5xx to the polite client", failures)]


def _served_beside(neighbour: Rush, server: Server, seconds: float) -> Polite:
    """Send one pair after the other while a neighbour sends its requests."""
    polite = Polite()
    with Attacker(neighbour, server.port, seconds + _WARM_SECONDS) as attacker:
        time.sleep(_WARM_SECONDS)  # so that the neighbour is at full speed
        until = time.monotonic() + seconds
        for body in cycle(_single_pairs()):
            if time.monotonic() >= until:
                break
            _ask(server.port, body, polite)
        attacker.statuses()
    server.requests_left(SLOT_SECONDS)
    return polite


def _ask(port: int, body: bytes, polite: Polite) -> None:
    """Send a request until it is let in."""
    begun, status = time.monotonic(), 429
    while status == 429 and time.monotonic() - begun < _WAIT_SECONDS:
        try:
            with Client(port) as client:
                status, _ = client.post(body)
        except (OSError, http.client.HTTPException):
            status = 500
        if status == 429:
            time.sleep(_RETRY_SECONDS)  # until the next try
    polite.waits.append(time.monotonic() - begun)
    polite.failures += status >= 500


def _in_a_batcher(model: str, bundle: Path, seconds: float) -> list[Figure]:
    with BERTScorer(bundle, device="cpu") as scorer, MicroBatcher(scorer) as batcher:
        beside_greedy = _submitted_beside(_GREEDY_PAIRS, batcher, seconds)
        beside_ordinary = _submitted_beside(_ORDINARY_PAIRS, batcher, seconds)
    failures = beside_greedy.failures + beside_ordinary.failures
    return [
        _growth(f"{model}: threads with {_GREEDY_PAIRS} pairs", beside_greedy, beside_ordinary),
        none_of(f"{model}: requests of the polite thread that failed", failures),
    ]


def _submitted_beside(pairs: int, batcher: MicroBatcher, seconds: float) -> Polite:
    """Submit one pair after the other while other threads submit many at a time."""
    candidates, references = synthetic_pairs(pairs)
    polite = Polite()
    until = time.monotonic() + seconds

    def keep_submitting() -> None:
        while time.monotonic() < until:
            with suppress(BertScoreOnnxError):  # the one who asks for that much may come to the deadline
                batcher.submit(candidates, references).result()

    with ThreadPoolExecutor(_THREADS) as neighbours:
        running = [neighbours.submit(keep_submitting) for _ in range(_THREADS)]
        while time.monotonic() < until:
            begun = time.monotonic()
            error = batcher.submit(candidates[:1], references[:1]).exception()
            polite.waits.append(time.monotonic() - begun)
            polite.failures += error is not None
        for one in running:
            one.result()
    return polite


def _growth(name: str, beside_greedy: Polite, beside_ordinary: Polite) -> Figure:
    ratio = beside_greedy.p99 / beside_ordinary.p99
    title = f"{name}: p99 of a polite client, against beside an ordinary one"
    print(f"{title}: {beside_greedy.p99:.3f} s and {beside_ordinary.p99:.3f} s", file=sys.stderr)
    return at_most(title, ratio, "×", RATIO, of_speed=True)


def _many_pairs() -> list[bytes]:
    """Return a body of many pairs of punctuation."""
    return [dense_body(60_000, 1, 40, most_pairs=512)]


def _dense_pair() -> list[bytes]:
    """Return a body of one pair of punctuation."""
    return [dense_body(850, 1, 400, most_pairs=1)]


def _single_pairs() -> list[bytes]:
    return [body_of([candidate], [reference]) for candidate, reference in zip(*synthetic_pairs(100), strict=True)]


def _prose(size: int) -> list[bytes]:
    """Return requests of about this many bytes each."""
    requests, pairs, used = [], [], 0
    for candidate, reference in zip(*synthetic_pairs(2_000), strict=True):
        pairs.append((candidate, reference))
        used += len(candidate) + len(reference) + FIELDS
        if used >= size:
            requests.append(request_of(pairs_body(pairs)))
            pairs, used = [], 0
    return requests


NEIGHBOURS: dict[str, tuple[Rush, Rush]] = {
    "bodies of 512 pairs": (partial(keep_asking, _many_pairs, 8), partial(keep_asking, partial(_prose, 60_000), 8)),
    "streams": (partial(pair_lines, 4), partial(keep_asking, partial(_prose, DOTS), 4)),
    "64 connections": (partial(keep_asking, _dense_pair, 64), partial(keep_asking, partial(_prose, 850), 64)),
    "bodies of dots": (partial(keep_asking, dots, 8), partial(keep_asking, partial(_prose, DOTS), 8)),
}
"""A greedy client, and an ordinary one with as many connections and bytes a body."""
