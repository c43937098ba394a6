"""OpenVINO itself; skipped where it is not installed, or does not support the processor."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.encoding.providers import OPENVINO, is_installed
from bertscore_onnx.errors import DeviceError
from tests.support.processes import forks, in_forked_child

CANDIDATES = ["The cat sat on the mat.", "A dog.", "It rains in the north and snows in the south."] * 20
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
    assert 1e-5 < difference < 0.02 if "precision:bf16" in signature else difference <= 1e-5


@pytest.mark.parametrize("options", [{}, {"nthreads": 1}, {"nthreads": 3}, {"optimize_for": "latency"}], ids=str)
def test_scores_are_the_same_from_run_to_run(scores_on, options):
    first, _ = scores_on("openvino", **options)
    for _ in range(2):
        assert np.array_equal(scores_on("openvino", **options)[0], first)


@forks
def test_a_forked_child_scores_alike(scores_on, tiny_bundle):
    with BERTScorer(tiny_bundle, device="openvino") as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES).F.tolist()
        assert in_forked_child(lambda: scorer.score(CANDIDATES, REFERENCES).F.tolist()) == expected
