"""Cases 4, 5 and 7: the memory of one scorer, scorers in many threads, and scorers in started
processes.
"""

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx_service import MicroBatcher
from harness.processes import Background, resident_mb
from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.report import at_least, at_most, none_of
from reliability.settings import Settings

# --- case 4: the graph runs on random shapes; memory settles, and the same check finds a planted
# leak ---

SPREAD_MB = 100.0
PLANTED_MB = 2 * SPREAD_MB  # that the planted leak loses in the second half
LEAKING_RUNS = 30
MOST_TOKENS = 1024  # padded tokens per run; twice as many as the encoder uses


def measure_memory(settings: Settings) -> list[Figure]:
    """Run the graph without a leak, then with one."""
    bundle = open_bundle(settings.minilm)
    model = Encoder(bundle, device="cpu")
    runs = settings.sizes.shapes
    sound = late_spread(_memory_over_runs(model, runs, leak_mb=0))
    leaking = late_spread(_memory_over_runs(model, LEAKING_RUNS, 2 * PLANTED_MB / LEAKING_RUNS))
    model.close()
    return [
        at_most(f"spread of memory in the second half of {runs:,} runs", sound, "MB", SPREAD_MB),
        at_least("the same with a planted leak", leaking, "MB", SPREAD_MB),
    ]


def late_spread(samples: Sequence[float]) -> float:
    """Return the spread of the second half of a run, when all caches are filled."""
    late = samples[len(samples) // 2 :]
    return max(late) - min(late)


def _memory_over_runs(model: Encoder, runs: int, leak_mb: float) -> list[float]:
    draw = random.Random(0)
    lost, samples = [], []
    for _ in range(runs):
        tokens = round(2 ** draw.uniform(1, 9))
        batch = draw.randint(1, max(1, MOST_TOKENS // tokens))
        mask = np.ones((batch, tokens), dtype=np.int64)
        model.unit_vectors(np.full_like(mask, 5), mask)
        lost.append(np.ones(int(leak_mb * 1e6), dtype=np.uint8))
        samples.append(resident_mb())
    return samples


# --- case 5: many threads share one scorer, and many make and close their own ---

SHARED_TOLERANCE = 1e-6
SHARED_PAIRS = 3


def measure_threads(settings: Settings) -> list[Figure]:
    """Score the same texts in all threads; then make and close scorers in all threads."""
    sizes = settings.sizes
    candidates, references = synthetic_pairs(SHARED_PAIRS)
    with BERTScorer(settings.minilm, device="cpu") as scorer:
        expected = np.stack(list(scorer.score(candidates, references)))
        differences: list[float] = []

        def score() -> None:
            scores = np.stack(list(scorer.score(candidates, references)))
            differences.append(float(np.abs(scores - expected).max()))

        failed = _in_threads(score, sizes.sharing_threads, sizes.calls_per_thread)

    def open_and_close() -> None:
        with BERTScorer(settings.tiny, device="cpu") as own:
            own.score(candidates, references)

    failed_openings = _in_threads(open_and_close, sizes.sharing_threads, sizes.openings_per_thread)
    calls, openings = (
        sizes.sharing_threads * count
        for count in (sizes.calls_per_thread, sizes.openings_per_thread)
    )
    return [
        none_of(f"of {calls:,} calls in {sizes.sharing_threads} threads, failed", failed),
        at_most(
            "largest difference between their scores",
            max(differences, default=np.inf),
            "",
            SHARED_TOLERANCE,
        ),
        none_of(f"of {openings:,} scorers made and closed, failed", failed_openings),
    ]


def _in_threads(work: Callable[[], None], threads: int, times: int) -> int:
    """Call `work` this many times in each thread, all at the same time; return how often it
    failed.
    """
    barrier = threading.Barrier(threads)

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


# --- case 7: processes are started after the parent has scored, and while it scores ---

PROCESS_SECONDS = 60.0
PROCESS_TOLERANCE = 1e-5
PROCESS_PAIRS = 20

# a start method, a function and its arguments
Trial = tuple[str, Callable[..., list[float]], tuple[Any, ...]]


def measure_processes(settings: Settings) -> list[Figure]:
    """Start processes by every method, with an idle parent and a busy one: they score right or
    raise a clear error.
    """
    outcomes: Counter[str] = Counter()
    with BERTScorer(settings.minilm, device="cpu") as scorer, MicroBatcher(scorer) as batcher:
        expected = score_with(scorer)
        trials: list[Trial] = [
            ("fork", score_with, (scorer,)),
            ("fork", submit_to, (batcher,)),
            *(
                (method, score_with_own, (settings.minilm,))
                for method in ("fork", "spawn", "forkserver")
            ),
            *((method, score_with, (scorer,)) for method in ("spawn", "forkserver")),
        ]
        for _ in range(settings.sizes.started_processes):
            outcomes.update(_outcome(trial, expected) for trial in trials)
            with Background(partial(score_with, scorer)):
                outcomes.update(_outcome(trial, expected) for trial in trials)
    return [
        none_of(f"of {outcomes.total()} processes, hanging", outcomes["hang"]),
        none_of("crashes", outcomes["crash"]),
        none_of("wrong answers", outcomes["wrong"]),
        none_of("errors that are not the library's own", outcomes["unclear error"]),
        at_least("right answers", outcomes["right"], "", 8 * settings.sizes.started_processes),
        at_least("clear errors", outcomes["clear error"], "", 6 * settings.sizes.started_processes),
    ]


def score_with(scorer: BERTScorer) -> list[float]:
    """Score with a given scorer."""
    return [float(value) for value in scorer.score(*synthetic_pairs(PROCESS_PAIRS)).F]


def score_with_own(bundle: Path) -> list[float]:
    """Score with a new scorer."""
    with BERTScorer(bundle, device="cpu") as scorer:
        return score_with(scorer)


def submit_to(batcher: MicroBatcher) -> list[float]:
    """Score with a given batcher."""
    return [float(value) for value in batcher.submit(*synthetic_pairs(PROCESS_PAIRS)).result().F]


def _outcome(trial: Trial, expected: list[float]) -> str:
    """Start a process and return its outcome."""
    method, work, arguments = trial
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(sender, work, arguments))  # type: ignore[attr-defined]
    try:
        process.start()
    except BertScoreOnnxError:  # its arguments cannot be pickled
        return "clear error"
    sender.close()
    try:
        if not receiver.poll(PROCESS_SECONDS):
            return "hang"
        answer = receiver.recv()
    except EOFError:
        return "crash"
    finally:
        process.kill()
        process.join()
        receiver.close()
    if isinstance(answer, str):
        return answer
    return "right" if np.abs(np.array(answer) - expected).max() <= PROCESS_TOLERANCE else "wrong"


def _send_result(
    sender: Connection, work: Callable[..., list[float]], arguments: tuple[Any, ...]
) -> None:
    try:
        sender.send(work(*arguments))
    except BertScoreOnnxError:
        sender.send("clear error")
    except Exception:
        sender.send("unclear error")
