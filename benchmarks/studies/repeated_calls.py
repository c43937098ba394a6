"""Measures what `score()` costs more than a `BERTScorer` for one pair a call.

    python benchmarks/studies/repeated_calls.py BUNDLE [--calls N] [--rounds N]

Rounds of calls of the two alternate in one process; each prints the median time of a call of `score()`, of a call of
`BERTScorer.score`, and their ratio.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

from bertscore_onnx import BERTScorer, score

CANDIDATES, REFERENCES = ["The weather is cold today."], ["It is freezing today."]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", metavar="BUNDLE")
    parser.add_argument("--calls", type=int, default=200, help="in a round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    ratios = []
    with BERTScorer(arguments.bundle) as scorer:
        for _ in range(arguments.rounds):
            function = median_ms(lambda: score(CANDIDATES, REFERENCES, arguments.bundle), arguments.calls)
            method = median_ms(lambda: scorer.score(CANDIDATES, REFERENCES), arguments.calls)
            ratios.append(function / method)
            print(f"score() {function:.3f} ms, BERTScorer {method:.3f} ms, ratio {ratios[-1]:.3f}")
    print(f"median ratio {median(ratios):.3f}")


def median_ms(call: Callable[[], object], calls: int) -> float:
    """Return the median time of a call in milliseconds, after one that is not counted."""
    call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * median(times)


if __name__ == "__main__":
    main()
