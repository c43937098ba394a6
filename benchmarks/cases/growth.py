"""How our speed changes with the length of the texts, the number of pairs and the references of a candidate."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.contest.contest import REST
from benchmarks.contest.worker import Worker
from benchmarks.settings import Settings
from harness.results import Case, Curve
from harness.texts import of_lengths, repeated

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
TOKENS_A_SIDE = 16_384
COUNTS = (10, 30, 100, 300, 1000, 3000)
REFERENCES = (1, 2, 4, 8)
CANDIDATES = 300


def measure_growth(settings: Settings) -> Case:
    """Measure pairs a second along three properties of the texts."""
    model = settings.models.minilm
    case = Case("growth", "MiniLM, how the cost grows")
    with Worker() as worker:
        worker.ask("load", engine="ours", path=str(model.bundle()), options={"device": "cpu"})
        case.curves = [
            Curve("tokens of a text", _along_lengths(settings, worker)),
            Curve("pairs", _along_counts(settings, worker)),
            Curve("references of a candidate", _along_references(settings, worker)),
        ]
    return case


def _along_lengths(settings: Settings, worker: Worker) -> list[tuple[float, float]]:
    model = settings.models.minilm
    points = []
    for length in LENGTHS:
        lengths = [length] * settings.limit(TOKENS_A_SIDE // length)
        sides = [of_lengths(texts, lengths, model.token_counts) for texts in settings.all_pairs]
        points.append((float(length), _rate(worker, settings.rounds, sides[0], sides[1])))
    return points


def _along_counts(settings: Settings, worker: Worker) -> list[tuple[float, float]]:
    points = []
    for count in sorted({settings.limit(count) for count in COUNTS}):
        candidates, references = (repeated(texts, count) for texts in settings.all_pairs)
        points.append((float(count), _rate(worker, settings.rounds, candidates, references)))
    return points


def _along_references(settings: Settings, worker: Worker) -> list[tuple[float, float]]:
    candidates, _ = settings.some_pairs(CANDIDATES)
    _, references = settings.all_pairs
    points = []
    for count in REFERENCES:
        groups = [repeated(references, count, count * number) for number in range(len(candidates))]  # none twice
        points.append((float(count), count * _rate(worker, settings.rounds, candidates, groups)))
    return points


def _rate(worker: Worker, rounds: int, candidates: Sequence[str], references: Sequence[Any]) -> float:
    """Return the median of candidates scored a second."""
    worker.ask("prepare", workload="together", arguments={"candidates": candidates, "references": references})
    worker.ask("run")
    seconds: list[float] = []
    for _ in range(rounds):
        time.sleep(REST)  # or the threads of the run before count in
        seconds += worker.ask("run")
    return len(candidates) / statistics.median(seconds)
