"""`examples/dask_frame.py`: scores become columns of a frame, in threads or by the processes of a cluster."""

import json

import pytest

pytestmark = pytest.mark.integration
WRITE = """
import json, sys
import pyarrow as pa, pyarrow.parquet
pairs = json.loads(sys.argv[1])
for number, pair in enumerate(pairs):
    pa.parquet.write_table(pa.Table.from_pylist([pair]), f"table-{number}.parquet")
"""
READ = """
import json
import pyarrow.parquet
print(json.dumps(pyarrow.parquet.read_table("scored").to_pylist()))
"""
ON_A_CLUSTER = """
import sys
import dask.dataframe as dd
from dask.distributed import Client
from bertscore_onnx.distributed import ScoreBatch
from dask_frame import with_scores

if __name__ == "__main__":
    bundle, table, scored = sys.argv[1:]
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        frame = dd.read_parquet(table, dtype_backend="pyarrow")
        with_scores(frame, ScoreBatch(bundle, nthreads=2)).to_parquet(scored)
"""


@pytest.fixture
def table(run, pairs):
    run("dask", "python", "-c", WRITE, json.dumps(pairs))
    return "table-*.parquet"


def check(run, pairs, expected):
    rows = json.loads(run("dask", "python", "-c", READ))
    assert [{name: row[name] for name in ("candidate", "reference")} for row in rows] == pairs
    assert [row["f1"] for row in rows] == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert [row["best_reference"] for row in rows] == expected.best_reference.tolist()


def test_a_table_is_scored_in_threads(run, table, pairs, expected, minilm_bundle):
    run("dask", "python", "-m", "dask_frame", minilm_bundle, table, "scored")
    check(run, pairs, expected)


def test_a_table_is_scored_on_a_cluster(run, table, pairs, expected, minilm_bundle, tmp_path):
    (tmp_path / "program.py").write_text(ON_A_CLUSTER, encoding="utf-8")
    run("dask", "python", "program.py", minilm_bundle, table, "scored")
    check(run, pairs, expected)
