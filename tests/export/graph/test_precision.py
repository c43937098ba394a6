"""Bundles in fp16 and int8: their difference from fp32, what they keep of it, and refusals."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.numpy_helper import from_array, to_array

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import UnsupportedFamilyError, VerificationError
from bertscore_onnx.scoring.golden import GOLDEN_TOLERANCES
from bertscore_onnx_export.graph import exporters, write
from bertscore_onnx_export.graph.nodes import load_graph, replace_graph
from bertscore_onnx_export.graph.precision import (
    WEIGHT_LIMIT,
    convert_to_fp16,
    fuse,
    quantize_to_int8,
)
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.pipeline import export_model
from tests.support.bundles import exported
from tests.support.tiny_models import SETTINGS, save_tiny_model

LOWER = {"fp16": convert_to_fp16, "int8": quantize_to_int8}
TEXTS = ["the cat sat on the mat", "a dog ran", "it is red and the house is blue or not, was it?"]


@pytest.fixture(scope="module", params=LOWER)
def precision(request):
    return request.param


@pytest.fixture(scope="module")
def lowered(precision, tiny_model):
    """The bundle of the tiny model at layer 2 in reduced precision."""
    return exported(f"tiny-{precision}", tiny_model, num_layers=2, precision=precision)


def test_the_manifest_says_the_precision_and_what_it_costs(lowered, precision):
    manifest = open_bundle(lowered, verify=True).manifest
    assert manifest.precision == precision
    assert 1e-6 < manifest.golden_difference <= GOLDEN_TOLERANCES[precision]


def test_all_layers(tiny_model, tmp_path, precision):
    bundle = export_model(
        str(tiny_model), all_layers=True, output=tmp_path / "bundle", precision=precision
    )
    with BERTScorer(bundle, all_layers=True, device="cpu") as scorer:
        assert scorer.score(TEXTS[:1], TEXTS[1:2]).F.shape == (4, 1)


@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [pytest.param("fp16", 3e-4, marks=pytest.mark.full), ("int8", 0.015)],
    indirect=["precision"],
)
def test_pretrained_weights(minilm, minilm_bundle, precision, tolerance):
    bundle = exported(f"minilm-{precision}", minilm, num_layers=4, precision=precision)
    sizes = [(folder / "model.onnx").stat().st_size for folder in (bundle, minilm_bundle)]
    assert sizes[0] < 0.75 * sizes[1]
    assert open_bundle(bundle).manifest.golden_difference <= tolerance


def test_large_weights_stay_in_a_file_of_their_own(
    lowered, tiny_model, tmp_path, monkeypatch, precision
):
    monkeypatch.setattr(exporters, "LARGE", 0)
    bundle = export_model(
        str(tiny_model), num_layers=2, output=tmp_path / "bundle", precision=precision
    )
    manifest = open_bundle(bundle, verify=True).manifest
    assert "model.onnx.data" in manifest.files
    assert (bundle / "model.onnx.data").stat().st_size > 10_000
    operators = [
        [node.op_type for node in onnx.load(folder / "model.onnx").graph.node]
        for folder in (bundle, lowered)
    ]
    assert operators[0].count("Attention") == operators[1].count("Attention")
    with BERTScorer(bundle, device="cpu") as streamed, BERTScorer(lowered, device="cpu") as usual:
        difference = np.stack(streamed.score(TEXTS, TEXTS[::-1])) - np.stack(
            usual.score(TEXTS, TEXTS[::-1])
        )
    assert np.abs(difference).max() < 1e-3


def test_weights_that_are_not_numbers_are_refused(tiny_model, tmp_path, monkeypatch, precision):
    def spoil(folder):
        LOWER[precision](folder)
        model = load_graph(folder)
        scale = next(
            t
            for t in model.graph.initializer
            if t.name.endswith(("LayerNorm.weight", "LayerNorm.weight_fp16"))
        )
        scale.CopyFrom(from_array(to_array(scale) * np.float16(np.nan), scale.name))
        replace_graph(model, folder)

    monkeypatch.setattr(f"bertscore_onnx_export.pipeline.{LOWER[precision].__name__}", spoil)
    with pytest.raises(VerificationError, match=f"vectors in {precision}"):
        export_model(str(tiny_model), num_layers=2, output=tmp_path / "bundle", precision=precision)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_fusion_is_refused_even_if_scores_hardly_move(tiny_model, tmp_path, monkeypatch):
    def fuse_wrongly(folder, config):
        fuse(folder, config)
        model = load_graph(folder)
        attention = next(node for node in model.graph.node if node.op_type == "Attention")
        packed = next(
            tensor for tensor in model.graph.initializer if tensor.name == attention.input[1]
        )
        packed.CopyFrom(from_array(to_array(packed) * np.float32(1.001), packed.name))
        replace_graph(model, folder)

    monkeypatch.setattr("bertscore_onnx_export.pipeline.fuse", fuse_wrongly)
    with pytest.raises(VerificationError, match="differs from PyTorch"):
        export_model(str(tiny_model), num_layers=2, output=tmp_path / "bundle", precision="fp16")


def test_a_graph_without_products_has_no_int8(tiny_model, tmp_path):
    with pytest.raises(UnsupportedFamilyError, match="int8"):
        export_model(str(tiny_model), num_layers=0, output=tmp_path / "bundle", precision="int8")


@pytest.mark.parametrize("precision", ["fp16"], indirect=True)
def test_attention_and_normalisation_are_fused_in_fp16(lowered):
    operators = [node.op_type for node in onnx.load(lowered / "model.onnx").graph.node]
    assert (operators.count("Attention"), operators.count("SkipLayerNormalization")) == (2, 4)
    assert "Softmax" not in operators


@pytest.mark.parametrize("precision", ["int8"], indirect=True)
def test_no_pair_of_integer_products_passes_16_bits(lowered):
    matrices = [
        to_array(t)
        for t in onnx.load(lowered / "model.onnx").graph.initializer
        if t.name.endswith("_int8")
    ]
    largest = [int(np.abs(matrix).max()) for matrix in matrices if matrix.ndim == 2]
    assert largest == [WEIGHT_LIMIT] * 12
    assert 2 * 255 * WEIGHT_LIMIT < 2**15


@pytest.mark.full
@pytest.mark.parametrize("name", ["modernbert", "xlnet"])
def test_far_positions_are_exact_in_fp16(name, tmp_path):
    save_tiny_model(*SETTINGS[name], tmp_path / name)
    config = load_config(Source(str(tmp_path / name)))
    (tmp_path / "graph").mkdir()
    write.write_graph(
        load_cut(Source(str(tmp_path / name)), config, family_of(config), 2), tmp_path / "graph"
    )
    usual = long_text(tmp_path / "graph")
    fuse(tmp_path / "graph", config)
    convert_to_fp16(tmp_path / "graph")
    assert np.abs(long_text(tmp_path / "graph") - usual).max() < 0.015


def long_text(folder):
    ids = np.random.default_rng(0).integers(10, 120, (1, 2100))
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    return session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
