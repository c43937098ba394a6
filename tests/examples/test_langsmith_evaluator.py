"""`examples/langsmith_evaluator.py`: langsmith evaluates with BERTScore; nothing is uploaded."""

import json

import pytest

pytestmark = pytest.mark.integration
EVALUATE = """
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


def test_examples_are_evaluated(run, pairs, expected, minilm_bundle):
    scores = json.loads(run("langsmith", "python", "-c", EVALUATE, minilm_bundle, json.dumps(pairs)).splitlines()[-1])
    for pair, f1 in zip(pairs, expected.F.tolist(), strict=True):
        assert scores[pair["candidate"]] == [["bertscore_f", pytest.approx(f1, abs=1e-5)]]
