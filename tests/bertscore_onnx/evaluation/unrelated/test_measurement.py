"""Baselines of a tiny model, against its scores."""

import json

import numpy as np
import pytest
from scipy.stats import sem

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.catalogue import read_baseline_file
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation import baselines as measurement
from bertscore_onnx.evaluation.baselines import compute_baseline, draw_pairs, short_texts
from tests.support.scores import WORDS

RNG = np.random.default_rng(0)
TEXTS = [" ".join(RNG.choice(WORDS.split(), size=RNG.integers(1, 9))) for _ in range(101)]


@pytest.fixture(scope="module")
def scorer(all_layers_bundle):
    with BERTScorer(all_layers_bundle, all_layers=True, device="cpu") as scorer:
        yield scorer


@pytest.fixture(scope="module")
def measured(scorer):
    return compute_baseline(scorer, TEXTS, seed=5)


@pytest.fixture(scope="module")
def scores(scorer):
    """P, R and F of the same pairs, (3, layers, pairs)."""
    candidates, references = zip(*draw_pairs(short_texts(TEXTS), None, 5), strict=True)
    return np.stack(scorer.score(candidates, references)).astype(np.float64)


def test_each_layer_has_the_mean_its_standard_error_and_the_quantiles(measured, scores):
    assert [layer.layer for layer in measured.layers] == [0, 1, 2, 3]
    for number, layer in enumerate(measured.layers):
        mean, error = layer.mean, layer.standard_error
        assert [mean.precision, mean.recall, mean.f1] == pytest.approx(scores[:, number].mean(axis=1), abs=1e-6)
        assert [error.precision, error.recall, error.f1] == pytest.approx(sem(scores[:, number], axis=1), abs=1e-6)
        assert layer.f1_quantiles == pytest.approx(np.percentile(scores[2, number], range(101)), abs=1e-5)
    assert (measured.num_pairs, measured.precision) == (50, "fp32")
    errors = [error for one in measured.layers for error in (one.standard_error.precision, one.standard_error.recall)]
    assert measured.largest_standard_error >= max(errors)


def test_the_same_seed_gives_the_same(scorer, measured):
    assert compute_baseline(scorer, TEXTS, seed=5) == measured
    assert compute_baseline(scorer, TEXTS, seed=6).layers != measured.layers


def test_a_bundle_of_one_layer_gets_that_one(tiny_bundle, measured):
    with BERTScorer(tiny_bundle, device="cpu") as one:
        [layer] = compute_baseline(one, TEXTS, seed=5).layers
    assert layer.layer == 2
    assert layer.mean.f1 == pytest.approx(measured.layers[2].mean.f1, abs=1e-6)


def test_it_is_written_as_a_file_that_rescaling_reads(measured, tmp_path):
    path = tmp_path / "baseline.csv"
    path.write_text(measured.to_csv())
    assert path.read_text().splitlines()[0] == "LAYER,P,R,F"
    found = read_baseline_file(path, 3)
    assert found.f1 == pytest.approx(measured.layers[3].mean.f1, abs=1e-8)


def test_json_has_all_of_it(measured):
    content = json.loads(measured.to_json())
    assert [layer["layer"] for layer in content["layers"]] == [0, 1, 2, 3]
    assert content["layers"][1]["f1"] == measured.layers[1].mean.f1
    assert content["layers"][1]["standard_error"]["recall"] == measured.layers[1].standard_error.recall
    assert len(content["layers"][1]["f1_quantiles"]) == 101
    assert (content["pairs"], content["seed"], content["max_words"]) == (50, 5, 32)


def test_it_stops_once_the_standard_errors_are_small_enough(scorer, monkeypatch):
    monkeypatch.setattr(measurement, "PAIRS_BETWEEN_CHECKS", 10)
    full = compute_baseline(scorer, TEXTS, seed=5, tolerance=0)
    assert full.num_pairs == 50
    early = compute_baseline(scorer, TEXTS, seed=5, tolerance=full.largest_standard_error * 1.5)
    assert 10 <= early.num_pairs < 50
    assert early.num_pairs % 10 == 0
    assert early.largest_standard_error < full.largest_standard_error * 1.5
    assert early.layers == compute_baseline(scorer, TEXTS, seed=5, num_pairs=early.num_pairs, tolerance=0).layers


def test_texts_that_are_all_alike_have_no_baseline(scorer):
    with pytest.raises(InputError, match="All pairs score 1"):
        compute_baseline(scorer, ["a cat sat"] * 8)


def test_a_scorer_that_weighs_or_rescales_is_refused(scorer, baseline_path):
    with scorer.with_idf(True, TEXTS) as weighted, pytest.raises(InputError, match="measured without both"):
        compute_baseline(weighted, TEXTS)
    with (
        scorer.with_rescaling(baseline_path=baseline_path) as rescaled,
        pytest.raises(InputError, match="measured without both"),
    ):
        compute_baseline(rescaled, TEXTS)


@pytest.mark.parametrize("tolerance", [-1, float("nan")])
def test_a_tolerance_that_is_none_is_refused(scorer, tolerance):
    with pytest.raises(InputError, match="tolerance is"):
        compute_baseline(scorer, TEXTS, tolerance=tolerance)
