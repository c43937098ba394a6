"""Correlations in resamples, against a loop over them with scipy."""

import numpy as np
import pytest
from scipy.stats import pearsonr

from bertscore_onnx.evaluation import layers as resampling
from bertscore_onnx.evaluation.layers import resampled_pearson


@pytest.fixture
def judged():
    rng = np.random.default_rng(0)
    human = rng.normal(50, 20, size=40)
    return human, (human / 1000 + rng.normal(0.8, 0.02, size=(3, 40))).astype(np.float32)


def test_each_resample_has_the_correlation_that_scipy_gives_its_segments(judged):
    human, metrics = judged
    found = resampled_pearson(human, metrics, np.random.default_rng(7), 20)
    drawn = np.random.default_rng(7).choice(40, size=(20, 40), replace=True)
    expected = [[pearsonr(human[some], one[some].astype(np.float64)).statistic for one in metrics] for some in drawn]
    assert np.abs(found - expected).max() < 1e-12


def test_many_segments_are_summed_slice_by_slice(judged, monkeypatch):
    whole = resampled_pearson(*judged, np.random.default_rng(7), 5)
    monkeypatch.setattr(resampling, "SLICE", 7)
    assert resampled_pearson(*judged, np.random.default_rng(7), 5) == pytest.approx(whole, abs=1e-12)


def test_a_resample_without_variance_has_no_value():
    human, metrics = np.array([1.0, 2.0]), np.float32([[0.5, 0.6], [0.7, 0.7]])
    found = resampled_pearson(human, metrics, np.random.default_rng(0), 200)
    is_constant = np.array([len({*some}) == 1 for some in np.random.default_rng(0).choice(2, size=(200, 2))])
    assert 0 < is_constant.sum() < 200
    assert np.isnan(found[is_constant]).all()
    assert found[~is_constant, 0] == pytest.approx(1)
    assert np.isnan(found[:, 1]).all()


def test_large_and_tiny_scores_do_not_lose_their_digits(judged):
    human, metrics = judged
    found = resampled_pearson(human * 1e9 + 1e12, metrics * 1e-6, np.random.default_rng(1), 10)
    assert found == pytest.approx(resampled_pearson(human, metrics, np.random.default_rng(1), 10), abs=1e-5)
