"""`examples/lm-eval/`: lm-evaluation-harness runs a task whose metric is BERTScore."""

import json

import pytest

from tests.examples.conftest import EXAMPLES

pytestmark = pytest.mark.integration
COMMAND = ["run", "--model", "dummy", "--tasks", "bertscore_example", "--include_path", ".", "--log_samples"]


def test_the_task_runs(run, scorer, minilm_bundle, tmp_path):
    folder = EXAMPLES / "lm-eval"
    run(
        "lm-eval",
        "lm-eval",
        *COMMAND,
        "--output_path",
        tmp_path / "out",
        cwd=folder,
        BERTSCORE_BUNDLE=str(minilm_bundle),
    )
    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = scorer.score(
        ["lol"] * len(questions), [one["reference"] for one in questions]
    )  # all that the dummy says
    [results] = tmp_path.glob("out/**/results_*.json")
    means = json.loads(results.read_text(encoding="utf-8"))["results"]["bertscore_example"]
    for name in "PRF":
        assert means[f"bertscore_{name.lower()},none"] == pytest.approx(getattr(expected, name).mean(), abs=1e-5)
    [samples] = tmp_path.glob("out/**/samples_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert [row["bertscore_f"] for row in rows] == pytest.approx(expected.F.tolist(), abs=1e-5)
