"""Measures calls of few and of many pairs by scorers that are optimized for throughput and for latency.

    python benchmarks/studies/throughput_or_latency.py BUNDLE --texts CANDIDATES REFERENCES [--threads N …] [--rounds N]

For each number of threads and of pairs the two alternate in one process; each line has the median times of a call and
their ratio.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from typing import get_args

from bertscore_onnx import BERTScorer
from bertscore_onnx.encoding.session import OptimizeFor
from harness.texts import read_pairs, repeated

PAIRS = (1, 2, 8, 32, 1000)
PAIRS_A_ROUND = 100
"""A round has as many calls as it takes for these, at least one."""

REST = 0.1
"""Seconds before each round, in which the threads of the scorer before stop spinning."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", metavar="BUNDLE")
    parser.add_argument("--texts", type=Path, nargs=2, metavar=("CANDIDATES", "REFERENCES"), required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    texts = read_pairs(*arguments.texts)
    for threads in arguments.threads:
        scorers = {
            aim: BERTScorer(arguments.bundle, nthreads=threads, optimize_for=aim) for aim in get_args(OptimizeFor)
        }
        for number in PAIRS:
            seconds: dict[str, list[float]] = {aim: [] for aim in scorers}
            for _ in range(arguments.rounds):
                for aim, scorer in scorers.items():
                    time.sleep(REST)  # or the threads of the scorer before count in
                    seconds[aim].append(median_call(scorer, texts, number))
            throughput, latency = (1000 * median(times) for times in seconds.values())
            print(
                f"{threads} threads, {number} pairs: throughput {throughput:.1f} ms, latency {latency:.1f} ms, "
                f"ratio {latency / throughput:.2f}",
                flush=True,
            )
        for scorer in scorers.values():
            scorer.close()


def median_call(scorer: BERTScorer, texts: tuple[list[str], list[str]], number: int) -> float:
    """Return the median seconds of calls of this many pairs, after one that is not counted."""
    times = []
    for call in range(1 + max(1, PAIRS_A_ROUND // number)):
        candidates, references = (repeated(side, number, call * number) for side in texts)
        begin = time.perf_counter()
        scorer.score(candidates, references)
        times.append(time.perf_counter() - begin)
    return median(times[1:])


if __name__ == "__main__":
    main()
