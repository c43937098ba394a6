"""Adds scores to a Daft frame, batch by batch.

    pip install daft 'bertscore-onnx[cpu]'
    python daft_frame.py BUNDLE 'TABLE/*.parquet' SCORED

The table has the columns `candidate` and `reference`, with one reference per row or a list of them.
It gets the columns `precision`, `recall`, `f1` and `best_reference`, the position of the reference
with the best F. The rows are scored by `max_concurrency` processes, each of which loads the model
and uses all CPUs. On a cluster, with `daft.set_runner_ray()`, use one process per machine, and pass
the number of its CPUs to `daft.cls` as `cpus` and to `ScoreBatch` as `nthreads`.
"""

import sys

import daft
import pyarrow as pa

from bertscore_onnx_service import ScoreBatch

SCORES = daft.DataType.from_arrow_type(pa.struct(ScoreBatch().columns.fields()))


@daft.cls(max_concurrency=1)
class Scorer:
    """Scores batches of rows."""

    def __init__(self, bundle: str) -> None:
        """Create a scorer."""
        self.score_batch = ScoreBatch(bundle)

    @daft.method.batch(return_dtype=SCORES, unnest=True, batch_size=1024)
    def scores(self, candidate: daft.Series, reference: daft.Series) -> pa.Array:
        """Score a batch; `unnest` turns the scores into columns."""
        texts = pa.table({"candidate": candidate.to_arrow(), "reference": reference.to_arrow()})
        return (
            self.score_batch(texts)
            .drop_columns(texts.column_names)
            .to_struct_array()
            .combine_chunks()
        )


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, table, scored = sys.argv[1:]
    frame = daft.read_parquet(table)
    frame.select("*", Scorer(bundle).scores(frame["candidate"], frame["reference"])).write_parquet(
        scored
    )
