import shutil

import msgspec
import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.errors import GoldenScoreError
from bertscore_onnx.scoring.golden import golden_difference, golden_pipeline, golden_tolerance
from tests.support.manifests import seal


@pytest.fixture
def bundle(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")


def change_weights(bundle, change):
    import onnx
    from onnx import numpy_helper

    model = onnx.load(bundle / "model.onnx")
    largest = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    values = numpy_helper.to_array(largest)
    largest.raw_data = change(values).astype(values.dtype).tobytes()
    onnx.save(model, bundle / "model.onnx")
    seal(bundle)


IDF = {"idf": True, "idf_sents": ["the cat", "a dog"]}


@pytest.mark.parametrize(
    "options", [{}, {"idf": True}, IDF, {"long_text": "window"}, {"max_length": 3}, {"all_layers": True}]
)
def test_a_sound_bundle_is_verified_whatever_the_settings(tiny_bundle, all_layers_bundle, options):
    bundle = all_layers_bundle if "all_layers" in options else tiny_bundle
    BERTScorer(bundle, device="cpu", verify=True, **options).close()


def test_other_weights_under_a_new_seal_are_noticed_on_request(bundle):
    change_weights(bundle, lambda values: np.random.default_rng(1).normal(size=values.shape))
    BERTScorer(bundle, device="cpu").close()
    with pytest.raises(GoldenScoreError, match="1e-05"):
        BERTScorer(bundle, device="cpu", verify=True)


def test_weights_that_give_no_numbers_are_noticed_on_request(bundle):
    change_weights(bundle, lambda values: values * np.nan)
    with pytest.raises(GoldenScoreError, match="cannot be scored"):
        BERTScorer(bundle, device="cpu", verify=True)


def test_without_golden_pairs_nothing_is_verified(bundle):
    seal(bundle, golden=[])
    with pytest.raises(GoldenScoreError, match="no golden"):
        BERTScorer(bundle, device="cpu", verify=True)


def test_the_difference_is_the_largest_of_any_score(bundle):
    manifest = read_manifest(bundle)
    changed = msgspec.structs.replace(manifest.golden[3], recall=[manifest.golden[3].recall[0] + 0.25])
    seal(bundle, golden=[*manifest.golden[:3], changed, *manifest.golden[4:]])
    with golden_pipeline(bundle, device="cpu") as pipeline:
        assert golden_difference(pipeline) == pytest.approx(0.25, abs=1e-5)


def test_the_arithmetic_of_a_device_is_allowed_for(bundle, monkeypatch):
    with golden_pipeline(bundle, device="cpu") as pipeline:
        assert golden_tolerance(pipeline) == 1e-5
        monkeypatch.setattr(Encoder, "precision", "bf16")
        assert golden_tolerance(pipeline) == 0.05
