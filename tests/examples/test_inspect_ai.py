"""`examples/inspect-ai/`: inspect_ai scores with BERTScore in a task, and by the scorer's name."""

import json

import pytest

pytestmark = pytest.mark.integration
TASK = """
import json, os
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from bertscore_inspect import bertscore

PAIRS = json.loads(os.environ["PAIRS"])

def say(input, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", input[-1].text)
    output.usage = ModelUsage()  # or the mock would fetch a tokenizer to count with
    return output

def repeat(scorer):
    samples = [Sample(id=i, input=pair["candidate"], target=pair["reference"]) for i, pair in enumerate(PAIRS)]
    return Task(samples, scorer=scorer, model=get_model("mockllm/model", custom_outputs=say))

@task
def in_task():
    return repeat(bertscore(os.environ["BUNDLE"]))

@task
def by_name():
    return repeat(includes())
"""


@pytest.fixture
def inspect(run, pairs, minilm_bundle, tmp_path):
    (tmp_path / "tasks.py").write_text(TASK, encoding="utf-8")

    def inspect(*arguments):
        return run(
            "inspect-ai", "inspect", *arguments, PAIRS=json.dumps(pairs), BUNDLE=str(minilm_bundle), COLUMNS="200"
        )

    return inspect


def check(log, scorer, expected):
    scores = {sample["id"]: sample["scores"]["bertscore"] for sample in log["samples"]}
    assert [scores[number]["value"] for number in range(3)] == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert [scores[number]["metadata"]["P"] for number in range(3)] == pytest.approx(expected.P.tolist(), abs=1e-5)
    assert scores[0]["metadata"]["signature"] == str(scorer.signature)
    [summary] = [result for result in log["results"]["scores"] if result["name"] == "bertscore"]
    assert summary["metrics"]["mean"]["value"] == pytest.approx(float(expected.F.mean()), abs=1e-5)


def test_a_task_scores(inspect, scorer, expected, tmp_path):
    inspect("eval", "tasks.py@in_task", "--display", "plain", "--log-dir", "logs", "--log-format", "json")
    [log] = tmp_path.glob("logs/*.json")
    check(json.loads(log.read_text(encoding="utf-8")), scorer, expected)


def test_a_log_is_scored_by_the_scorers_name(inspect, scorer, expected, minilm_bundle, tmp_path):
    inspect("eval", "tasks.py@by_name", "--display", "plain", "--log-dir", "logs", "--log-format", "json")
    [log] = tmp_path.glob("logs/*.json")
    name, bundle = "bertscore_inspect/bertscore", f"bundle={minilm_bundle}"
    inspect("score", log, "--scorer", name, "-S", bundle, "--action", "append", "--overwrite", "--display", "plain")
    check(json.loads(log.read_text(encoding="utf-8")), scorer, expected)
