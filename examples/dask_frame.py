"""Adds scores to a frame of Dask, partition by partition.

    pip install 'dask[dataframe,distributed]' 'bertscore-onnx[cpu]'
    python dask_frame.py BUNDLE 'TABLE/*.parquet' SCORED

The table has the columns `candidate` and `reference`, with one reference a row or a list of them; it gets `precision`,
`recall`, `f1` and `best_reference`, the position of the reference with the best F. Without a cluster Dask computes in
threads, which share one scorer. On a cluster (`with dask.distributed.Client(…)` around the last line) each worker
process loads the model. Workers set OMP_NUM_THREADS to 1: let each have one thread of Dask's
(`threads_per_worker=1`), and give `ScoreBatch` the CPUs of a worker as `nthreads`.
"""

import sys

import dask.dataframe as dd

from bertscore_onnx.distributed import ScoreBatch

SCORES = {"precision": "float32", "recall": "float32", "f1": "float32", "best_reference": "int64"}


def with_scores(frame: dd.DataFrame, score_batch: ScoreBatch) -> dd.DataFrame:
    """Return the frame with four more columns, which are computed when it is computed or written."""
    return frame.map_partitions(score_batch, meta={**frame.dtypes, **SCORES})


if __name__ == "__main__":
    bundle, table, scored = sys.argv[1:]
    frame = dd.read_parquet(table, dtype_backend="pyarrow")  # it knows lists, which a column of objects may not hold
    with_scores(frame, ScoreBatch(bundle)).to_parquet(scored)
