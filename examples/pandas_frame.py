"""Adds scores to a pandas frame, some rows at a time.

    pip install pandas 'bertscore-onnx[cpu]'
    python pandas_frame.py BUNDLE TABLE.jsonl > SCORED.jsonl

The table has the columns `candidate` and `reference`, with one reference a row or a list of them; it gets `precision`,
`recall`, `f1` and `best_reference`, the position of the reference with the best F. A frame that is in memory already
is scored by `ScoreBatch(bundle)(frame)`. With `errors="null"` a row that has a null, or anything but texts, gets nulls
and a reason in the column `error`; without it such a row is an error.
"""

import sys

import pandas as pd

from bertscore_onnx.distributed import ScoreBatch

if __name__ == "__main__":
    bundle, table = sys.argv[1:]
    with pd.read_json(table, lines=True, chunksize=10_000) as frames:
        for scored in ScoreBatch(bundle).stream(frames):
            print(scored.to_json(orient="records", lines=True), end="")
