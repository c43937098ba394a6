"""Hybrid systems and model selection among them, against loops and scipy's intervals."""

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.hybrid import binomial_interval, hybrid_systems, select_by_each, select_models


@pytest.fixture
def human():
    """Judgements with gaps, of 4 systems × 6 segments; nobody judged segment 2."""
    scores = np.arange(24.0).reshape(4, 6)
    scores[0, 0] = scores[1, 1] = scores[2, 3] = scores[3, 3] = np.nan
    scores[:, 2] = np.nan
    return scores


def test_outputs_are_of_judged_systems(human):
    hybrids = hybrid_systems(human, num_hybrids=500)
    assert hybrids.segments.tolist() == [0, 1, 3, 4, 5]
    assert not np.isnan(human[hybrids.systems, hybrids.segments]).any()


def test_all_judged_systems_are_as_likely(human):
    drawn = hybrid_systems(human, num_hybrids=6000).systems
    for column, judged in enumerate([3, 3, 2, 4, 4]):
        counts = np.unique(drawn[:, column], return_counts=True)[1]
        assert len(counts) == judged
        assert stats.chisquare(counts).pvalue > 0.001


def test_scores_are_means_of_the_outputs(human, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.evaluation.hybrid.CHUNK_CELLS", 35)
    hybrids = hybrid_systems(human, num_hybrids=50)
    expected = [
        np.mean([human[system, segment] for system, segment in zip(row, hybrids.segments, strict=True)])
        for row in hybrids.systems
    ]
    assert hybrids.scores(human) == pytest.approx(expected, abs=1e-12)


def test_scores_have_the_shape_of_the_judgements(human):
    with pytest.raises(InputError, match=r"Scores of shape \(4, 7\); expected \(4, 6\)"):
        hybrid_systems(human, num_hybrids=2).scores(np.ones((4, 7)))


def test_judged_outputs_need_scores(human):
    with pytest.raises(InputError, match="A judged output has no finite score"):
        hybrid_systems(human, num_hybrids=50).scores(np.where(human == 23, np.nan, human))


def test_selection_is_as_a_loop_has_it():
    rng = np.random.default_rng(1)
    human, metric = rng.integers(0, 20, (2, 60)).astype(np.float64)
    draws, hits, reciprocal, diffs = np.random.default_rng(3), [], [], []
    for _ in range(400):
        drawn = draws.choice(60, 10, replace=False)
        chosen = human[drawn[np.argmax(metric[drawn])]]
        rank = 1 + sum(human[one] > chosen for one in drawn)
        hits.append(rank == 1)
        reciprocal.append(1 / rank)
        diffs.append(max(human[drawn]) - chosen)

    result = select_models(human, metric, num_candidates=10, trials=400, seed=3)

    for estimate, values in ((result.hits_at_1, hits), (result.mrr, reciprocal), (result.diff, diffs)):
        assert estimate.value == pytest.approx(np.mean(values), abs=1e-12)
    low, high = stats.norm.interval(0.95, np.mean(diffs), stats.sem(diffs, ddof=0))
    assert (result.diff.low, result.diff.high) == pytest.approx((low, high), abs=1e-12)


def test_several_metrics_choose_among_the_same_systems():
    rng = np.random.default_rng(4)
    human, *metrics = rng.normal(size=(3, 40))
    settings = {"num_candidates": 6, "trials": 50, "seed": 2}
    assert select_by_each(human, metrics, **settings) == [select_models(human, one, **settings) for one in metrics]


def test_a_metric_that_agrees_with_people_always_hits():
    human = np.random.default_rng(2).normal(size=30)
    result = select_models(human, 2 * human, num_candidates=5, trials=50)
    assert (result.hits_at_1.value, result.mrr.value, result.diff.value) == (1, 1, 0)


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (519, 10_000)])
def test_binomial_interval(hits, trials):
    expected = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    estimate = binomial_interval(hits, trials)
    assert estimate.value == hits / trials
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("candidates", [1, 31])
def test_the_number_of_candidates_is_checked(candidates):
    with pytest.raises(InputError, match=f"with {candidates} candidates of 30 systems"):
        select_models(np.arange(30), np.arange(30), num_candidates=candidates)


def test_systems_without_judgements_are_no_candidates():
    with pytest.raises(InputError, match="no human score"):
        select_models(np.array([1, np.nan, 2]), np.ones(3), num_candidates=2)


def test_without_judgements_there_are_no_hybrids():
    with pytest.raises(InputError, match="of 0 judged segments"):
        hybrid_systems(np.full((2, 2), np.nan))


def test_hits_are_checked():
    with pytest.raises(InputError, match="3 hits in 2 trials"):
        binomial_interval(3, 2)
