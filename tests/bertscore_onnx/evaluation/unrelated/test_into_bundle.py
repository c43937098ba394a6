"""Baselines in the bundle that they were measured with."""

import json
import os
import shutil

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.errors import BaselineError, BundleError, InputError
from bertscore_onnx.evaluation.baselines import check_bundle, compute_baseline, write_baseline
from bertscore_onnx.evaluation.percentiles import percentile
from bertscore_onnx.hub.source import Origin, add_origin
from tests.conftest import WORDS

RNG = np.random.default_rng(1)
TEXTS = [" ".join(RNG.choice(WORDS.split(), size=6)) for _ in range(60)]
PAIR = ["the cat sat"], ["a cat sat on the mat"]


@pytest.fixture(scope="module")
def measured(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        return compute_baseline(scorer, TEXTS)


@pytest.fixture
def bundle(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")


def test_the_bundle_rescales_with_it_and_its_signature_follows(bundle, measured):
    before = read_manifest(bundle).digest
    sealed = write_baseline(bundle, measured, "EN")
    assert open_bundle(bundle, verify=True).manifest == sealed
    assert sealed.digest != before
    with BERTScorer(bundle, device="cpu", lang="en", rescale_with_baseline=True) as scorer:
        assert (scorer.signature.rescale, scorer.signature.bundle) == ("en", sealed.digest[:12])
        raw = scorer.with_rescaling().score(*PAIR).F[0]
        mean = measured.layers[0].mean.f1
        assert scorer.score(*PAIR).F[0] == pytest.approx((raw - mean) / (1 - mean), abs=1e-5)


def test_baselines_of_other_languages_stay_and_one_of_the_same_is_replaced(bundle, measured):
    first = write_baseline(bundle, measured, "de")
    second = write_baseline(bundle, measured, "en")
    assert second.baselines == {"de": first.baselines["de"], "en": first.baselines["de"]}
    assert list(second.unrelated_scores) == ["de", "en"]
    assert write_baseline(bundle, measured, "en") == second


def test_the_scorer_knows_what_unrelated_pairs_score_as_it_scores_them(bundle, measured):
    write_baseline(bundle, measured, "en")
    quantiles = measured.layers[0].f1_quantiles
    with BERTScorer(bundle, device="cpu") as scorer:
        assert scorer.unrelated_scores() == pytest.approx(quantiles)
        assert scorer.unrelated_scores("EN") == pytest.approx(quantiles)
        assert scorer.unrelated_scores("de") is None
        with scorer.with_idf(True, TEXTS) as weighted:
            assert weighted.unrelated_scores() is None
        with scorer.with_rescaling("en") as rescaled:
            raw = percentile(scorer.score(*PAIR).F, scorer.unrelated_scores())
            assert percentile(rescaled.score(*PAIR).F, rescaled.unrelated_scores()) == pytest.approx(raw, abs=1e-3)
    write_baseline(bundle, measured, "de")
    with BERTScorer(bundle, device="cpu") as scorer:
        assert scorer.unrelated_scores() is None
        with scorer.with_rescaling("de") as rescaled:
            assert rescaled.unrelated_scores() is not None


def test_a_bundle_that_was_not_measured_knows_nothing(scorer):
    assert scorer.unrelated_scores() is None
    assert scorer.unrelated_scores("en") is None


def test_all_layers_have_theirs(all_layers_bundle, tmp_path):
    bundle = shutil.copytree(all_layers_bundle, tmp_path / "all")
    with BERTScorer(bundle, all_layers=True, device="cpu") as scorer:
        write_baseline(bundle, compute_baseline(scorer, TEXTS), "en")
    with BERTScorer(bundle, all_layers=True, device="cpu") as scorer:
        assert scorer.unrelated_scores("en").shape == (4, 101)


def test_a_scorer_that_is_open_goes_on_as_it_is(bundle, measured):
    with BERTScorer(bundle, device="cpu") as scorer:
        before = scorer.score(*PAIR).F, scorer.signature
        write_baseline(bundle, measured, "en")
        scorer.bundle.check_unchanged()
        assert (scorer.score(*PAIR).F, scorer.signature) == before
        with pytest.raises(BaselineError, match="no baseline for 'en'"):
            scorer.with_rescaling("en")


def test_the_card_that_the_export_wrote_follows_and_one_of_somebody_else_stays(bundle, measured):
    sealed = write_baseline(bundle, measured, "en")
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "| baselines | en |" in card
    assert card.count(sealed.digest) == 1
    assert f"bundle:{sealed.digest[:12]}" in card
    (bundle / "README.md").write_text("| baselines | none |")
    write_baseline(bundle, measured, "de")
    assert (bundle / "README.md").read_text() == "| baselines | none |"


def test_no_other_file_is_left(bundle, measured):
    before = sorted(bundle.iterdir())
    write_baseline(bundle, measured, "en")
    assert sorted(bundle.iterdir()) == before


def test_a_failure_leaves_the_manifest_that_was_there(bundle, measured, monkeypatch):
    before = (bundle / "bertscore.json").read_bytes()

    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(BundleError, match=r"cannot be changed \(No space left on device\).*--baseline-path"):
        write_baseline(bundle, measured, "en")
    assert (bundle / "bertscore.json").read_bytes() == before
    assert not [file for file in bundle.iterdir() if file.name.startswith(".")]


def test_a_bundle_that_was_pulled_stays_as_it_is(bundle, measured):
    add_origin(bundle, Origin("hf://org/repo", None, "", None))
    with pytest.raises(BundleError, match="was pulled from hf://org/repo, and stays as it is there"):
        write_baseline(bundle, measured, "en")


def test_a_manifest_that_is_a_link_into_a_cache_stays(bundle, tmp_path):
    (bundle / "bertscore.json").rename(tmp_path / "blob")
    (bundle / "bertscore.json").symlink_to(tmp_path / "blob")
    with pytest.raises(BundleError, match="is a link, as in a cache"):
        check_bundle(bundle, "en")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_told(bundle):
    bundle.chmod(0o555)
    try:
        with pytest.raises(BundleError, match="cannot be changed"):
            check_bundle(bundle, "en")
    finally:
        bundle.chmod(0o755)


def test_a_language_that_is_no_code_is_refused(bundle):
    with pytest.raises(InputError, match="expected a language code, 'en'"):
        check_bundle(bundle, "english")


def test_a_baseline_of_other_layers_is_refused(all_layers_bundle, tmp_path, measured):
    bundle = shutil.copytree(all_layers_bundle, tmp_path / "all")
    with pytest.raises(InputError, match=r"one of layers \[2\], and the bundle .* has \[0, 1, 2, 3\]"):
        write_baseline(bundle, measured, "en")


def test_a_manifest_without_the_field_keeps_its_digest(tiny_bundle):
    content = json.loads((tiny_bundle / "bertscore.json").read_bytes())
    assert "unrelated" not in content
    assert read_manifest(tiny_bundle).digest == content["digest"]
