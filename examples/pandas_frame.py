"""Adds the columns P, R and F to a pandas frame.

    pip install pandas 'bertscore-onnx[cpu]'
    python pandas_frame.py BUNDLE TABLE.jsonl > SCORED.jsonl

The table has the columns `candidate` and `reference`; a cell of `reference` may hold a list of references.
"""

import sys

import pandas as pd

from bertscore_onnx import BERTScorer


def with_scores(
    frame: pd.DataFrame, scorer: BERTScorer, candidate: str = "candidate", reference: str = "reference"
) -> pd.DataFrame:
    """Return the frame with three more columns."""
    return frame.assign(**scorer.score(frame[candidate], frame[reference])._asdict())


if __name__ == "__main__":
    bundle, table = sys.argv[1:]
    with BERTScorer(bundle) as scorer:
        print(with_scores(pd.read_json(table, lines=True), scorer).to_json(orient="records", lines=True), end="")
