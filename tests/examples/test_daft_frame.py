"""`examples/daft_frame.py`: scores become columns of a frame, by a process that loads the model once."""

import json

import pytest

pytestmark = pytest.mark.integration
WRITE = """
import json, os, sys
import pyarrow as pa, pyarrow.parquet
pairs = json.loads(sys.argv[1])
os.mkdir("table")
for number, pair in enumerate(pairs):
    pa.parquet.write_table(pa.Table.from_pylist([{"id": number, **pair}]), f"table/{number}.parquet")
"""
READ = """
import json
import pyarrow.parquet
print(json.dumps(sorted(pyarrow.parquet.read_table("scored").to_pylist(), key=lambda row: row["id"])))
"""
BAD_ROW = """
import sys
import daft
from daft_frame import Scorer
frame = daft.from_pydict({"candidate": ["a", None], "reference": [["a"], ["b"]]})
try:
    frame.select(Scorer(sys.argv[1]).scores(frame["candidate"], frame["reference"])).collect()
except Exception as error:
    print("row 2: the column 'candidate' holds null" in str(error) + str(error.__cause__))
"""


def test_a_table_is_scored(run, pairs, expected, minilm_bundle):
    run("daft", "python", "-c", WRITE, json.dumps(pairs))
    run("daft", "python", "-m", "daft_frame", minilm_bundle, "table/*.parquet", "scored")
    rows = json.loads(run("daft", "python", "-c", READ))
    assert [{name: row[name] for name in ("candidate", "reference")} for row in rows] == pairs
    assert [row["f1"] for row in rows] == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert [row["best_reference"] for row in rows] == expected.best_reference.tolist()


def test_a_row_without_a_text_is_an_error(run, minilm_bundle):
    assert run("daft", "python", "-c", BAD_ROW, minilm_bundle).split() == ["True"]
