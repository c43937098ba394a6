"""`examples/pandas_frame.py`: scores become columns."""

import json
import runpy
import sys

import numpy as np
import pandas as pd
import pytest

from bertscore_onnx.distributed import ScoreBatch
from tests.examples.conftest import EXAMPLES


def test_scores_stand_in_the_rows_of_their_texts(pairs, expected, minilm_bundle):
    frame = pd.DataFrame(pairs, index=[7, 3, 5])
    scored = ScoreBatch(minilm_bundle)(frame)
    assert [*scored.columns] == ["candidate", "reference", "precision", "recall", "f1", "best_reference"]
    np.testing.assert_array_equal(scored.loc[[7, 3, 5], ["precision", "recall", "f1"]].to_numpy().T, expected)
    assert [*frame.columns] == ["candidate", "reference"]


def test_a_missing_text_gets_a_reason(pairs, expected, minilm_bundle):
    frame = pd.DataFrame(pairs)
    frame.loc[1, "candidate"] = None
    scored = ScoreBatch(minilm_bundle, errors="null")(frame)
    assert scored["f1"].isna().tolist() == [False, True, False]
    assert scored["error"][1].startswith("the column 'candidate' holds null")
    assert scored["f1"][2] == expected.F[2]


def test_a_table_of_json_lines_is_scored(pairs, expected, minilm_bundle, tmp_path, monkeypatch, capsys):
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["pandas_frame.py", str(minilm_bundle), str(tmp_path / "table.jsonl")])
    runpy.run_path(str(EXAMPLES / "pandas_frame.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["f1"] for line in lines] == pytest.approx(expected.F.tolist(), abs=1e-6)
    assert [json.loads(line)["best_reference"] for line in lines] == expected.best_reference.tolist()
