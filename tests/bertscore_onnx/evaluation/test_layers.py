"""Tuning layers, and Pearson's r in resamples."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, pearsonr

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError, UnknownLayerError
from bertscore_onnx.evaluation import layers
from bertscore_onnx.evaluation.layers import _p_values, pairs_into_one_language, resampled_pearson, tune_layers
from tests.support.scores import WORDS

NUM_ROWS = 24
RNG = np.random.default_rng(0)
CANDIDATES = [" ".join(RNG.choice(WORDS.split(), size=6)) for _ in range(NUM_ROWS)]
REFERENCES = [" ".join(RNG.choice(WORDS.split(), size=6)) for _ in range(6)] * 4
HUMAN = RNG.normal(size=NUM_ROWS)
PAIRS = ["cs-en", "de-en", "cs-en"] * (NUM_ROWS // 3)


@pytest.fixture(scope="module")
def scorer(all_layers_bundle):
    with BERTScorer(all_layers_bundle, all_layers=True, device="cpu") as scorer:
        yield scorer


@pytest.fixture(scope="module")
def tuning(scorer):
    return tune_layers(scorer, CANDIDATES, REFERENCES, HUMAN, PAIRS)


def test_correlations_of_each_layer_are_means_of_those_of_scipy(scorer, tuning):
    scores = np.stack(scorer.score(CANDIDATES, REFERENCES)).astype(np.float64)  # (3, layers, rows)
    is_czech = np.array(PAIRS) == "cs-en"
    for layer, result in enumerate(tuning.layers):
        assert result.layer == layer
        for score, found in enumerate((result.precision, result.recall, result.f1)):
            each = [pearsonr(HUMAN[rows], scores[score, layer, rows]).statistic for rows in (is_czech, ~is_czech)]
            assert [*found.language_pairs.values()] == pytest.approx(each, abs=1e-6)
            assert found.pearson == pytest.approx(np.mean(each), abs=1e-6)
            assert found.low < found.pearson < found.high


def test_the_best_layer_is_the_first_with_the_highest_correlation_of_f(tuning):
    f1 = [result.f1.pearson for result in tuning.layers]
    assert tuning.best_layer == f1.index(max(f1))
    assert tuning.layers[tuning.best_layer].p is None
    assert tuning.export_command.startswith("bertscore-onnx export --model FOLDER --name tiny-bert")
    assert tuning.export_command.endswith(f"--num-layers {tuning.best_layer}")
    others = [result for result in tuning.layers if result.layer != tuning.best_layer]
    assert all(0 < result.p <= 1 for result in others)
    assert tuning.not_worse == tuple(result.layer for result in others if result.p >= 0.05)


def test_the_same_seed_gives_the_same_and_another_another(scorer, tuning):
    arguments = (scorer, CANDIDATES, REFERENCES, HUMAN, PAIRS)
    assert tune_layers(*arguments) == tuning
    assert tune_layers(*arguments, seed=1).layers[0].f1.low != tuning.layers[0].f1.low


def test_a_layer_as_good_as_people_beats_all_others(scorer):
    human = scorer.score(CANDIDATES, REFERENCES).F[1]
    tuning = tune_layers(scorer, CANDIDATES, REFERENCES, human)
    assert tuning.best_layer == 1
    assert tuning.layers[1].f1.pearson == pytest.approx(1)
    assert tuning.layers[0].p < 0.05
    assert 0 not in tuning.not_worse


def test_rows_that_nobody_judged_and_pairs_of_equal_judgements_count_nowhere(scorer, tuning):
    human, pairs = [*HUMAN, np.nan, np.nan, 1, 1], [*PAIRS, "cs-en", "fi-en", "ru-en", "ru-en"]
    found = tune_layers(scorer, [*CANDIDATES, *"abef"], [*REFERENCES, *"cdgh"], human, pairs)
    assert found.layers == tuning.layers
    assert found.language_pairs == {"cs-en": 16, "de-en": 8, "fi-en": 0, "ru-en": 2}
    assert found.left_out == {
        "fi-en": "0 judged, and a correlation needs two",
        "ru-en": "the human scores are constant",
    }


def test_several_references_count_by_the_best(scorer):
    references = [[one, "a dog ran"] for one in REFERENCES]
    scores = scorer.score(CANDIDATES, references).F[2].astype(np.float64)
    tuning = tune_layers(scorer, CANDIDATES, references, HUMAN)
    assert tuning.layers[2].f1.pearson == pytest.approx(pearsonr(HUMAN, scores).statistic, abs=1e-6)


def test_json_has_all_of_it_and_null_where_there_is_no_value(tuning):
    content = json.loads(tuning.to_json())
    assert content["best_layer"] == tuning.best_layer
    assert content["layers"][tuning.best_layer]["p"] is None
    assert content["layers"][0]["f1"]["pearson"] == tuning.layers[0].f1.pearson
    assert content["language_pairs"]["de-en"] == {"n": 8, "left_out": None}
    assert content["export"] == tuning.export_command


def test_a_bundle_of_one_layer_is_refused_with_the_export_option(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as one, pytest.raises(UnknownLayerError, match="--all-layers"):
        tune_layers(one, CANDIDATES, REFERENCES, HUMAN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"human": HUMAN[:3]}, r"human is \(3,\) long"),
        ({"references": REFERENCES[:3]}, "references is 3 long"),
        ({"language_pairs": ["cs-en"]}, "language_pairs is 1 long"),
        ({"human": [*HUMAN[:-1], np.inf]}, "human is infinite in row 23"),
        ({"human": np.full(NUM_ROWS, np.nan)}, "all: 0 judged, and a correlation needs two"),
        ({"human": np.ones(NUM_ROWS)}, "all: the human scores are constant"),
        ({"num_resamples": 0}, "num_resamples is 0"),
        ({"seed": -1}, "seed -1"),
        ({"candidates": ["a"], "references": ["b"], "human": [1.0]}, "all: 1 judged, and a correlation needs two"),
        ({"candidates": [], "references": [], "human": []}, "there are no rows"),
        (
            {"candidates": ["a cat"] * NUM_ROWS, "references": ["a cat"] * NUM_ROWS},
            "F is the same in all rows",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(scorer, changes, message):
    arguments = {"candidates": CANDIDATES, "references": REFERENCES, "human": HUMAN, **changes}
    with pytest.raises(InputError, match=message):
        tune_layers(scorer, **arguments)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_p_is_that_of_a_loop_over_resamples(seed):
    rng = np.random.default_rng(seed)
    mean, resampled = rng.normal(size=4), rng.normal(size=(50, 4))
    best = int(mean.argmax())
    found = _p_values(mean, resampled, best)
    for layer in set(range(4)) - {best}:
        distance = mean[best] - mean[layer]
        count = sum(abs(one[best] - one[layer] - distance) >= abs(distance) for one in resampled)
        assert found[layer] == (count + 1) / 51
    assert np.isnan(found[best])


def test_p_is_uniform_where_two_layers_are_as_good():
    """Two layers with independent noise of one size: the better one is so by chance."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(150):
        human = rng.normal(size=200)
        metrics = (human + rng.normal(size=(2, 200))).astype(np.float32)
        mean = np.array([pearsonr(human, one).statistic for one in metrics])
        best = int(mean.argmax())
        found.append(_p_values(mean, resampled_pearson(human, metrics, rng, 200), best)[1 - best])
    assert kstest(found, "uniform").pvalue > 0.01


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
    monkeypatch.setattr(layers, "SLICE", 7)
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
    assert found == pytest.approx(resampled_pearson(*judged, np.random.default_rng(1), 10), abs=1e-5)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["cs-en", "en-ru", "de-en", "cs-en"], ["cs-en", "de-en"]),
        (["en-de", "en-cs", "en-ru"], ["en-de", "en-cs", "en-ru"]),
        (["cs-en", "en-cs"], ["cs-en", "en-cs"]),
        (["news", "talks"], ["news", "talks"]),
        (["all", "all"], ["all"]),
        ([], []),
    ],
)
def test_pairs_into_the_language_that_most_share_are_chosen_and_all_where_there_is_none(names, chosen):
    assert pairs_into_one_language(names) == chosen
