"""Adds scores to a Dask frame, partition by partition.

    pip install 'dask[dataframe,distributed]' 'bertscore-onnx[cpu]'
    python dask_frame.py BUNDLE 'TABLE/*.parquet' SCORED

The table has the columns `candidate` and `reference`, with one reference per row or a list of them.
It gets the columns `precision`, `recall`, `f1` and `best_reference`, the position of the reference
with the best F. Without a cluster Dask computes in threads, which share one scorer. On a cluster
(`with dask.distributed.Client(…)` around the last line) each worker process loads the model.
Workers set OMP_NUM_THREADS to 1: give each of them one Dask thread (`threads_per_worker=1`), and
pass the number of a worker's CPUs to `ScoreBatch` as `nthreads`. Where references are lists, pandas
reads the result by `pandas.read_parquet("SCORED", dtype_backend="pyarrow")`.
"""

import sys

import dask.dataframe as dd

from bertscore_onnx_service import ScoreBatch

SCORES = {"precision": "float32", "recall": "float32", "f1": "float32", "best_reference": "int64"}


def with_scores(frame: dd.DataFrame, score_batch: ScoreBatch) -> dd.DataFrame:
    """Return the frame with four more columns, which are computed lazily."""
    return frame.map_partitions(score_batch, meta={**frame.dtypes, **SCORES})


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, table, scored = sys.argv[1:]
    frame = dd.read_parquet(table, dtype_backend="pyarrow")  # pyarrow columns can hold lists
    with_scores(frame, ScoreBatch(bundle)).to_parquet(scored)
