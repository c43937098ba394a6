"""Adds the columns P, R and F to a polars frame, lazily.

    pip install polars 'bertscore-onnx[cpu]'
    python polars_frame.py BUNDLE TABLE.parquet SCORED.parquet

The table has the columns `candidate` and `reference`; a cell of `reference` may hold a list of
references. The table is read, scored and written in batches, so it may be larger than the memory.
"""

import sys

import polars as pl

from bertscore_onnx import BERTScorer


def with_scores(
    frame: pl.LazyFrame,
    scorer: BERTScorer,
    candidate: str = "candidate",
    reference: str = "reference",
) -> pl.LazyFrame:
    """Return the frame with three more columns, which are computed lazily."""

    def add_scores(batch: pl.DataFrame) -> pl.DataFrame:
        return batch.with_columns(**scorer.score(batch[candidate], batch[reference])._asdict())

    schema = {**frame.collect_schema(), "P": pl.Float32, "R": pl.Float32, "F": pl.Float32}
    return frame.map_batches(add_scores, schema=schema, streamable=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, table, scored = sys.argv[1:]
    with BERTScorer(bundle) as scorer:
        with_scores(pl.scan_parquet(table), scorer).sink_parquet(scored)
