"""OpenVINO itself; skipped where it is not installed, or does not support the processor."""

import sys
from importlib.metadata import version

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.encoding.providers import OPENVINO, is_installed
from bertscore_onnx.errors import DeviceError
from tests.support.processes import forks, in_forked_child, run_python

CANDIDATES = [
    "The cat sat on the mat.",
    "A dog.",
    "It rains in the north and snows in the south.",
] * 20
REFERENCES = ["A cat was on the mat.", "The dogs bark.", "In the north it rains."] * 20


@pytest.fixture
def scores_on(tiny_bundle):
    """Return a function that scores on a device."""

    def score(device, **options):
        with BERTScorer(tiny_bundle, device=device, **options) as scorer:
            return np.array(scorer.score(CANDIDATES, REFERENCES)), scorer.hash

    if not is_installed(OPENVINO):
        pytest.skip("OpenVINO is not installed")
    try:
        score("openvino")
    except DeviceError as error:
        if "does not support processors" not in str(error):
            raise
        pytest.skip(str(error))
    return score


def test_the_signature_names_the_precision_of_the_vectors(scores_on):
    expected, _ = scores_on("cpu")
    found, signature = scores_on("openvino")
    difference = np.abs(found - expected).max()
    assert f"+onnxruntime-ep-openvino-{version('onnxruntime-ep-openvino')}+" in signature
    assert 1e-5 < difference < 0.02 if "precision:bf16" in signature else difference <= 1e-5


@pytest.mark.parametrize(
    "options", [{}, {"nthreads": 1}, {"nthreads": 3}, {"optimize_for": "latency"}], ids=str
)
def test_scores_are_the_same_from_run_to_run(scores_on, options):
    first, _ = scores_on("openvino", **options)
    for _ in range(2):
        assert np.array_equal(scores_on("openvino", **options)[0], first)


@forks
def test_a_forked_child_scores_alike(scores_on, tiny_bundle):
    with BERTScorer(tiny_bundle, device="openvino") as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES).F.tolist()
        assert in_forked_child(lambda: scorer.score(CANDIDATES, REFERENCES).F.tolist()) == expected


MEASURE = """
import sys
from pathlib import Path
from bertscore_onnx import BERTScorer

with BERTScorer(sys.argv[1], device="openvino", nthreads=1) as scorer:
    for words in range(300, 0, -1):
        for number in (1, 3):
            texts = ["the " * words] * number
            scorer.score(texts, texts)
        if words in (100, 1):
            print(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_new_shapes_take_no_further_memory(scores_on, minilm_bundle):
    done = run_python(MEASURE, minilm_bundle)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after - before < 30e6  # it was 89 MB with OpenVINO's own number of kernels
