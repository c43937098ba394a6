"""`examples/deepeval_metric.py`: deepeval evaluates with BERTScore, and its copies of the metric share one scorer."""

import json

import pytest

pytestmark = pytest.mark.integration
EVALUATE = """
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


def test_test_cases_pass_and_fail_by_their_score(run, pairs, scorer, minilm_bundle):
    output = run("deepeval", "python", "-c", EVALUATE, minilm_bundle, json.dumps(pairs))
    found, failure, signature, has_torch = json.loads(output.splitlines()[-1])
    f1 = scorer.score([pair["candidate"] for pair in pairs], [pair["reference"][-1] for pair in pairs]).F
    assert [found[name][1] for name in "012"] == pytest.approx(f1.tolist(), abs=1e-5)
    assert [found[name][0] for name in "012"] == [True, True, False]
    assert {found[name][2] for name in "012"} == {signature}
    assert "BERTScore" in failure
    assert not has_torch


def test_the_script_runs(run, minilm_bundle):
    assert "BERTScore" in run("deepeval", "python", "-m", "deepeval_metric", minilm_bundle)
