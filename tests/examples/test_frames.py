"""Examples that add scores as columns to a frame of pandas, Dask, Polars or Daft."""

import json
import runpy
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.examples.conftest import EXAMPLES

DASK_CLUSTER = """
import sys
import dask.dataframe as dd
from dask.distributed import Client
from bertscore_onnx_service import ScoreBatch
from dask_frame import with_scores

if __name__ == "__main__":
    bundle, table, scored = sys.argv[1:]
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        frame = dd.read_parquet(table, dtype_backend="pyarrow")
        with_scores(frame, ScoreBatch(bundle, nthreads=2)).to_parquet(scored)
"""
POLARS_BATCHES = """
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
DAFT_BAD_ROW = """
import sys
import daft
from daft_frame import Scorer
frame = daft.from_pydict({"candidate": ["a", None], "reference": [["a"], ["b"]]})
try:
    frame.select(Scorer(sys.argv[1]).scores(frame["candidate"], frame["reference"])).collect()
except Exception as error:
    print("row 1: the column 'candidate' holds null" in str(error) + str(error.__cause__))
"""
NAMES = {"P": "P", "R": "R", "F": "F", "f1": "F", "best_reference": "best_reference"}
"""Names of columns in the examples, to the fields of `Scores`."""


@pytest.fixture
def table(pairs, tmp_path):
    (tmp_path / "table").mkdir()
    for number, pair in enumerate(pairs):
        pa.parquet.write_table(
            pa.Table.from_pylist([{"id": number, **pair}]), tmp_path / "table" / f"{number}.parquet"
        )
    return "table/*.parquet"


@pytest.fixture
def assert_scored(pairs, expected, tmp_path):
    """Return a function that compares a file or a folder in Parquet with the scores of the
    pairs.
    """

    def check(name, *columns):
        rows = sorted(pa.parquet.read_table(tmp_path / name).to_pylist(), key=lambda row: row["id"])
        assert [{name: row[name] for name in ("candidate", "reference")} for row in rows] == pairs
        for column in columns:
            assert [row[column] for row in rows] == pytest.approx(
                getattr(expected, NAMES[column]).tolist(), abs=1e-5
            )

    return check


def test_a_table_of_json_lines_is_scored_by_pandas(
    pairs, expected, minilm_bundle, tmp_path, monkeypatch, capsys
):
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    monkeypatch.setattr(
        sys, "argv", ["pandas_frame.py", str(minilm_bundle), str(tmp_path / "table.jsonl")]
    )
    runpy.run_path(str(EXAMPLES / "pandas_frame.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["f1"] for line in lines] == pytest.approx(
        expected.F.tolist(), abs=1e-6
    )
    assert [
        json.loads(line)["best_reference"] for line in lines
    ] == expected.best_reference.tolist()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("package", "scored", "columns"),
    [
        ("dask", "scored", ("f1", "best_reference")),
        ("polars", "scored.parquet", ("P", "R", "F")),
        ("daft", "scored", ("f1", "best_reference")),
    ],
)
def test_a_table_is_scored(run, table, assert_scored, minilm_bundle, package, scored, columns):
    run(package, "python", "-m", f"{package}_frame", minilm_bundle, table, scored)
    assert_scored(scored, *columns)


@pytest.mark.integration
def test_a_table_is_scored_by_dask_on_a_cluster(run, table, assert_scored, minilm_bundle, tmp_path):
    (tmp_path / "program.py").write_text(DASK_CLUSTER, encoding="utf-8")
    run("dask", "python", "program.py", minilm_bundle, table, "scored")
    assert_scored("scored", "f1", "best_reference")


@pytest.mark.integration
def test_polars_scores_in_batches_when_a_table_is_written(run):
    total, largest = map(int, run("polars", "python", "-c", POLARS_BATCHES).split())
    assert total == 400_000
    assert largest <= total / 2


@pytest.mark.integration
def test_a_row_without_a_text_is_an_error_of_daft(run, minilm_bundle):
    assert run("daft", "python", "-c", DAFT_BAD_ROW, minilm_bundle).split() == ["True"]
