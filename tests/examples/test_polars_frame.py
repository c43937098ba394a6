"""`examples/polars_frame.py`: scores become columns of a lazy frame, some batches at a time."""

import json

import pytest

pytestmark = pytest.mark.integration
WRITE = """
import json, sys
import polars as pl
pl.DataFrame(json.loads(sys.argv[1])).write_parquet("table.parquet")
"""
READ = """
import polars as pl
print(pl.read_parquet("scored.parquet").write_json())
"""
COUNT = """
import numpy as np
import polars as pl
from polars_frame import with_scores

class Scorer:
    sizes = []
    def score(self, candidates, references):
        from bertscore_onnx import Scores
        self.sizes.append(len(candidates))
        zeros = np.zeros(len(candidates), np.float32)
        return Scores(zeros, zeros, zeros, zeros)

pl.DataFrame({"candidate": ["a"] * 400_000, "reference": ["b"] * 400_000}).write_parquet("table.parquet")
lazy = with_scores(pl.scan_parquet("table.parquet"), Scorer())
assert Scorer.sizes == []
lazy.sink_parquet("scored.parquet")
print(sum(Scorer.sizes), max(Scorer.sizes))
"""


def test_a_table_is_scored(run, pairs, expected, minilm_bundle, tmp_path):
    run("polars", "python", "-c", WRITE, json.dumps(pairs))
    run("polars", "python", "-m", "polars_frame", minilm_bundle, "table.parquet", "scored.parquet")
    rows = json.loads(run("polars", "python", "-c", READ))
    assert [{name: row[name] for name in ("candidate", "reference")} for row in rows] == pairs
    for name in "PRF":
        assert [row[name] for row in rows] == pytest.approx(getattr(expected, name).tolist(), abs=1e-5)


def test_a_table_is_scored_in_batches_when_it_is_written(run):
    total, largest = map(int, run("polars", "python", "-c", COUNT).split())
    assert total == 400_000
    assert largest <= total / 2
