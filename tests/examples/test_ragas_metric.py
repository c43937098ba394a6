"""`examples/ragas_metric.py`: an experiment of ragas, and a batch, are scored with BERTScore."""

import json

import pytest

pytestmark = pytest.mark.integration
EXPERIMENT = """
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


def test_an_experiment_is_scored(run, pairs, scorer, expected, minilm_bundle):
    output = run("ragas", "python", "-c", EXPERIMENT, minilm_bundle, json.dumps(pairs))
    found, has_torch = json.loads(output.splitlines()[-1])
    results = [found[pair["candidate"]] for pair in pairs]
    assert [score for score, _ in results] == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert all(str(scorer.signature) in reason for _, reason in results)
    assert not has_torch


def test_a_batch_is_scored(run, pairs, expected, minilm_bundle, tmp_path):
    samples = [{"response": pair["candidate"], "reference": pair["reference"]} for pair in pairs]
    (tmp_path / "samples.json").write_text(json.dumps(samples), encoding="utf-8")
    lines = run("ragas", "python", "-m", "ragas_metric", minilm_bundle, "samples.json").splitlines()
    assert [float(line.split()[0]) for line in lines] == pytest.approx(expected.F.tolist(), abs=1e-5)
