import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem

from bertscore_onnx import BERTScorer, baselines
from bertscore_onnx.baselines import (
    check_bundle,
    compute_baseline,
    draw_pairs,
    short_texts,
    write_baseline,
)
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.bundle.catalogue import read_baseline_file
from bertscore_onnx.errors import BaselineError, BundleError, InputError
from bertscore_onnx.hub.source import HubSource, add_names
from tests.support.scores import WORDS

TEXTS = [f"text {number}" for number in range(21)]


def test_texts_are_stripped_and_have_fewer_words_than_the_bound():
    lines = [" one two\n", "", "  ", "one two three", "one  two", "一二三四五六"]
    assert short_texts(lines, max_words=3) == ["one two", "一二三四五六"]
    assert short_texts(["w " * 31, "w " * 32]) == [("w " * 31).strip()]


def test_lines_beyond_the_first_million_are_not_read(monkeypatch):
    monkeypatch.setattr(baselines, "MAX_LINES", 3)
    lines = iter(["", "a", "b", "c"])
    assert short_texts(lines) == ["a", "b"]
    assert list(lines) == ["c"]


def test_pairs_are_drawn_as_by_bert_score_without_side_effects():
    np.random.seed(7)
    samples = np.random.choice(range(len(TEXTS)), size=(2, len(TEXTS) // 2), replace=False)
    state = np.random.get_state()
    assert draw_pairs(TEXTS, None, 7) == [(TEXTS[one], TEXTS[other]) for one, other in samples.T]
    np.testing.assert_equal(np.random.get_state(), state)


def test_no_text_is_drawn_twice_and_fewer_pairs_are_the_first():
    drawn = draw_pairs(TEXTS, None, 1)
    assert len({text for pair in drawn for text in pair}) == 20
    assert draw_pairs(TEXTS, 4, 1) == drawn[:4]
    assert draw_pairs(TEXTS, None, 2) != drawn


@pytest.mark.parametrize(
    ("texts", "num_pairs", "seed", "message"),
    [
        (TEXTS[:3], None, 0, "3 of the texts are short enough and not blank; expected 4 or more"),
        ([], None, 0, "0 of the texts are short"),
        (TEXTS, 11, 0, "11 pairs were asked for, and 21 texts make 10 at most"),
        (TEXTS, 1, 0, "num_pairs is 1; expected 2 or more"),
        (TEXTS, None, -1, "seed is -1"),
        (TEXTS, None, 2**32, "seed is 4294967296"),
    ],
)
def test_arguments_of_the_draw_are_checked(texts, num_pairs, seed, message):
    with pytest.raises(InputError, match=message):
        draw_pairs(texts, num_pairs, seed)


RNG = np.random.default_rng(0)
CORPUS = [" ".join(RNG.choice(WORDS.split(), size=RNG.integers(1, 9))) for _ in range(101)]


@pytest.fixture(scope="module")
def scorer(all_layers_bundle):
    with BERTScorer(all_layers_bundle, all_layers=True, device="cpu") as scorer:
        yield scorer


@pytest.fixture(scope="module")
def measured(scorer):
    return compute_baseline(scorer, CORPUS, seed=5)


@pytest.fixture(scope="module")
def measured_layer(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        return compute_baseline(scorer, CORPUS, seed=5)


@pytest.fixture(scope="module")
def scores(scorer):
    """P, R and F of the same pairs, (3, layers, pairs)."""
    candidates, references = zip(*draw_pairs(short_texts(CORPUS), None, 5), strict=True)
    return np.stack(scorer.score(candidates, references)).astype(np.float64)


def test_each_layer_has_its_mean_standard_error_and_quantiles(measured, scores):
    assert [layer.layer for layer in measured.layers] == [0, 1, 2, 3]
    for number, layer in enumerate(measured.layers):
        mean, error = layer.mean, layer.standard_error
        assert [mean.precision, mean.recall, mean.f1] == pytest.approx(
            scores[:, number].mean(axis=1), abs=1e-6
        )
        assert [error.precision, error.recall, error.f1] == pytest.approx(
            sem(scores[:, number], axis=1), abs=1e-6
        )
        assert layer.f1_quantiles == pytest.approx(
            np.percentile(scores[2, number], range(101)), abs=1e-5
        )
    assert (measured.num_pairs, measured.precision) == (50, "fp32")
    errors = [
        error
        for one in measured.layers
        for error in (one.standard_error.precision, one.standard_error.recall)
    ]
    assert measured.largest_standard_error >= max(errors)


def test_the_same_seed_gives_the_same_for_one_layer_and_for_all(scorer, measured, measured_layer):
    assert compute_baseline(scorer, CORPUS, seed=5) == measured
    assert compute_baseline(scorer, CORPUS, seed=6).layers != measured.layers
    [layer] = measured_layer.layers
    assert layer.layer == 2
    assert layer.mean.f1 == pytest.approx(measured.layers[2].mean.f1, abs=1e-6)


def test_the_file_of_a_baseline_is_read_for_rescaling(measured, tmp_path):
    path = tmp_path / "baseline.csv"
    path.write_text(measured.to_csv())
    assert read_baseline_file(path, 3).f1 == pytest.approx(measured.layers[3].mean.f1, abs=1e-8)


def test_json_has_all_of_it(measured):
    content = json.loads(measured.to_json())
    assert [layer["layer"] for layer in content["layers"]] == [0, 1, 2, 3]
    assert content["layers"][1]["f1"] == measured.layers[1].mean.f1
    assert (
        content["layers"][1]["standard_error"]["recall"] == measured.layers[1].standard_error.recall
    )
    assert len(content["layers"][1]["f1_quantiles"]) == 101
    assert (content["pairs"], content["seed"], content["max_words"]) == (50, 5, 32)


def test_it_stops_once_the_standard_errors_are_small_enough(scorer, monkeypatch):
    monkeypatch.setattr(baselines, "PAIRS_BETWEEN_CHECKS", 10)
    full = compute_baseline(scorer, CORPUS, seed=5, tolerance=0)
    assert full.num_pairs == 50
    early = compute_baseline(scorer, CORPUS, seed=5, tolerance=full.largest_standard_error * 1.5)
    assert 10 <= early.num_pairs < 50
    assert early.num_pairs % 10 == 0
    assert early.largest_standard_error < full.largest_standard_error * 1.5
    assert (
        early.layers
        == compute_baseline(scorer, CORPUS, seed=5, num_pairs=early.num_pairs, tolerance=0).layers
    )


@pytest.mark.parametrize(
    "options", [{"tolerance": -1}, {"tolerance": float("nan")}, {"max_words": 1}]
)
def test_settings_are_checked(scorer, options):
    with pytest.raises(InputError, match=f"{next(iter(options))} is"):
        compute_baseline(scorer, CORPUS, **options)


def test_a_scorer_that_weighs_or_rescales_is_refused(scorer, baseline_path):
    with (
        scorer.with_idf(True, CORPUS) as weighted,
        pytest.raises(InputError, match="measured without both"),
    ):
        compute_baseline(weighted, CORPUS)
    with (
        scorer.with_rescaling(baseline_path=baseline_path) as rescaled,
        pytest.raises(InputError, match="measured without both"),
    ):
        compute_baseline(rescaled, CORPUS)


PAIR = ["the cat sat"], ["a cat sat on the mat"]


def test_the_bundle_rescales_with_it_and_its_signature_follows(bundle, measured_layer):
    before, files = read_manifest(bundle).digest, sorted(bundle.iterdir())
    sealed = write_baseline(bundle, measured_layer, "EN")
    assert sorted(bundle.iterdir()) == files
    assert open_bundle(bundle, verify=True).manifest == sealed
    assert sealed.digest != before
    with BERTScorer(bundle, device="cpu", lang="en", rescale_with_baseline=True) as scorer:
        assert (scorer.signature.rescale, scorer.signature.bundle) == ("en", sealed.digest[:12])
        raw = scorer.with_rescaling().score(*PAIR).F[0]
        mean = measured_layer.layers[0].mean.f1
        assert scorer.score(*PAIR).F[0] == pytest.approx((raw - mean) / (1 - mean), abs=1e-5)


def test_only_the_baseline_of_the_same_language_is_replaced(bundle, measured_layer):
    first = write_baseline(bundle, measured_layer, "de")
    second = write_baseline(bundle, measured_layer, "en")
    assert second.baselines == {"de": first.baselines["de"], "en": first.baselines["de"]}
    assert list(second.unrelated_scores) == ["de", "en"]
    assert write_baseline(bundle, measured_layer, "en") == second


def test_unrelated_pairs_are_scored_with_the_scorers_settings(bundle, measured_layer):
    write_baseline(bundle, measured_layer, "en")
    with BERTScorer(bundle, device="cpu") as scorer:
        assert scorer.unrelated_scores() is None  # of 50 pairs
    measured_layer = replace(measured_layer, num_pairs=100)
    write_baseline(bundle, measured_layer, "en")
    quantiles = measured_layer.layers[0].f1_quantiles
    with BERTScorer(bundle, device="cpu") as scorer:
        assert scorer.unrelated_scores() == pytest.approx(quantiles)
        assert scorer.unrelated_scores("EN") == pytest.approx(quantiles)
        assert scorer.unrelated_scores("de") is None
        with scorer.with_idf(True, CORPUS) as weighted:
            assert weighted.unrelated_scores() is None
        with scorer.with_rescaling("en") as rescaled:
            raw, scaled = (
                (one.unrelated_scores() < one.score(*PAIR).F).mean() for one in (scorer, rescaled)
            )
            assert scaled == pytest.approx(raw, abs=1e-3)
    write_baseline(bundle, measured_layer, "de")
    with BERTScorer(bundle, device="cpu") as scorer:
        assert scorer.unrelated_scores() is None  # of two languages, neither is named
        with scorer.with_rescaling("de") as rescaled:
            assert rescaled.unrelated_scores() is not None


def test_a_scorer_that_is_open_goes_on_as_it_is(bundle, measured_layer):
    with BERTScorer(bundle, device="cpu") as scorer:
        assert scorer.unrelated_scores() is None
        before = scorer.score(*PAIR).F, scorer.signature
        write_baseline(bundle, measured_layer, "en")
        scorer.bundle.check_unchanged()
        assert (scorer.score(*PAIR).F, scorer.signature) == before
        with pytest.raises(BaselineError, match="no baseline for 'en'"):
            scorer.with_rescaling("en")


def test_only_a_generated_model_card_is_updated(bundle, measured_layer):
    sealed = write_baseline(bundle, measured_layer, "en")
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "| baselines | en |" in card
    assert card.count(sealed.digest) == 1
    assert f"bundle:{sealed.digest[:12]}" in card
    (bundle / "README.md").write_text("| baselines | none |")
    write_baseline(bundle, measured_layer, "de")
    assert (bundle / "README.md").read_text() == "| baselines | none |"


def test_a_failure_leaves_the_manifest_that_was_there(bundle, measured_layer, monkeypatch):
    before = (bundle / "bertscore.json").read_bytes()

    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(
        BundleError, match=r"cannot be changed \(No space left on device\).*`baseline_path`"
    ):
        write_baseline(bundle, measured_layer, "en")
    assert (bundle / "bertscore.json").read_bytes() == before
    assert not [file for file in bundle.iterdir() if file.name.startswith(".")]


def test_a_bundle_that_was_pulled_or_is_a_cache_stays_as_it_is(bundle, tmp_path, measured_layer):
    (bundle / "bertscore.json").rename(tmp_path / "blob")
    (bundle / "bertscore.json").symlink_to(tmp_path / "blob")
    with pytest.raises(BundleError, match="is a link, as in a cache"):
        check_bundle(bundle, "en")
    add_names(bundle, HubSource("org/repo"), "", "0" * 40)
    with pytest.raises(BundleError, match="was pulled from hf://org/repo"):
        write_baseline(bundle, measured_layer, "en")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_read_only_folder_is_refused(bundle):
    bundle.chmod(0o555)
    try:
        with pytest.raises(BundleError, match="cannot be changed"):
            check_bundle(bundle, "en")
    finally:
        bundle.chmod(0o755)


def test_a_bundle_of_all_layers_needs_a_baseline_of_each(
    all_layers_bundle, tmp_path, measured, measured_layer
):
    bundle = shutil.copytree(all_layers_bundle, tmp_path / "all")
    with pytest.raises(
        InputError, match=r"one of layers \[2\], and the bundle .* has \[0, 1, 2, 3\]"
    ):
        write_baseline(bundle, measured_layer, "en")
    write_baseline(bundle, replace(measured, num_pairs=100), "en")
    with BERTScorer(bundle, all_layers=True, device="cpu") as scorer:
        assert scorer.unrelated_scores("en").shape == (4, 101)


def test_a_manifest_without_the_field_keeps_its_digest(tiny_bundle):
    content = json.loads((tiny_bundle / "bertscore.json").read_bytes())
    assert "unrelated" not in content
    assert read_manifest(tiny_bundle).digest == content["digest"]
