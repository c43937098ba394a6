"""`examples/mlflow_metric.py`: mlflow evaluates a static table with BERTScore."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.integration
EVALUATE = """
import json, sys
import mlflow
import pandas as pd
from bertscore_onnx import BERTScorer
from mlflow_metric import bertscore

with BERTScorer(sys.argv[1]) as scorer, mlflow.start_run():
    result = mlflow.models.evaluate(
        data=pd.read_json("table.json"), predictions="prediction", targets="target", extra_metrics=[bertscore(scorer)]
    )
rows = result.tables["eval_results_table"]
print(json.dumps([result.metrics, rows["bertscore_f/score"].tolist(), "torch" in sys.modules]))
"""


@pytest.fixture
def run_mlflow(run, pairs, minilm_bundle, tmp_path):
    table = [{"prediction": pair["candidate"], "target": pair["reference"]} for pair in pairs]
    (tmp_path / "table.json").write_text(json.dumps(table), encoding="utf-8")

    def run_mlflow(*arguments):
        output = run("mlflow", "python", *arguments, MLFLOW_TRACKING_URI=f"sqlite:///{tmp_path}/runs.db")
        return output.splitlines()[-1]

    return run_mlflow


def test_rows_and_aggregates_are_scored(run_mlflow, expected, minilm_bundle):
    metrics, rows, has_torch = json.loads(run_mlflow("-c", EVALUATE, minilm_bundle))
    assert rows == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert metrics["bertscore_f/mean"] == pytest.approx(float(expected.F.mean()), abs=1e-5)
    assert metrics["bertscore_f/p90"] == pytest.approx(float(np.percentile(expected.F, 90)), abs=1e-5)
    assert not has_torch


def test_the_script_runs(run_mlflow, minilm_bundle):
    assert "bertscore_f/mean" in run_mlflow("-m", "mlflow_metric", minilm_bundle, "table.json")
