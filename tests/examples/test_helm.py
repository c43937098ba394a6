"""The example that reads runs of HELM: its table gives `compare` the scores of each instance."""

import json
import subprocess
import sys

from typer.testing import CliRunner

from bertscore_onnx.cli import app
from tests.examples.conftest import EXAMPLES


def instance(number, score):
    stats = [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": score}]
    stats += [{"name": {"name": "f1_score", "split": "test"}, "count": 1, "mean": 0.5}]
    stats += [{"name": {"name": "exact_match", "split": "test"}, "count": 0}]
    return {"instance_id": f"id{number}", "train_trial_index": 0, "stats": stats}


def test_two_runs_of_helm_are_compared(tmp_path):
    scores = {"old": [1.0] * 24, "new": [float(number % 3 > 0) for number in range(24)]}
    for name, of_run in scores.items():
        (tmp_path / name).mkdir()
        instances = [instance(number, score) for number, score in enumerate(of_run)]
        (tmp_path / name / "per_instance_stats.json").write_text(
            json.dumps(instances), encoding="utf-8"
        )
    command = [
        sys.executable,
        EXAMPLES / "evaluation-logs" / "helm.py",
        tmp_path / "old",
        tmp_path / "new",
    ]
    done = subprocess.run([*command, "exact_match"], capture_output=True, text=True, check=True)
    table = tmp_path / "helm.csv"
    table.write_text(done.stdout, encoding="utf-8")
    options = ["--columns", "score=exact_match", "--systems", "old", "new", "--format", "json"]
    comparison = json.loads(
        CliRunner().invoke(app, ["compare", "--scores", str(table), *options]).stdout
    )
    assert [system["metrics"]["exact_match"]["score"] for system in comparison["systems"]] == [
        1.0,
        16 / 24,
    ]
