"""The packages write logs of today, and comparing them has the scores that the packages print
themselves.
"""

import json

import pytest

from bertscore_onnx_evaluation import harness_scores
from tests.examples.conftest import EXAMPLES

pytestmark = pytest.mark.integration

SCRIPTS = EXAMPLES / "evaluation-logs"


def mean(scores, system, metric):
    of_system = [
        score
        for name, of_metric, score in zip(
            scores["system"], scores["metric"], scores["score"], strict=True
        )
        if (name, of_metric) == (system, metric)
    ]
    return sum(of_system) / len(of_system)


def test_lm_eval_logs_have_its_scores(run, tmp_path):
    run("lm-eval", "python", SCRIPTS / "write_lm_eval.py", tmp_path / "logs", 30)
    scores = harness_scores(sorted(tmp_path.glob("logs/*/samples_*.jsonl")))
    for system in ("hasty", "careful"):
        [results] = tmp_path.glob(f"logs/{system}/results_*.json")
        of_task = json.loads(results.read_bytes())["results"]["sums"]
        for metric in ("exact_match,number", "digits,number", "digits,whole"):
            assert mean(scores, system, metric) == pytest.approx(of_task[metric], abs=1e-12)


@pytest.mark.parametrize("log_format", ["json", "eval"])
def test_inspect_logs_have_its_scores(run, tmp_path, log_format):
    run("inspect-ai", "python", SCRIPTS / "write_inspect.py", tmp_path / "logs", 30, 2, log_format)
    scores = harness_scores(sorted(tmp_path.glob(f"logs/*.{log_format}")))
    run(
        "inspect-ai",
        "inspect",
        "log",
        "convert",
        "logs",
        "--to",
        "json",
        "--output-dir",
        "converted",
    )
    logs = [json.loads(path.read_bytes()) for path in tmp_path.glob("converted/**/*.json")]
    assert {log["eval"]["model"] for log in logs} == {"mockllm/hasty", "mockllm/careful"}
    for log in logs:
        [accuracy] = [
            score["metrics"]["accuracy"]["value"] for score in log["results"]["scores"][:1]
        ]
        assert mean(scores, log["eval"]["model"], "grade") == pytest.approx(accuracy, abs=1e-12)
    assert {*scores["run"]} == {"1", "2"}
