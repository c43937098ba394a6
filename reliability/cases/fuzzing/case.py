"""Strings of all kinds go through a scorer, and requests of a grammar to a server: nothing breaks, memory stays."""

import random
import warnings
from functools import partial

import numpy as np

from bertscore_onnx import BERTScorer
from harness.results import Figure
from reliability.attacker import Attacker
from reliability.bounds import at_most, none_of
from reliability.cases.fuzzing.exchanges import play_all
from reliability.cases.fuzzing.strings import odd_string
from reliability.memory import resident_mb
from reliability.server import Server
from reliability.settings import Settings
from reliability.traffic import CLOSED, NEVER
from reliability.watch import HEALTH_SECONDS, MEMORY_MB, SLOT_SECONDS, Watch

GROWTH_MB = 32.0
CALL = 200
"""Strings in a call."""

READ_TIMEOUT = "2"
"""Seconds that the server waits for the rest of a body."""


def measure(settings: Settings) -> list[Figure]:
    """Fuzz the scorer, then the server."""
    return [*_fuzz_scorer(settings), *_fuzz_server(settings)]


def _fuzz_scorer(settings: Settings) -> list[Figure]:
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    calls = settings.sizes.fuzzed_strings // CALL
    failed, undefined, samples = 0, 0, []
    with BERTScorer(settings.tiny, device="cpu") as scorer, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty texts and long ones, which are meant
        for _ in range(calls):
            texts = [odd_string(draw) for _ in range(CALL)]
            try:
                scores = scorer.score(texts[: CALL // 2], texts[CALL // 2 :])
            except Exception:
                failed += 1
            else:
                undefined += sum(int((~np.isfinite(part)).sum()) for part in scores)
            samples.append(resident_mb())
    warm = samples[len(samples) // 5 :]
    return [
        none_of(f"of {calls} calls with {calls * CALL:,} edge-case strings, failed", failed),
        none_of("scores that are not numbers", undefined),
        at_most("growth of memory after the first fifth", max(warm) - warm[0], "MB", GROWTH_MB),
    ]


def _fuzz_server(settings: Settings) -> list[Figure]:
    count, limit = settings.sizes.fuzzed_requests, settings.sizes.case_seconds
    with Server(settings.tiny, "--read-timeout", READ_TIMEOUT) as server:
        with Watch(server) as watch, Attacker(partial(play_all, count), server.port, limit) as client:
            statuses = client.statuses()
        slots = server.requests_left(SLOT_SECONDS)
        log = server.log()
        is_ready = '"ready"' in server.text("/health/ready")
    return [
        none_of(
            f"of {count:,} requests of a grammar, answered 5xx",
            sum(statuses[status] for status in statuses if status >= 500),
        ),
        none_of("complete ones without an answer", statuses[CLOSED]),
        none_of("neither answered nor closed in time", statuses[NEVER]),
        at_most("slowest /health/live meanwhile", watch.slowest, "s", HEALTH_SECONDS, of_speed=True),
        none_of("probes of it without an answer", watch.unanswered),
        at_most("growth of memory meanwhile", watch.growth_mb, "MB", MEMORY_MB),
        none_of("requests that are in progress afterwards", round(slots)),
        none_of("tracebacks in the log", log.count("Traceback")),
        none_of("servers that are not ready afterwards", not is_ready),
    ]
