"""Adds scores to a frame of Daft, some batches of rows at a time.

    pip install daft 'bertscore-onnx[cpu]'
    python daft_frame.py BUNDLE 'TABLE/*.parquet' SCORED

The table has the columns `candidate` and `reference`, with one reference a row or a list of them; it gets `precision`,
`recall`, `f1` and `best_reference`, the position of the reference with the best F. The rows are scored by
`max_concurrency` processes, each of which loads the model and takes all CPUs. On a cluster, with
`daft.set_runner_ray()`, let there be one for each machine, and give `daft.cls` its CPUs as `cpus`, `ScoreBatch` as
`nthreads`.
"""

import sys

import daft
import pyarrow as pa

from bertscore_onnx.distributed import ScoreBatch

SCORES = daft.DataType.from_arrow_type(pa.struct(ScoreBatch().columns.fields()))


@daft.cls(max_concurrency=1)
class Scorer:
    """Scores batches of rows."""

    def __init__(self, bundle: str) -> None:
        """Take what to score with."""
        self.score_batch = ScoreBatch(bundle)

    @daft.method.batch(return_dtype=SCORES, unnest=True, batch_size=1024)
    def scores(self, candidate: daft.Series, reference: daft.Series) -> pa.Array:
        """Score a batch; `unnest` makes columns of the scores."""
        texts = pa.table({"candidate": candidate.to_arrow(), "reference": reference.to_arrow()})
        return self.score_batch(texts).drop_columns(texts.column_names).to_struct_array().combine_chunks()


if __name__ == "__main__":
    bundle, table, scored = sys.argv[1:]
    frame = daft.read_parquet(table)
    frame.select("*", Scorer(bundle).scores(frame["candidate"], frame["reference"])).write_parquet(scored)
