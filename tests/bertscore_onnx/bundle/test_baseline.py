import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.bundle.baseline import rescale


def test_the_baseline_becomes_zero_and_one_stays_one():
    assert rescale(np.float32([0.8, 0.9, 1.0]), 0.8).tolist() == pytest.approx([0, 0.5, 1], abs=1e-6)


def test_scores_below_the_baseline_become_negative():
    assert rescale(np.float32([0]), 0.5).tolist() == [-1]


def test_the_result_stays_single_precision():
    assert rescale(np.float32([0.5]), 0.25).dtype == np.float32


# Raw and rescaled scores that bert-score's own tests expect of roberta-large at layer 17 (tests/test_score_function.py)
# with the baselines of rescale_baseline/en/roberta-large.tsv.
PUBLISHED = """
[[0.9843302369117737, 0.83150584, 0.907000780105591],
 [0.9832239747047424, 0.83150584, 0.900435566902161],
 [0.9120386242866516, 0.83150584, 0.477955609560013],
 [0.9823839068412781, 0.8314941, 0.895456790924072],
 [0.9732863903045654, 0.8314941, 0.841467440128326],
 [0.920428991317749, 0.8314941, 0.527785062789917],
 [0.9833561182022095, 0.83122575, 0.901383399963379],
 [0.9782299995422363, 0.83122575, 0.871010780334473],
 [0.916214644908905, 0.83122575, 0.503565192222595]]
"""


@pytest.mark.parametrize(("raw", "baseline", "rescaled"), json.loads(PUBLISHED))
def test_published_scores_of_roberta_large_are_rescaled_as_published(raw, baseline, rescaled):
    assert rescale(np.float32([raw]), baseline)[0] == pytest.approx(rescaled, abs=1e-5)


@given(st.floats(-1, 1), st.floats(-0.9, 0.9), st.floats(-1, 1))
def test_rescaling_keeps_the_order(one, baseline, other):
    low, high = sorted((one, other))
    rescaled = rescale(np.float32([low, high]), baseline)
    assert rescaled[0] <= rescaled[1]
