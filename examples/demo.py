"""Scores a few pairs with a bundle and prints them with their P, R and F.

    python demo.py BUNDLE

BUNDLE is a folder that `bertscore-onnx export` wrote.
"""

import sys

from bertscore_onnx import BERTScorer

PAIRS = [
    ("The dog chased the cat across the garden.", "The cat chased the dog across the garden."),
    ("The weather is cold today.", "It is cold today."),
    (
        "The concert was cancelled at the last minute.",
        "At the very last moment they called the concert off.",
    ),
    ("It is freezing today.", "The stock market closed higher on Friday."),
]
"""Candidates, each with its reference."""


def main() -> None:
    """Print a table."""
    candidates, references = zip(*PAIRS, strict=True)
    with BERTScorer(sys.argv[1]) as scorer:
        scores = scorer.score(candidates, references)
    print("    P      R      F  candidate, and its reference")
    for score, candidate, reference in zip(scores.each(), candidates, references, strict=True):
        print(f"{score.P:.3f}  {score.R:.3f}  {score.F:.3f}  {candidate}\n{'':21}{reference}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
