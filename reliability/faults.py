"""Case 3: faults in the scorer of a batcher; callers get errors, and a batcher that cannot recover
is not live.
"""

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
from bertscore_onnx_service import MicroBatcher
from bertscore_onnx_service.batcher import batcher
from bertscore_onnx_service.batcher.worker import is_finite
from harness.results import Figure
from reliability.report import at_most, none_of
from reliability.settings import Settings

DEADLINE = 1.0  # the longest call too, after which a worker counts as stalled
PROBE_SECONDS = 0.002
WAITING = 4  # requests that are submitted at each fault
PATIENCE = 30.0


class FaultyScorer(BERTScorer):
    """A scorer to which a fault happens at its next call."""

    def __init__(self, path: Path) -> None:
        """Load a bundle."""
        super().__init__(path, device="cpu")
        self.fault: Callable[[FaultyScorer], object] | None = None
        self.was_injected = False
        self.gives_nan = False
        self.is_broken = False
        self.let_go = threading.Event()  # ends a call that would not return

    def score_pairs(self, *arguments: Any, **named: Any) -> Any:
        """Score the pairs, unless a fault is due."""
        self.gives_nan = False
        fault, self.fault = self.fault, None
        if fault is not None:
            self.was_injected = True
            fault(self)
        if self.is_broken:
            raise RuntimeError("An injected fault that lasts.")
        scores, counts = super().score_pairs(*arguments, **named)
        if self.gives_nan:
            scores = Scores(scores.P * math.nan, scores.R, scores.F, scores.best_reference)
        return scores, counts


class Rig:
    """A batcher with a faulty scorer."""

    def __init__(self, path: Path) -> None:
        """Start it."""
        self.scorer = FaultyScorer(path)
        self.batcher = MicroBatcher(self.scorer, deadline=DEADLINE, max_delay=0.01)

    def is_dead(self) -> bool:
        """Return whether the batcher is not live."""
        return not self.batcher.live

    def has_recovered(self) -> bool:
        """Return whether the batcher is ready, and scores."""
        return self.batcher.ready and self.batcher.submit(["a"], ["b"]).exception() is None

    def close(self) -> None:
        """Stop it."""
        self.scorer.let_go.set()
        self.batcher.close()
        self.scorer.close()


def seconds_until(condition: Callable[[], bool], begun: float) -> float:
    """Wait for a condition; return the seconds since `begun`, infinity after `PATIENCE`."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > give_up:
            return math.inf
        time.sleep(PROBE_SECONDS)
    return time.monotonic() - begun


def _raise(error: BaseException) -> None:
    raise error


# faults after which a new process is needed
BREAKING: dict[str, Callable[[FaultyScorer], object]] = {
    "an exception that lasts": lambda scorer: setattr(scorer, "is_broken", True),
    "an error that ends threads": lambda scorer: _raise(SystemExit("injected")),
    "a call that does not return": lambda scorer: scorer.let_go.wait(PATIENCE),
}
PASSING: dict[str, Callable[[FaultyScorer], object]] = {  # faults that the worker survives
    "an exception": lambda scorer: _raise(RuntimeError("injected")),
    "out of memory": lambda scorer: _raise(OutOfMemoryError("injected")),
    "a call that is only long": lambda scorer: time.sleep(1.5 * DEADLINE),  # the fault itself
    "NaN": lambda scorer: setattr(scorer, "gives_nan", True),
}


def measure(settings: Settings) -> list[Figure]:
    """Inject one kind of fault after another; after one that breaks the batcher, start another."""
    logging.getLogger("bertscore_onnx_service.batcher").setLevel(
        logging.CRITICAL
    )  # it logs the faults, which are intended
    batcher.MIN_STALL = DEADLINE
    rig = Rig(settings.tiny)
    kinds = [*BREAKING, *PASSING]
    hanging, undefined, slowest, unnoticed, recovery, injected = 0, 0, 0.0, 0.0, 0.0, 0
    for number in range(settings.sizes.faults):
        kind = kinds[number % len(kinds)]
        begun = time.monotonic()
        rig.scorer.was_injected, rig.scorer.fault = False, {**BREAKING, **PASSING}[kind]
        futures = [
            rig.batcher.submit([f"a text {waiting}"], ["another text"])
            for waiting in range(WAITING)
        ]
        hanging += len(wait(futures, DEADLINE + 2).not_done)
        undefined += sum(map(_is_undefined, futures))
        slowest = max(slowest, time.monotonic() - begun)
        injected += rig.scorer.was_injected
        if kind in BREAKING:
            unnoticed = max(unnoticed, seconds_until(rig.is_dead, begun))
            rig.close()
            rig = Rig(settings.tiny)
        recovery = max(recovery, seconds_until(rig.has_recovered, time.monotonic()))
    rig.close()
    return [
        none_of(f"futures that hang after {settings.sizes.faults} faults", hanging),
        none_of("answers that are not numbers", undefined),
        none_of("faults that were not injected", settings.sizes.faults - injected),
        at_most("longest wait for an answer or an error", slowest, "s", DEADLINE + 0.5),
        at_most(
            "longest until a batcher that cannot score is not live", unnoticed, "s", DEADLINE + 2
        ),
        at_most("longest until ready after other faults", recovery, "s", PATIENCE),
    ]


def _is_undefined(future: "Future[Scores]") -> bool:
    """Return whether a future has scores that are not numbers."""
    return future.done() and future.exception() is None and not is_finite(future.result())
