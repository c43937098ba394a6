"""Case 3: faults in the scorer of a batcher, while its health is probed; callers get errors, and it recovers."""

import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import OutOfMemoryError
from bertscore_onnx.scores import Scores
from bertscore_onnx_service import MicroBatcher
from bertscore_onnx_service.batcher.worker import is_finite
from harness.processes import Background
from harness.results import Figure
from reliability.report import at_least, at_most, none_of
from reliability.settings import Settings

DEADLINE = 3.0
MAX_STALL = 0.3
LOADING = 0.1  # seconds that a replacement takes to load, as with a larger model, so that the probe sees it
PROBE_SECONDS = 0.002
WAITING = 4  # requests that are submitted at each fault
READY_SECONDS = 30.0


class FaultyScorer(BERTScorer):
    """A scorer to which a fault happens at its next call."""

    def __init__(self, path: Path) -> None:
        """Load a bundle."""
        super().__init__(path, device="cpu")
        self.fault: Callable[[FaultyScorer], None] | None = None
        self.injected_at = math.inf  # by `time.monotonic()`
        self.gives_nan = False
        self.is_broken = False
        self.is_stalled = False

    def score_pairs(self, *arguments: Any, **named: Any) -> Any:
        """Score the pairs, unless a fault is due."""
        self.gives_nan = False
        fault, self.fault = self.fault, None
        if fault is not None:
            self.injected_at = time.monotonic()
            fault(self)
        if self.is_stalled:
            time.sleep(2 * MAX_STALL)  # the fault itself
        if self.is_broken:
            raise RuntimeError("An injected fault that lasts.")
        scores, counts = super().score_pairs(*arguments, **named)
        if self.gives_nan:
            scores = Scores(scores.P * math.nan, scores.R, scores.F, scores.best_reference)
        return scores, counts


class Rig:
    """A batcher with faulty scorers, and a thread that probes its health all the time."""

    def __init__(self, path: Path) -> None:
        """Start both."""
        self._path = path
        self.scorer = FaultyScorer(path)
        self.batcher = MicroBatcher(
            self.scorer, deadline=DEADLINE, max_stall=MAX_STALL, max_delay=0.01, make_scorer=self._make_replacement
        )
        self.unready: list[float] = []  # when the probe found it not ready, by `time.monotonic()`
        self._probe = Background(self._probe_health, PROBE_SECONDS)

    def seen_after(self, fault_at: float) -> float:
        """Return the seconds from a fault until the probe found the batcher not ready."""
        return next((at for at in list(self.unready) if at >= fault_at), math.inf) - fault_at

    def await_ready(self) -> float:
        """Wait until the batcher is ready and scores; return the seconds, infinity after `READY_SECONDS`."""
        begun = time.monotonic()
        while time.monotonic() - begun < READY_SECONDS:
            if self.batcher.ready and self.batcher.submit(["a"], ["b"]).exception() is None:
                return time.monotonic() - begun
            time.sleep(PROBE_SECONDS)
        return math.inf

    def close(self) -> None:
        """Stop both."""
        self._probe.close()
        self.batcher.close()
        self.scorer.close()

    def _make_replacement(self) -> BERTScorer:
        time.sleep(LOADING)
        self.scorer = FaultyScorer(self._path)
        return self.scorer

    def _probe_health(self) -> None:
        if not self.batcher.ready:
            self.unready.append(time.monotonic())


def _raise(error: BaseException) -> None:
    raise error


BREAKING: dict[str, Callable[[FaultyScorer], None]] = {  # faults that break the worker
    "an exception that lasts": lambda scorer: setattr(scorer, "is_broken", True),
    "stalls that last": lambda scorer: setattr(scorer, "is_stalled", True),
    "a killed worker": lambda scorer: _raise(SystemExit("injected")),
}
PASSING: dict[str, Callable[[FaultyScorer], None]] = {  # faults that the worker survives
    "an exception": lambda scorer: _raise(RuntimeError("injected")),
    "out of memory": lambda scorer: _raise(OutOfMemoryError("injected")),
    "a run that is only long": lambda scorer: time.sleep(2 * MAX_STALL),  # the fault itself
    "NaN": lambda scorer: setattr(scorer, "gives_nan", True),
}


def measure(settings: Settings) -> list[Figure]:
    """Inject one kind of fault after another."""
    logging.getLogger("bertscore_onnx_service.batcher").setLevel(
        logging.CRITICAL
    )  # it logs the faults, which are intended
    rig = Rig(settings.tiny)
    kinds = [*BREAKING, *PASSING]
    hanging, undefined, slowest, unnoticed, recovery, injected, breaking = 0, 0, 0.0, 0.0, 0.0, 0, 0
    for number in range(settings.sizes.faults):
        kind = kinds[number % len(kinds)]
        begun = time.monotonic()
        scorer = rig.scorer  # a breaking fault replaces it
        scorer.injected_at, scorer.fault = math.inf, {**BREAKING, **PASSING}[kind]
        futures = [rig.batcher.submit([f"a text {waiting}"], ["another text"]) for waiting in range(WAITING)]
        hanging += len(wait(futures, DEADLINE + 2).not_done)
        undefined += sum(map(_is_undefined, futures))
        slowest = max(slowest, time.monotonic() - begun)
        recovery = max(recovery, rig.await_ready())
        injected += begun <= scorer.injected_at < math.inf
        if kind in BREAKING:
            breaking += 1
            unnoticed = max(unnoticed, rig.seen_after(scorer.injected_at))
    restarts = rig.batcher.stats().restarts
    rig.close()
    return [
        none_of(f"futures that hang after {settings.sizes.faults} faults", hanging),
        none_of("answers that are not numbers", undefined),
        none_of("faults that were not injected", settings.sizes.faults - injected),
        at_most("longest wait for an answer or an error", slowest, "s", DEADLINE + 0.5),
        at_most("longest until a broken worker shows as not ready", unnoticed, "s", 2),
        at_most("longest until ready again", recovery, "s", READY_SECONDS),
        at_least("workers replaced", restarts, "", breaking),
    ]


def _is_undefined(future: "Future[Scores]") -> bool:
    """Return whether a future has scores that are not numbers."""
    return future.done() and future.exception() is None and not is_finite(future.result())
