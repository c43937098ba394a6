"""Measures how large a chunk of texts should be.

    python benchmarks/studies/chunk_size.py BUNDLE CANDIDATES REFERENCES

Scores the same pairs with several sizes, each in a process of its own and in turn, and prints for each the median rate
as a share of the best, and the peak memory. CANDIDATES and REFERENCES are files with one text a line.
"""

import multiprocessing
import resource
import statistics
import sys
import time
from pathlib import Path

MEGABYTES = (4, 8, 16, 32, 64, 128, 256)
ROUNDS = 3


def main() -> None:
    """Measure and print."""
    bundle, *files = sys.argv[1:]
    pairs = list(zip(*(Path(file).read_text(encoding="utf-8").splitlines() for file in files), strict=True))
    measured: dict[int, list[tuple[float, float]]] = {size: [] for size in MEGABYTES}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as process:
        for _ in range(ROUNDS):
            for size in MEGABYTES:
                measured[size].append(process.apply(measure, (bundle, pairs, size)))
    rates = {size: statistics.median(rate for rate, _ in rounds) for size, rounds in measured.items()}
    for size, rounds in measured.items():
        memory = max(memory for _, memory in rounds)
        print(f"{size:4} MB a chunk: {rates[size] / max(rates.values()):.2f} of the best rate, peak {memory:.0f} MB")


def measure(bundle: str, pairs: list[tuple[str, str]], megabytes: int) -> tuple[float, float]:
    """Return pairs a second and the peak memory in MB."""
    from bertscore_onnx import BERTScorer
    from bertscore_onnx.scoring import pipeline

    pipeline.CHUNK_BYTES = megabytes * 1_000_000
    with BERTScorer(bundle, device="cpu") as scorer:
        scorer.score(["warm"], ["up"])
        begun = time.perf_counter()
        for _ in scorer.stream(pairs):
            pass
        rate = len(pairs) / (time.perf_counter() - begun)
    return rate, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    main()
