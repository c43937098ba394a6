"""Adds scores to a Hugging Face dataset.

    pip install datasets 'bertscore-onnx[cpu]'
    python datasets_map.py BUNDLE TABLE.jsonl SCORED.jsonl

The table has the columns `candidate` and `reference`, with one reference per row or a list of them.
It gets the columns `precision`, `recall`, `f1` and `best_reference`, the position of the reference
with the best F. One process scores, on all CPUs. With `map(…, num_proc=n)` each of n processes
loads the model: pass the number of CPUs divided by n to `ScoreBatch` as `nthreads`. Leave
`with_indices` and `with_rank` out: a `ScoreBatch` takes the batch alone.

`datasets` caches scores under the settings of the `ScoreBatch`. It does not notice if the bundle at
that path was replaced: pass `load_from_cache_file=False` in that case.
"""

import sys

from datasets import Dataset

from bertscore_onnx_service import ScoreBatch

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, table, scored = sys.argv[1:]
    Dataset.from_json(table).map(ScoreBatch(bundle), batched=True).to_json(scored)
