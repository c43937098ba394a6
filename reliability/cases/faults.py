"""Faults are injected into the scorer of a batcher while its health is probed: callers are told, and it recovers."""

import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import OutOfMemoryError
from bertscore_onnx.scores import Scores
from bertscore_onnx.serving import MicroBatcher
from bertscore_onnx.serving.worker import is_finite
from harness.results import Figure
from reliability.bounds import at_least, at_most, none_of
from reliability.settings import Settings

DEADLINE = 3.0
MAX_STALL = 0.3
LOADING = 0.1
"""Seconds that a replacement takes to load: a larger model takes that long, and the probe sees it."""

PROBE_SECONDS = 0.002
WAITING = 4
"""Requests that are submitted at each fault."""


class Faults:
    """What goes wrong at the next call of the scorer, and when it did."""

    def __init__(self) -> None:
        """Let nothing go wrong."""
        self.next: Callable[[], None] | None = None
        self.injected_at = math.inf
        """By `time.monotonic()`."""

    def inject(self) -> None:
        """Inject the fault that is due."""
        fault, self.next = self.next, None
        if fault is not None:
            self.injected_at = time.monotonic()
            fault()


class FaultyScorer(BERTScorer):
    """A scorer to which faults happen."""

    def __init__(self, path: Path, faults: Faults) -> None:
        """Load a bundle."""
        super().__init__(path, device="cpu")
        self.faults = faults
        self.gives_nan = False
        self.is_broken = False
        self.is_stalled = False

    def score_pairs(self, *arguments: Any, **named: Any) -> Any:
        """Score, unless a fault is due."""
        self.gives_nan = False
        self.faults.inject()
        if self.is_stalled:
            time.sleep(2 * MAX_STALL)  # the fault itself
        if self.is_broken:
            raise RuntimeError("An injected fault that lasts.")
        scores, counts = super().score_pairs(*arguments, **named)
        if self.gives_nan:
            scores = Scores(scores.P * math.nan, scores.R, scores.F, scores.best_reference)
        return scores, counts


class Rig:
    """A batcher over faulty scorers, and a thread that probes its health all the time."""

    def __init__(self, path: Path) -> None:
        """Start both."""
        self.faults = Faults()
        self._path = path
        self.scorer = FaultyScorer(path, self.faults)
        self.batcher = MicroBatcher(
            self.scorer, deadline=DEADLINE, max_stall=MAX_STALL, max_delay=0.01, make_scorer=self._make_again
        )
        self.unready: list[float] = []
        """When the probe found it not ready, by `time.monotonic()`."""
        self._is_over = threading.Event()
        self._probe = threading.Thread(target=self._probe_health)
        self._probe.start()

    def await_ready(self, limit: float) -> float:
        """Wait until it is ready and scores; return the seconds, infinity where it does not."""
        begun = time.monotonic()
        while time.monotonic() - begun < limit:
            if self.batcher.ready and self.batcher.submit(["a"], ["b"]).exception() is None:
                return time.monotonic() - begun
            time.sleep(PROBE_SECONDS)  # between two looks, until the limit
        return math.inf

    def close(self) -> None:
        """Stop both."""
        self._is_over.set()
        self._probe.join()
        self.batcher.close()
        self.scorer.close()

    def _make_again(self) -> BERTScorer:
        time.sleep(LOADING)  # as a large model would
        self.scorer = FaultyScorer(self._path, self.faults)
        return self.scorer

    def _probe_health(self) -> None:
        while not self._is_over.wait(PROBE_SECONDS):
            if not self.batcher.ready:
                self.unready.append(time.monotonic())


def _raise(error: BaseException) -> None:
    raise error


BREAKING: dict[str, Callable[[FaultyScorer], None]] = {
    "an exception that lasts": lambda scorer: setattr(scorer, "is_broken", True),
    "stalls that last": lambda scorer: setattr(scorer, "is_stalled", True),
    "a killed worker": lambda scorer: _raise(SystemExit("injected")),
}
"""The faults that break the worker."""

PASSING: dict[str, Callable[[FaultyScorer], None]] = {
    "an exception": lambda scorer: _raise(RuntimeError("injected")),
    "out of memory": lambda scorer: _raise(OutOfMemoryError("injected")),
    "a run that is only long": lambda scorer: time.sleep(2 * MAX_STALL),  # the fault itself
    "NaN": lambda scorer: setattr(scorer, "gives_nan", True),
}
"""The faults that the worker survives."""


def measure(settings: Settings) -> list[Figure]:
    """Inject one kind of fault after the other."""
    logging.getLogger("bertscore_onnx.serving").setLevel(logging.CRITICAL)  # breakdowns are what is asked for
    rig = Rig(settings.tiny)
    kinds = [*BREAKING, *PASSING]
    hanging, undefined, slowest, unnoticed, recovery, injected = 0, 0, 0.0, 0.0, 0.0, 0
    for number in range(settings.sizes.faults):
        kind = kinds[number % len(kinds)]
        begun = time.monotonic()
        futures = _submit_to(rig, {**BREAKING, **PASSING}[kind])
        unanswered = wait(futures, DEADLINE + 2).not_done
        hanging += len(unanswered)
        undefined += sum(map(_is_undefined, futures))
        slowest = max(slowest, time.monotonic() - begun)
        recovery = max(recovery, rig.await_ready(30))
        injected += begun <= rig.faults.injected_at < math.inf
        if kind in BREAKING:
            seen = next((at for at in list(rig.unready) if at >= rig.faults.injected_at), math.inf)
            unnoticed = max(unnoticed, seen - rig.faults.injected_at)
    restarts = rig.batcher.stats().restarts
    rig.close()
    return [
        none_of(f"futures that hang after {settings.sizes.faults} faults", hanging),
        none_of("answers that are not numbers", undefined),
        none_of("faults that were not injected", settings.sizes.faults - injected),
        at_most("longest wait for an answer or an error", slowest, "s", DEADLINE + 0.5),
        at_most("longest until a broken worker shows as not ready", unnoticed, "s", 2),
        at_most("longest until ready again", recovery, "s", 30),
        at_least("workers replaced", restarts, "", _broken(settings.sizes.faults)),
    ]


def _submit_to(rig: Rig, fault: Callable[[FaultyScorer], None]) -> list["Future[Scores]"]:
    """Arm a fault and submit requests that meet it."""
    scorer = rig.scorer
    rig.faults.injected_at = math.inf
    rig.faults.next = lambda: fault(scorer)
    return [rig.batcher.submit([f"a text {number}"], ["another text"]) for number in range(WAITING)]


def _is_undefined(future: "Future[Scores]") -> bool:
    """Say whether a future gives scores that are not numbers."""
    return future.done() and future.exception() is None and not is_finite(future.result())


def _broken(faults: int) -> int:
    """Return how many of the faults break a worker."""
    kinds = len(BREAKING) + len(PASSING)
    return sum(number % kinds < len(BREAKING) for number in range(faults))
