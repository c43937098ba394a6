"""`examples/pandas_frame.py`: scores become columns."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from pandas_frame import with_scores

from bertscore_onnx.errors import InputError
from tests.examples.conftest import EXAMPLES


def test_scores_stand_in_the_rows_of_their_texts(pairs, scorer, expected):
    frame = pd.DataFrame(pairs, index=[7, 3, 5]).rename(columns={"candidate": "output"})
    scored = with_scores(frame, scorer, candidate="output")
    assert [*scored.columns] == ["output", "reference", "P", "R", "F"]
    np.testing.assert_array_equal(scored.loc[[7, 3, 5], ["P", "R", "F"]].to_numpy().T, expected)
    assert [*frame.columns] == ["output", "reference"]


def test_a_missing_text_is_named(pairs, scorer):
    frame = pd.DataFrame(pairs)
    frame.loc[1, "candidate"] = None
    with pytest.raises(InputError, match=r"cands\[1\]"):
        with_scores(frame, scorer)


def test_a_table_of_json_lines_is_scored(pairs, expected, minilm_bundle, tmp_path):
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    command = [sys.executable, EXAMPLES / "pandas_frame.py", minilm_bundle, tmp_path / "table.jsonl"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [json.loads(line)["F"] for line in lines] == pytest.approx(expected.F.tolist(), abs=1e-6)
