"""Adds scores to a dataset of the package `datasets`.

    pip install datasets 'bertscore-onnx[cpu]'
    python datasets_map.py BUNDLE TABLE.jsonl SCORED.jsonl

The table has the columns `candidate` and `reference`, with one reference a row or a list of them; it gets `precision`,
`recall`, `f1` and `best_reference`, the position of the reference with the best F. One process scores, on all CPUs.
With `map(…, num_proc=n)` each of n loads the model: give `ScoreBatch` the CPUs divided by n as `nthreads`.

`datasets` keeps scores in its cache and finds them there by the settings of the `ScoreBatch`. It does not see that
another bundle was put into the same path: then say `load_from_cache_file=False`.
"""

import sys

from datasets import Dataset

from bertscore_onnx.distributed import ScoreBatch

if __name__ == "__main__":
    bundle, table, scored = sys.argv[1:]
    Dataset.from_json(table).map(ScoreBatch(bundle), batched=True).to_json(scored)
