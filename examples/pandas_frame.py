"""Adds scores to a pandas frame, chunk by chunk.

    pip install pandas 'bertscore-onnx[cpu]'
    python pandas_frame.py BUNDLE TABLE.jsonl > SCORED.jsonl

The table has the columns `candidate` and `reference`, with one reference per row or a list of them.
It gets the columns `precision`, `recall`, `f1` and `best_reference`, the position of the reference
with the best F. If the frame is already in memory, `BERTScorer(bundle).score_frame(frame)` scores
it. With `errors="null"` a row with a null, or with anything but texts, gets nulls and a reason in
the column `error`; otherwise such a row raises an error.
"""

import sys

import pandas as pd

from bertscore_onnx_service import ScoreBatch

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bundle, table = sys.argv[1:]
    with pd.read_json(table, lines=True, chunksize=10_000) as frames:
        for scored in ScoreBatch(bundle).stream(frames):
            print(scored.to_json(orient="records", lines=True), end="")
