"""Examples that evaluate with BERTScore in another package, each in an environment with that
package.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.examples.conftest import EXAMPLES

pytestmark = pytest.mark.integration

LOGGING = ("--display", "plain", "--log-dir", "logs", "--log-format", "json")
"""The options of Inspect that write a log in JSON."""

RAGAS_EXPERIMENT = """
import asyncio, json, sys
from ragas import Dataset, experiment
from bertscore_onnx import BERTScorer
from ragas_metric import bertscore

with BERTScorer(sys.argv[1]) as scorer:
    metric = bertscore(scorer)

    @experiment()
    async def score(row):
        result = await metric.ascore(response=row["candidate"], reference=row["reference"])
        return {"candidate": row["candidate"], "score": result.value, "reason": result.reason}

    dataset = Dataset(name="pairs", backend="inmemory", data=json.loads(sys.argv[2]))
    rows = list(asyncio.run(score.arun(dataset)))
print(json.dumps([{row["candidate"]: (row["score"], row["reason"]) for row in rows}, "torch" in sys.modules]))
"""


def test_ragas_scores_an_experiment(run, pairs, scorer, expected, minilm_bundle):
    output = run("ragas", "python", "-c", RAGAS_EXPERIMENT, minilm_bundle, json.dumps(pairs))
    found, has_torch = json.loads(output.splitlines()[-1])
    results = [found[pair["candidate"]] for pair in pairs]
    assert [score for score, _ in results] == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert all(str(scorer.signature) in reason for _, reason in results)
    assert not has_torch


def test_ragas_scores_a_batch(run, pairs, expected, minilm_bundle, tmp_path):
    samples = [{"response": pair["candidate"], "reference": pair["reference"]} for pair in pairs]
    (tmp_path / "samples.json").write_text(json.dumps(samples), encoding="utf-8")
    lines = run("ragas", "python", "-m", "ragas_metric", minilm_bundle, "samples.json").splitlines()
    assert [float(line.split()[0]) for line in lines] == pytest.approx(
        expected.F.tolist(), abs=1e-5
    )


MBRS_HYPOTHESES = [
    "A dog ran.",
    "It is cold today.",
    "Today it is very cold.",
    "It is freezing today.",
    "He sold the old house and bought a boat.",
]
MBRS_SCORE = """
import json, sys
from mbrs_metric import MetricBERTScoreONNX
texts = json.loads(sys.argv[2])
metric = MetricBERTScoreONNX(MetricBERTScoreONNX.Config(bundle=sys.argv[1]))
print(json.dumps([
    metric.score(texts[0], texts[1]),
    metric.scores(texts, texts[::-1]).tolist(),
    metric.expected_scores(texts, texts).tolist(),
]))
"""


def test_mbrs_chooses_the_candidate_most_like_all_others(run, scorer, minilm_bundle, tmp_path):
    (tmp_path / "hypotheses.txt").write_text("\n".join(MBRS_HYPOTHESES), encoding="utf-8")
    output = run("mbrs", "python", "-m", "mbrs_metric", minilm_bundle, "hypotheses.txt")
    best = scorer.pairwise(MBRS_HYPOTHESES, MBRS_HYPOTHESES).F.mean(axis=1).argmax()
    assert output.splitlines()[-1] == MBRS_HYPOTHESES[best]


def test_mbrs_has_the_scores_of_the_scorer(run, scorer, minilm_bundle):
    output = run("mbrs", "python", "-c", MBRS_SCORE, minilm_bundle, json.dumps(MBRS_HYPOTHESES))
    one, each, means = json.loads(output.splitlines()[-1])
    matrix = scorer.pairwise(MBRS_HYPOTHESES, MBRS_HYPOTHESES).F
    assert one == pytest.approx(matrix[0, 1], abs=1e-5)
    assert each == pytest.approx(matrix[:, ::-1].diagonal().tolist(), abs=1e-5)
    assert means == pytest.approx(matrix.mean(axis=1).tolist(), abs=1e-5)


DEEPEVAL_EVALUATE = """
import json, sys
from deepeval import assert_test, evaluate
from deepeval.test_case import LLMTestCase
from bertscore_onnx import BERTScorer
from deepeval_metric import BERTScoreMetric

cases = [
    LLMTestCase(name=str(number), input="", actual_output=pair["candidate"], expected_output=pair["reference"][-1])
    for number, pair in enumerate(json.loads(sys.argv[2]))
]
with BERTScorer(sys.argv[1]) as scorer:
    metric = BERTScoreMetric(scorer, threshold=0.7)
    results = evaluate(cases, [metric]).test_results
    found = {
        result.name: (result.success, result.metrics_data[0].score, result.metrics_data[0].reason) for result in results
    }
    assert_test(cases[0], [metric])
    try:
        assert_test(cases[2], [metric])
    except AssertionError as error:
        failure = str(error)
    signature = str(scorer.signature)
print(json.dumps([found, failure, signature, "torch" in sys.modules]))
"""


def test_deepeval_passes_and_fails_cases_by_their_score(run, pairs, scorer, minilm_bundle):
    output = run("deepeval", "python", "-c", DEEPEVAL_EVALUATE, minilm_bundle, json.dumps(pairs))
    found, failure, signature, has_torch = json.loads(output.splitlines()[-1])
    f1 = scorer.score(
        [pair["candidate"] for pair in pairs], [pair["reference"][-1] for pair in pairs]
    ).F
    assert [found[name][1] for name in "012"] == pytest.approx(f1.tolist(), abs=1e-5)
    assert [found[name][0] for name in "012"] == [True, True, False]
    assert {found[name][2] for name in "012"} == {signature}
    assert "BERTScore" in failure
    assert not has_torch


def test_the_script_for_deepeval_runs(run, minilm_bundle):
    assert "BERTScore" in run("deepeval", "python", "-m", "deepeval_metric", minilm_bundle)


MLFLOW_EVALUATE = """
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
        output = run(
            "mlflow", "python", *arguments, MLFLOW_TRACKING_URI=f"sqlite:///{tmp_path}/runs.db"
        )
        return output.splitlines()[-1]

    return run_mlflow


def test_mlflow_scores_rows_and_aggregates(run_mlflow, expected, minilm_bundle):
    metrics, rows, has_torch = json.loads(run_mlflow("-c", MLFLOW_EVALUATE, minilm_bundle))
    assert rows == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert metrics["bertscore_f/mean"] == pytest.approx(float(expected.F.mean()), abs=1e-5)
    assert metrics["bertscore_f/p90"] == pytest.approx(
        float(np.percentile(expected.F, 90)), abs=1e-5
    )
    assert not has_torch


def test_the_script_for_mlflow_runs(run_mlflow, minilm_bundle):
    assert "bertscore_f/mean" in run_mlflow("-m", "mlflow_metric", minilm_bundle, "table.json")


LANGSMITH_EVALUATE = """
import datetime, json, sys, uuid
from langsmith import evaluate
from langsmith.schemas import Example
from bertscore_onnx import BERTScorer
from langsmith_evaluator import bertscore

dataset, now = uuid.uuid4(), datetime.datetime.now()
examples = [
    Example(id=uuid.uuid4(), dataset_id=dataset, created_at=now, inputs={"text": pair["candidate"]},
            outputs={"text": pair["reference"]})
    for pair in json.loads(sys.argv[2])
]
with BERTScorer(sys.argv[1]) as scorer:
    results = evaluate(
        lambda inputs: inputs, data=examples, evaluators=[bertscore(scorer, key="text")], upload_results=False
    )
    scores = {row["example"].inputs["text"]: row["evaluation_results"]["results"] for row in results}
print(json.dumps({text: [(one.key, one.score) for one in found] for text, found in scores.items()}))
"""


def test_langsmith_evaluates_examples_and_uploads_nothing(run, pairs, expected, minilm_bundle):
    scores = json.loads(
        run(
            "langsmith", "python", "-c", LANGSMITH_EVALUATE, minilm_bundle, json.dumps(pairs)
        ).splitlines()[-1]
    )
    for pair, f1 in zip(pairs, expected.F.tolist(), strict=True):
        assert scores[pair["candidate"]] == [["bertscore_f", pytest.approx(f1, abs=1e-5)]]


INSPECT_AI_TASK = """
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
    (tmp_path / "tasks.py").write_text(INSPECT_AI_TASK, encoding="utf-8")

    def inspect(*arguments):
        return run(
            "inspect-ai",
            "inspect",
            *arguments,
            PAIRS=json.dumps(pairs),
            BUNDLE=str(minilm_bundle),
            COLUMNS="200",
        )

    return inspect


def check(log, scorer, expected):
    scores = {sample["id"]: sample["scores"]["bertscore"] for sample in log["samples"]}
    assert [scores[number]["value"] for number in range(3)] == pytest.approx(
        expected.F.tolist(), abs=1e-5
    )
    assert [scores[number]["metadata"]["P"] for number in range(3)] == pytest.approx(
        expected.P.tolist(), abs=1e-5
    )
    assert scores[0]["metadata"]["signature"] == str(scorer.signature)
    [summary] = [result for result in log["results"]["scores"] if result["name"] == "bertscore"]
    assert summary["metrics"]["mean"]["value"] == pytest.approx(float(expected.F.mean()), abs=1e-5)


def test_inspect_ai_scores_a_task(inspect, scorer, expected, tmp_path):
    inspect("eval", "tasks.py@in_task", *LOGGING)
    [log] = tmp_path.glob("logs/*.json")
    check(json.loads(log.read_text(encoding="utf-8")), scorer, expected)


def test_inspect_ai_scores_a_log_by_the_scorers_name(
    inspect, scorer, expected, minilm_bundle, tmp_path
):
    inspect("eval", "tasks.py@by_name", *LOGGING)
    [log] = tmp_path.glob("logs/*.json")
    name, bundle = "bertscore_inspect/bertscore", f"bundle={minilm_bundle}"
    inspect(
        "score",
        log,
        "--scorer",
        name,
        "-S",
        bundle,
        "--action",
        "append",
        "--overwrite",
        "--display",
        "plain",
    )
    check(json.loads(log.read_text(encoding="utf-8")), scorer, expected)


LM_EVAL_COMMAND = [
    "run",
    "--model",
    "dummy",
    "--tasks",
    "bertscore_example",
    "--include_path",
    ".",
    "--log_samples",
]


def test_lm_eval_runs_a_task(run, scorer, minilm_bundle, tmp_path):
    folder = EXAMPLES / "lm-eval"
    run(
        "lm-eval",
        "lm-eval",
        *LM_EVAL_COMMAND,
        "--output_path",
        tmp_path / "out",
        cwd=folder,
        BERTSCORE_BUNDLE=str(minilm_bundle),
    )
    questions = [
        json.loads(line)
        for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    expected = scorer.score(
        ["lol"] * len(questions), [one["reference"] for one in questions]
    )  # all that the dummy says
    [results] = tmp_path.glob("out/**/results_*.json")
    means = json.loads(results.read_text(encoding="utf-8"))["results"]["bertscore_example"]
    for name in "PRF":
        assert means[f"bertscore_{name.lower()},none"] == pytest.approx(
            getattr(expected, name).mean(), abs=1e-5
        )
    [samples] = tmp_path.glob("out/**/samples_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert [row["bertscore_f"] for row in rows] == pytest.approx(expected.F.tolist(), abs=1e-5)


OPIK_SCORE = """
import json, sys
from bertscore_onnx import BERTScorer
from opik_metric import bertscore

with BERTScorer(sys.argv[1]) as scorer:
    metric = bertscore(scorer)
    results = [
        metric.score(output=pair["candidate"], reference=[pair["reference"]]) for pair in json.loads(sys.argv[2])
    ]
found = [(result.name, result.value, result.metadata["precision"], result.metadata["recall"]) for result in results]
print(json.dumps([found, "torch" in sys.modules]))
"""


def test_opiks_metric_has_the_scores_of_the_scorer(run, pairs, expected, minilm_bundle):
    output = run("opik", "python", "-c", OPIK_SCORE, minilm_bundle, json.dumps(pairs))
    found, has_torch = json.loads(output.splitlines()[-1])
    names, f1, precision, recall = zip(*found, strict=True)
    assert {*names} == {"bertscore_f"}
    assert list(f1) == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert list(precision) == pytest.approx(expected.P.tolist(), abs=1e-5)
    assert list(recall) == pytest.approx(expected.R.tolist(), abs=1e-5)
    assert not has_torch


def test_the_script_for_opik_runs(run, scorer, minilm_bundle):
    texts = ["It is freezing today.", "It is cold today."]
    [f1] = scorer.score(texts[:1], texts[1:]).F
    assert f"{f1:.4f}" in run("opik", "python", "-m", "opik_metric", minilm_bundle, *texts)


EVIDENTLY_DESCRIBE = """
import json, sys
import pandas as pd
from evidently import Dataset
from bertscore_onnx import BERTScorer
from evidently_descriptor import bertscore

table = pd.read_json("table.json").iloc[::-1]
with BERTScorer(sys.argv[1]) as scorer:
    described = Dataset.from_pandas(table, descriptors=[bertscore(scorer)]).as_dataframe()
print(json.dumps([dict(zip(described["output"], described["BERTScore F"])), "torch" in sys.modules]))
"""


@pytest.fixture
def evidently_table(pairs, tmp_path):
    table = [{"output": pair["candidate"], "reference": pair["reference"]} for pair in pairs]
    (tmp_path / "table.json").write_text(json.dumps(table), encoding="utf-8")


@pytest.mark.usefixtures("evidently_table")
def test_evidently_describes_each_row(run, pairs, expected, minilm_bundle):
    found, has_torch = json.loads(
        run("evidently", "python", "-c", EVIDENTLY_DESCRIBE, minilm_bundle).splitlines()[-1]
    )
    assert [found[pair["candidate"]] for pair in pairs] == pytest.approx(
        expected.F.tolist(), abs=1e-5
    )
    assert not has_torch


@pytest.mark.usefixtures("evidently_table")
def test_the_script_for_evidently_reports_the_mean(run, expected, minilm_bundle):
    metrics = json.loads(
        run("evidently", "python", "-m", "evidently_descriptor", minilm_bundle, "table.json")
    )["metrics"]
    [mean] = [
        one["value"] for one in metrics if one["config"]["type"] == "evidently:metric_v2:MeanValue"
    ]
    assert mean == pytest.approx(float(expected.F.mean()), abs=1e-5)


LIGHTEVAL_COMPUTE = """
import json, sys
import lighteval_metric
from lighteval.metrics.metrics import Metrics
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

metric = Metrics.bert_score.value.sample_level_fn
print(json.dumps([
    metric.compute(
        doc=Doc(query="", choices=[pair["reference"][-1]], gold_index=0),
        model_response=ModelResponse(text=[pair["candidate"]]),
    )
    for pair in json.loads(sys.argv[1])
]))
"""


def test_lightevals_metric_has_the_scores_of_the_scorer(run, pairs, scorer, minilm_bundle):
    output = run(
        "lighteval",
        "python",
        "-c",
        LIGHTEVAL_COMPUTE,
        json.dumps(pairs),
        BERTSCORE_BUNDLE=str(minilm_bundle),
    )
    found = json.loads(output.splitlines()[-1])
    expected = scorer.score(
        [pair["candidate"] for pair in pairs], [pair["reference"][-1] for pair in pairs]
    )
    for name in "PRF":
        assert [one[f"BERTScore-{name}"] for one in found] == pytest.approx(
            getattr(expected, name).tolist(), abs=1e-5
        )


EVALSCOPE_APPLY = """
import json, sys
import evalscope_metric
from bertscore_onnx import BERTScorer
from evalscope.api.registry import get_metric

pairs = json.loads(sys.argv[2])
with BERTScorer(sys.argv[1]) as scorer:
    evalscope_metric.use(scorer)
    metric = get_metric("bert_score")(model_id_or_path="google-bert/bert-base-chinese")
    found = metric.apply([pair["candidate"] for pair in pairs], [pair["reference"][-1] for pair in pairs])
print(json.dumps([found, "torch" in sys.modules]))
"""


def test_evalscopes_metric_has_the_scores_of_the_scorer(run, pairs, scorer, minilm_bundle):
    output = run("evalscope", "python", "-c", EVALSCOPE_APPLY, minilm_bundle, json.dumps(pairs))
    found, has_torch = json.loads(output.splitlines()[-1])
    expected = scorer.score(
        [pair["candidate"] for pair in pairs], [pair["reference"][-1] for pair in pairs]
    )
    assert found == pytest.approx(expected.F.tolist(), abs=1e-6)
    assert not has_torch


UQLM_SCORE = """
import json, sys
from bertscore_onnx import BERTScorer
from uqlm.scorers.shortform import black_box
from uqlm_scorer import BundleScorer

pairs = json.loads(sys.argv[2])
with BERTScorer(sys.argv[1]) as scorer:
    black_box.BertScorer = lambda device: BundleScorer(scorer)
    texts = {"responses": [pair["candidate"] for pair in pairs],
             "sampled_responses": [pair["reference"] for pair in pairs]}
    result = black_box.BlackBoxUQ(scorers=["bert_score"]).score(**texts, show_progress_bars=False)
print(json.dumps(result.data["bert_score"]))
"""


def test_uqlm_scores_responses_by_the_mean_of_the_scorer(run, pairs, scorer, minilm_bundle):
    found = json.loads(
        run("uqlm", "python", "-c", UQLM_SCORE, minilm_bundle, json.dumps(pairs)).splitlines()[-1]
    )
    for pair, mean in zip(pairs, found, strict=True):
        references = pair["reference"]
        expected = scorer.score([pair["candidate"]] * len(references), references).F.mean()
        assert mean == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "integration"), [("evalscope_metric", "evalscope"), ("uqlm_scorer", "uqlm")]
)
def test_the_scripts_print_the_score(run, scorer, minilm_bundle, name, integration):
    texts = ["It is freezing today.", "It is cold today."]
    output = run(integration, "python", "-m", name, minilm_bundle, *texts)
    [found] = json.loads(output.splitlines()[-1])
    assert found == pytest.approx(float(scorer.score(texts[:1], texts[1:]).F[0]), abs=1e-6)


def test_promptfoo_passes_and_fails_outputs_by_their_score(run, scorer, minilm_bundle, tmp_path):
    folder = EXAMPLES / "promptfoo"
    tests = yaml.safe_load((folder / "promptfooconfig.yaml").read_text(encoding="utf-8"))["tests"]
    found = tmp_path / "found.json"
    config = [
        "--config",
        folder / "promptfooconfig.yaml",
        "--output",
        found,
        "--no-cache",
        "--no-write",
    ]
    node = Path(sys.prefix) / "integrations" / "promptfoo" / "node_modules" / ".bin"
    variables = {
        "BERTSCORE_BUNDLE": str(minilm_bundle),
        "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
    }
    run(
        "promptfoo",
        node / "promptfoo",
        "eval",
        *config,
        "--no-progress-bar",
        fails=True,
        **variables,
    )
    rows = json.loads(found.read_text(encoding="utf-8"))["results"]["results"]
    results = {row["vars"]["text"]: row["gradingResult"] for row in rows}
    texts = [one["vars"] for one in tests]
    expected = scorer.score([one["text"] for one in texts], [one["reference"] for one in texts])
    assert [results[one["text"]]["score"] for one in texts] == pytest.approx(
        expected.F.tolist(), abs=1e-5
    )
    assert [results[one["text"]]["pass"] for one in texts] == [True, False]
    assert all(str(scorer.signature) in results[one["text"]]["reason"] for one in texts[1:])
