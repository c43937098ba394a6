"""HF evaluate: its own unchanged script on the stand-in, and our metric; offline, and our metric
without PyTorch.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bertscore_onnx.compat import evaluate_metric
from tests.support.parity import KNOWN_WARNINGS

pytestmark = [pytest.mark.full, *KNOWN_WARNINGS]

ROOT = Path(__file__).parents[3]
SCRIPT = Path(
    os.environ.get("EVALUATE_BERTSCORE", ROOT.parent / "shared" / "data" / "callers" / "bertscore")
)
"""The metric script `metrics/bertscore` of HF evaluate, which its package does not hold."""

needs_script = pytest.mark.skipif(
    not SCRIPT.exists(),
    reason="needs evaluate's metrics/bertscore: set EVALUATE_BERTSCORE to its folder",
)

CANDIDATES = ["The cat sat on the mat.", "It is freezing today.", "A dog ran home."]
SEVERAL = [
    ["A cat sat.", "The cat is on a mat."],
    ["It is cold today."],
    ["The dog ran.", "A dog went home.", "Dogs."],
]
FIRST = ["A cat was sitting on a mat.", "It is cold.", "The dog ran away."]
SECOND = [
    "The weather is nice today.",
    "Cold, cold, and cold again.",
    "A dog, a dog, my home for a dog!",
]

PROGRAM = """
import json, sys

from bertscore_onnx import compat

script = sys.argv[1]
compat.install()

import evaluate

metric = evaluate.load(script)
results = [metric.compute(**call) for call in json.load(sys.stdin)]
print(json.dumps([results, "torch" in sys.modules]))
"""


@pytest.fixture
def calls(minilm_bundle, baseline_path_of_minilm):
    model = {"model_type": str(minilm_bundle)}
    rescaled = {
        "lang": "en",
        "rescale_with_baseline": True,
        "baseline_path": str(baseline_path_of_minilm),
    }
    return [
        {"predictions": CANDIDATES, "references": SEVERAL, **model},
        {"predictions": CANDIDATES, "references": FIRST, "idf": True, **model},
        {"predictions": CANDIDATES, "references": SECOND, "idf": True, **model},
        {"predictions": CANDIDATES, "references": SEVERAL, **rescaled, **model},
    ]


@pytest.fixture(scope="module")
def peer(minilm):
    from bert_score import BERTScorer

    def score(references, **options):
        scorer = BERTScorer(
            model_type=str(minilm), num_layers=4, device="cpu", nthreads=0, **options
        )
        return [array.numpy() for array in scorer.score(CANDIDATES, references)]

    return score


def results_of(script, calls, tmp_path):
    """Return what the metric computes in a process of its own, where only the tensors of the
    stand-in need PyTorch.
    """
    environment = {**os.environ, "HF_MODULES_CACHE": str(tmp_path / "modules"), "USE_TORCH": "0"}
    command = [sys.executable, "-c", PROGRAM, str(script)]
    done = subprocess.run(
        command,
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    results, has_torch = json.loads(done.stdout)
    assert has_torch == (script == SCRIPT)
    return results


def assert_equal(result, expected):
    for name, theirs in zip(("precision", "recall", "f1"), expected, strict=True):
        np.testing.assert_allclose(result[name], theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("script", "idf_of_second"),
    [
        # evaluate keeps a scorer with the weights of the first references, whatever it scores with
        pytest.param(SCRIPT, FIRST, id="its unchanged script", marks=needs_script),
        pytest.param(Path(evaluate_metric()), SECOND, id="our metric"),
    ],
)
def test_a_metric_gives_the_scores_of_bert_score(calls, peer, tmp_path, script, idf_of_second):
    plain, first, second, rescaled = results_of(script, calls, tmp_path)
    assert_equal(plain, peer(SEVERAL))
    assert_equal(first, peer(FIRST, idf=True, idf_sents=FIRST))
    assert_equal(second, peer(SECOND, idf=True, idf_sents=idf_of_second))
    options = {name: calls[3][name] for name in ("lang", "rescale_with_baseline", "baseline_path")}
    assert_equal(rescaled, peer(SEVERAL, **options))
    if script == SCRIPT:
        assert first["hashcode"] == second["hashcode"] != plain["hashcode"]
    else:
        assert plain["hashcode"].startswith("bertscore-onnx|model:")


def test_a_call_without_a_model_is_refused(tmp_path, calls):
    with pytest.raises(AssertionError, match="model"):
        results_of(evaluate_metric(), [{"predictions": ["a"], "references": ["b"]}], tmp_path)
