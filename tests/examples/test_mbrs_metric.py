"""`examples/mbrs_metric.py`: mbrs decodes with BERTScore."""

import json

import pytest

pytestmark = pytest.mark.integration
HYPOTHESES = [
    "A dog ran.",
    "It is cold today.",
    "Today it is very cold.",
    "It is freezing today.",
    "He sold the old house and bought a boat.",
]
SCORE = """
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


def test_the_candidate_most_like_all_others_is_chosen(run, scorer, minilm_bundle, tmp_path):
    (tmp_path / "hypotheses.txt").write_text("\n".join(HYPOTHESES), encoding="utf-8")
    output = run("mbrs", "python", "-m", "mbrs_metric", minilm_bundle, "hypotheses.txt")
    best = scorer.pairwise(HYPOTHESES, HYPOTHESES).F.mean(axis=1).argmax()
    assert output.splitlines()[-1] == HYPOTHESES[best]


def test_its_scores_are_those_of_the_scorer(run, scorer, minilm_bundle):
    output = run("mbrs", "python", "-c", SCORE, minilm_bundle, json.dumps(HYPOTHESES))
    one, each, means = json.loads(output.splitlines()[-1])
    matrix = scorer.pairwise(HYPOTHESES, HYPOTHESES).F
    assert one == pytest.approx(matrix[0, 1], abs=1e-5)
    assert each == pytest.approx(matrix[:, ::-1].diagonal().tolist(), abs=1e-5)
    assert means == pytest.approx(matrix.mean(axis=1).tolist(), abs=1e-5)
