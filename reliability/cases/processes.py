"""Processes are started after the parent has scored, and while it scores: they answer right or say why not."""

import multiprocessing
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.serving import MicroBatcher
from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.bounds import at_least, none_of
from reliability.settings import Settings

GUARD_SECONDS = 60.0
TOLERANCE = 1e-5
PAIRS = 20

Trial = tuple[str, Callable[..., list[float]], tuple[Any, ...]]
"""A method of `multiprocessing`, what to do in the process, and with what."""


def measure(settings: Settings) -> list[Figure]:
    """Start processes by every method, with an idle parent and with a busy one."""
    outcomes: Counter[str] = Counter()
    with BERTScorer(settings.minilm, device="cpu") as scorer, MicroBatcher(scorer) as batcher:
        expected = score_with(scorer)
        trials: list[Trial] = [
            ("fork", score_with, (scorer,)),
            ("fork", submit_to, (batcher,)),
            *((method, score_with_own, (settings.minilm,)) for method in ("fork", "spawn", "forkserver")),
            *((method, score_with, (scorer,)) for method in ("spawn", "forkserver")),
        ]
        for _ in range(settings.sizes.started_processes):
            outcomes.update(_outcome(trial, expected) for trial in trials)
            with _kept_busy(scorer):
                outcomes.update(_outcome(trial, expected) for trial in trials)
    right, clear = outcomes["right"], outcomes["clear error"]
    return [
        none_of(f"of {outcomes.total()} processes, hanging", outcomes["hang"]),
        none_of("crashes", outcomes["crash"]),
        none_of("wrong answers", outcomes["wrong"]),
        none_of("errors that are not the library's own", outcomes["unclear error"]),
        at_least("right answers", right, "", 8 * settings.sizes.started_processes),
        at_least("clear errors", clear, "", 6 * settings.sizes.started_processes),
    ]


def score_with(scorer: BERTScorer) -> list[float]:
    """Score with a scorer that is there."""
    return [float(value) for value in scorer.score(*synthetic_pairs(PAIRS)).F]


def score_with_own(bundle: Path) -> list[float]:
    """Score with a scorer of one's own."""
    with BERTScorer(bundle, device="cpu") as scorer:
        return score_with(scorer)


def submit_to(batcher: MicroBatcher) -> list[float]:
    """Score by a batcher that is there."""
    return [float(value) for value in batcher.submit(*synthetic_pairs(PAIRS)).result().F]


def _outcome(trial: Trial, expected: list[float]) -> str:
    """Start a process; say how it went."""
    method, work, arguments = trial
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(sender, work, arguments))  # type: ignore[attr-defined]
    try:
        process.start()
    except BertScoreOnnxError:  # its arguments cannot be sent
        return "clear error"
    sender.close()
    try:
        if not receiver.poll(GUARD_SECONDS):
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
    return "right" if np.abs(np.array(answer) - expected).max() <= TOLERANCE else "wrong"


def _report(sender: Connection, work: Callable[..., list[float]], arguments: tuple[Any, ...]) -> None:
    try:
        sender.send(work(*arguments))
    except BertScoreOnnxError:
        sender.send("clear error")
    except Exception:
        sender.send("unclear error")


@contextmanager
def _kept_busy(scorer: BERTScorer) -> Iterator[None]:
    """Score in another thread all the while."""
    is_over, has_begun = threading.Event(), threading.Event()

    def keep_scoring() -> None:
        while not is_over.is_set():
            has_begun.set()
            score_with(scorer)

    thread = threading.Thread(target=keep_scoring)
    thread.start()
    has_begun.wait()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
