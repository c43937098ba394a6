import json

import msgspec
import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.baselines import compute_baseline
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.catalogue import Baseline
from bertscore_onnx.bundle.manifest import UnrelatedScores
from bertscore_onnx.errors import BaselineError, InputError
from bertscore_onnx.matching.rescaling import Rescaling, choose_rescaling, rescale
from bertscore_onnx.scores import Scores
from tests.support.manifests import changed_copy

# Raw and rescaled scores that bert-score's own tests expect of roberta-large at layer 17
# (tests/test_score_function.py) with the baselines of rescale_baseline/en/roberta-large.tsv.
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
def test_published_scores_are_rescaled_as_published(raw, baseline, rescaled):
    assert rescale(np.float32([raw]), baseline)[0] == pytest.approx(rescaled, abs=1e-5)


@pytest.fixture
def manifest(tiny_bundle):
    """The manifest of a model with an English baseline."""
    return msgspec.structs.replace(
        read_manifest(tiny_bundle), baselines={"en": [Baseline(0.1, 0.2, 0.3)]}
    )


@pytest.mark.parametrize("lang", ["en", "EN"])
def test_the_language_chooses_the_bundles_baseline(manifest, lang):
    assert choose_rescaling(manifest, "fp32", lang) == Rescaling("en", (Baseline(0.1, 0.2, 0.3),))


@pytest.mark.parametrize("precision", ["bf16", "fp16", "int8"])
def test_a_baseline_of_another_precision_is_used_on_request(manifest, precision):
    with pytest.raises(BaselineError, match=f"fp32.*{precision}"):
        choose_rescaling(manifest, precision, "en")
    found = choose_rescaling(manifest, precision, "en", allow_fp32_baseline=True)
    assert found == Rescaling("en", (Baseline(0.1, 0.2, 0.3),))


def test_a_baseline_rescales_scores_of_its_own_precision(manifest):
    measured = msgspec.structs.replace(
        manifest, unrelated={"en": UnrelatedScores(10, "int8", [[0.1, 0.2]])}
    )
    assert choose_rescaling(measured, "int8", "en").name == "en"
    with pytest.raises(BaselineError, match=r"int8.*fp32"):
        choose_rescaling(measured, "fp32", "en")


def test_an_unknown_language_is_refused_before_the_precision(manifest):
    with pytest.raises(BaselineError, match="no baseline for 'xx', only for: en"):
        choose_rescaling(manifest, "bf16", "xx")


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4)])
def test_every_layer_is_rescaled_by_its_own_baseline(shape):
    raw = np.full(shape, 0.5, dtype=np.float32)
    rescaling = Rescaling("made up", (Baseline(0, 0.25, 0.5), Baseline(0.5, 0, 0)))
    scores = rescaling.apply(Scores(raw, raw, raw, np.zeros(shape[:2])))
    for array, first, second in zip(scores, (0.5, 1 / 3, 0), (0, 0.5, 0.5), strict=True):
        assert array.dtype == np.float32
        assert array[0] == pytest.approx(np.full(shape[1:], first), abs=1e-6)
        assert array[1] == pytest.approx(np.full(shape[1:], second), abs=1e-6)


def test_one_layer_needs_no_axis_and_no_baseline_no_change():
    raw = np.full(3, 0.5, dtype=np.float32)
    scores = Rescaling("made up", (Baseline(0, 0.25, 0.5),)).apply(
        Scores(raw, raw, raw, np.zeros(3))
    )
    assert [array.tolist() for array in scores] == [
        pytest.approx([value] * 3, abs=1e-6) for value in (0.5, 1 / 3, 0)
    ]
    assert Rescaling().apply(scores) is scores
    assert Rescaling().name == "no"


@pytest.fixture
def norwegian(tiny_bundle, tmp_path):
    """A bundle with an English and a Norwegian baseline, both measured on many pairs."""
    baselines = {language: [Baseline(0.1, 0.2, 0.3)] for language in ("en", "no")}
    measured = {language: UnrelatedScores(1000, "fp32", [[0.1, 0.2]]) for language in baselines}
    return changed_copy(
        tiny_bundle, tmp_path / "norwegian", baselines=baselines, unrelated=measured
    )


def test_no_language_is_named_like_a_file_or_another_language():
    baseline = (Baseline(0.1, 0.2, 0.3),)
    of_file = Rescaling(None, baseline).name
    languages = ["no", "language-no", "language-language-no", of_file, f"language-{of_file}"]
    assert (
        len({"no", of_file, *(Rescaling(language, baseline).name for language in languages)}) == 7
    )


def test_raw_scores_name_no_language_of_random_pairs(norwegian):
    with BERTScorer(norwegian) as scorer:
        assert scorer.unrelated_scores() is None
        assert scorer.unrelated_scores("no").tolist() == pytest.approx([0.1, 0.2])
        rescaled = scorer.with_rescaling("no").unrelated_scores().tolist()
        assert rescaled == pytest.approx([-0.2 / 0.7, -0.1 / 0.7])


def test_no_baseline_is_measured_of_norwegian_rescaled_scores(norwegian):
    with (
        BERTScorer(norwegian, rescale_with_baseline=True, lang="no") as scorer,
        pytest.raises(InputError, match="without both"),
    ):
        compute_baseline(scorer, ["a cat sat", "the dog ran", "a red house", "the tree is blue"])
