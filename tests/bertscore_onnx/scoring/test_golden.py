import shutil

import msgspec
import numpy as np
import onnx
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.errors import GoldenScoreError, GraphError, UnsafePathError
from bertscore_onnx.scoring.golden import (
    difference_by_pairs,
    golden_difference,
    golden_pipeline,
    golden_tolerance,
)
from tests.support.bundles import exported
from tests.support.manifests import seal


def change_weights(bundle, change, name="model.onnx"):
    model = onnx.load(bundle / name)
    largest = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    values = onnx.numpy_helper.to_array(largest)
    largest.raw_data = change(values).astype(values.dtype).tobytes()
    onnx.save(model, bundle / name)
    seal(bundle)


IDF = {"idf": True, "idf_sents": ["the cat", "a dog"]}


@pytest.mark.parametrize(
    "options",
    [{}, {"idf": True}, IDF, {"long_text": "window"}, {"max_length": 3}, {"all_layers": True}],
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
    changed = msgspec.structs.replace(
        manifest.golden[3], recall=[manifest.golden[3].recall[0] + 0.25]
    )
    seal(bundle, golden=[*manifest.golden[:3], changed, *manifest.golden[4:]])
    with golden_pipeline(bundle, device="cpu") as pipeline:
        assert golden_difference(pipeline) == pytest.approx(0.25, abs=1e-5)


def test_the_arithmetic_of_a_device_is_allowed_for(bundle, monkeypatch):
    with golden_pipeline(bundle, device="cpu") as pipeline:
        assert golden_tolerance(pipeline) == 1e-5
        monkeypatch.setattr(pipeline.encoder, "precision", "bf16")
        assert golden_tolerance(pipeline) == 0.05


# The scoring graph


@pytest.fixture
def with_graph(scoring_bundle, tmp_path):
    return shutil.copytree(scoring_bundle, tmp_path / "bundle")


@pytest.mark.parametrize("all_layers", [False, True])
def test_the_scoring_graph_scores_as_the_encoder(tiny_model, scoring_bundle, all_layers):
    bundle = exported("all-layers-scoring", tiny_model, all_layers=True, scoring_graph=True)
    assert (
        difference_by_pairs(open_bundle(bundle if all_layers else scoring_bundle), device="cpu")
        <= 1e-6
    )


def test_a_scoring_graph_of_other_weights_differs(with_graph):
    change_weights(with_graph, lambda values: values * 1.5, "scoring.onnx")
    assert difference_by_pairs(open_bundle(with_graph), device="cpu") > 1e-3


def test_a_scoring_graph_with_outside_weights_is_not_opened(with_graph):
    graph = onnx.load(with_graph / "scoring.onnx", load_external_data=False)
    for tensor in graph.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../outside"
    onnx.save(graph, with_graph / "scoring.onnx")
    seal(with_graph)
    with pytest.raises(UnsafePathError, match="outside"):
        open_bundle(with_graph)


def test_a_scoring_graph_of_other_outputs_is_refused(with_graph):
    graph = onnx.load(with_graph / "scoring.onnx", load_external_data=False)
    del graph.graph.output[2]
    onnx.save(graph, with_graph / "scoring.onnx")
    seal(with_graph)
    with pytest.raises(GraphError, match="not 'f1'"):
        difference_by_pairs(open_bundle(with_graph), device="cpu")
