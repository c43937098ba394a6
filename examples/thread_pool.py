"""Scores from a thread pool: each thread submits one pair at a time, and the pairs are scored
together.

Run as a script with the path of a bundle, this scores the example texts in this folder.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bertscore_onnx import BERTScorer
from bertscore_onnx_service import MicroBatcher


def score_pairs(bundle: str, cands: list[str], refs: list[str]) -> list[float]:
    """Return the F of each pair."""
    with (
        BERTScorer(bundle) as scorer,
        MicroBatcher(scorer) as batcher,
        ThreadPoolExecutor(16) as pool,
    ):

        def score_pair(cand: str, ref: str) -> float:
            return float(batcher.submit([cand], [ref]).result().F[0])

        return list(pool.map(score_pair, cands, refs))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"Usage: python {sys.argv[0]} BUNDLE")
    here = Path(__file__).parent
    candidates, references = (
        (here / name).read_text(encoding="utf-8").splitlines()
        for name in ("candidates.txt", "references.txt")
    )
    for f1 in score_pairs(sys.argv[1], candidates, references):
        print(f"{f1:.6f}")
