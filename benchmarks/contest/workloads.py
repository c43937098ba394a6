"""The work that is measured, the same for every engine.

Each function does its work once and returns the seconds of every timed call, and the F of every pair.
"""

import shutil
import time
from collections.abc import Callable
from typing import Any

from harness.texts import distinct_pairs

Outcome = tuple[list[float], list[float]]


def score_together(scorer: Any, candidates: list[str], references: list[Any]) -> Outcome:
    """Score all pairs in one call."""
    begin = time.perf_counter()
    _, _, f = scorer.score(candidates, references)
    return [time.perf_counter() - begin], [float(one) for one in f]


def score_singly(scorer: Any, candidates: list[str], references: list[str]) -> Outcome:
    """Score one pair a call."""
    seconds, scores = [], []
    for candidate, reference in zip(candidates, references, strict=True):
        begin = time.perf_counter()
        _, _, f = scorer.score([candidate], [reference])
        seconds.append(time.perf_counter() - begin)
        scores.append(float(f[0]))
    return seconds, scores


def score_systems(scorer: Any, systems: list[list[str]], references: list[str], *, encode_once: bool) -> Outcome:
    """Score the outputs of several systems against the same references."""
    begin = time.perf_counter()
    against = scorer.encode(references) if encode_once else references
    results = [scorer.score(candidates, against) for candidates in systems]
    return [time.perf_counter() - begin], [float(one) for _, _, f in results for one in f]


def compare_systems(scorer: Any, systems: list[list[str]], references: list[str], *, test: bool) -> Outcome:
    """Compare systems, with the paired test and the segments that differ most, or only score them."""
    if not test:
        return score_systems(scorer, systems, references, encode_once=True)
    from bertscore_onnx.evaluation import compare

    named = {f"system {number}": texts for number, texts in enumerate(systems)}
    begin = time.perf_counter()
    comparison = compare(named, references, scorer=scorer)
    return [time.perf_counter() - begin], comparison.metrics[0].segment_scores.ravel().tolist()


def stream(scorer: Any, count: int) -> Outcome:
    """Score pairs that are made up as they are asked for, and keep none of the scores."""
    begin = time.perf_counter()
    scored = sum(1 for _ in scorer.stream(distinct_pairs(count)))
    if scored != count:
        raise RuntimeError(f"The stream gave {scored} scores for {count} pairs.")
    return [time.perf_counter() - begin], []


def score_files(scorer: Any, files: list[str], few: int, output: str) -> Outcome:
    """Score the rows of the first few files, and then of all; each time the folder of the output is made again."""
    from pyarrow import parquet

    seconds = []
    for some in (files[:few], files):
        shutil.rmtree(output, ignore_errors=True)
        begin = time.perf_counter()
        scorer.score_files(some, output)
        seconds.append(time.perf_counter() - begin)
    scored = parquet.read_table(output, columns=["id", "f1"]).sort_by("id")
    return seconds, scored["f1"].to_pylist()


WORKLOADS: dict[str, Callable[..., Outcome]] = {
    "together": score_together,
    "singly": score_singly,
    "systems": score_systems,
    "compared": compare_systems,
    "stream": stream,
    "files": score_files,
}
