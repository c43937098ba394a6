"""Many threads share one scorer, and many make and close their own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from bertscore_onnx import BERTScorer
from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.bounds import at_most, none_of
from reliability.settings import Settings

TOLERANCE = 1e-6
PAIRS = 3


def measure(settings: Settings) -> list[Figure]:
    """Score the same texts in all threads; then open and close in all threads."""
    sizes = settings.sizes
    candidates, references = synthetic_pairs(PAIRS)
    with BERTScorer(settings.minilm, device="cpu") as scorer:
        expected = np.stack(list(scorer.score(candidates, references)))
        differences: list[float] = []

        def score() -> None:
            found = np.stack(list(scorer.score(candidates, references)))
            differences.append(float(np.abs(found - expected).max()))

        failed = _in_threads(score, sizes.sharing_threads, sizes.calls_a_thread)

    def open_and_close() -> None:
        with BERTScorer(settings.tiny, device="cpu") as own:
            own.score(candidates, references)

    failed_openings = _in_threads(open_and_close, sizes.sharing_threads, sizes.openings_a_thread)
    calls, openings = (sizes.sharing_threads * count for count in (sizes.calls_a_thread, sizes.openings_a_thread))
    return [
        none_of(f"of {calls:,} calls in {sizes.sharing_threads} threads, failed", failed),
        at_most("largest difference between their scores", max(differences, default=np.inf), "", TOLERANCE),
        none_of(f"of {openings:,} scorers made and closed, failed", failed_openings),
    ]


def _in_threads(work: Callable[[], None], threads: int, times: int) -> int:
    """Call `work` `times` times in each of `threads` threads, all at once; return how often it failed."""
    barrier = Barrier(threads)

    def repeat() -> int:
        barrier.wait()
        failed = 0
        for _ in range(times):
            try:
                work()
            except Exception:
                failed += 1
        return failed

    with ThreadPoolExecutor(threads) as pool:
        return sum(future.result() for future in [pool.submit(repeat) for _ in range(threads)])
