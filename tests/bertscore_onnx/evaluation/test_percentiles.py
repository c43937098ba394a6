"""The percentile of a score among those of unrelated pairs, against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import percentileofscore

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.percentiles import percentile

QUARTERS = [0.2, 0.3, 0.4, 0.5, 0.8]


@pytest.mark.parametrize(
    ("f1", "percent"), [(0.1, 0), (0.2, 0), (0.25, 12.5), (0.4, 50), (0.65, 87.5), (0.8, 100), (0.9, 100)]
)
def test_a_score_stands_between_the_quantiles_around_it(f1, percent):
    assert float(percentile(f1, QUARTERS)) == pytest.approx(percent)


def test_of_equal_quantiles_the_middle_counts():
    assert float(percentile(0.4, [0.2, 0.4, 0.4, 0.4, 0.5])) == pytest.approx(50)
    assert percentile([0.3, 0.4, 0.5], [0.4, 0.4]).tolist() == [0, 50, 100]


@given(st.integers(0, 2**32 - 1))
def test_it_is_near_the_share_of_scores_that_scipy_counts(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=400)
    quantiles = np.quantile(scores, np.linspace(0, 1, 101))
    for f1 in rng.normal(size=5):
        expected = percentileofscore(scores, f1, kind="mean")
        assert float(percentile(f1, quantiles)) == pytest.approx(expected, abs=1)
        assert float(percentile(f1, np.sort(scores))) == pytest.approx(expected, abs=0.5)


def test_each_layer_has_its_own():
    found = percentile([[0.2, 0.4], [0.2, 0.9]], [[0.1, 0.3], [0.0, 1.0]])
    assert found == pytest.approx(np.array([[50, 100], [20, 90]]))


@pytest.mark.parametrize(
    ("f1", "unrelated"),
    [(np.nan, QUARTERS), (0.5, [0.5]), (0.5, [0.5, 0.4]), (0.5, [0.1, np.inf]), (0.5, [[0.1, 0.2]]), (0.5, [[[0.1]]])],
)
def test_arguments_are_checked(f1, unrelated):
    with pytest.raises(InputError):
        percentile(f1, unrelated)
