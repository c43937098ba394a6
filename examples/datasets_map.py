"""Adds the columns P, R and F to a dataset of the package `datasets`.

    pip install datasets 'bertscore-onnx[cpu]'
    python datasets_map.py BUNDLE TABLE.jsonl SCORED.jsonl

The table has the columns `candidate` and `reference`, with one reference a row or a list of them. The function given to
`map` takes a path, not a scorer: so `datasets` can tell whether the scores of this path are in its cache already, and
each process of `num_proc` loads a scorer of its own.
"""

import functools
import sys
from typing import Any

from datasets import Dataset

from bertscore_onnx import BERTScorer

load_scorer = functools.cache(BERTScorer)


def add_scores(batch: dict[str, list[Any]], bundle: str) -> dict[str, Any]:
    """Score a batch of rows."""
    return load_scorer(bundle).score(batch["candidate"], batch["reference"])._asdict()


if __name__ == "__main__":
    bundle, table, scored = sys.argv[1:]
    Dataset.from_json(table).map(add_scores, batched=True, fn_kwargs={"bundle": bundle}).to_json(scored)
