"""Graphs against the models they are of, and the bounds of architectures outside the table, found by running them."""

import pytest
import torch
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.pipeline import export_model
from bertscore_onnx_export.verify.vectors import max_tokens, takes_padding, verify_vectors

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import VerificationError
from tests.support.tiny_models import KINDS, POSITIONS, SETTINGS, save_tiny_model

BERT = SETTINGS["bert"][1]
ROBERTA = SETTINGS["roberta"][1]
MOBILEBERT = {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16}


@pytest.fixture
def load(tmp_path):
    """Draws a tiny model and loads its first layer, as the export does."""

    def loaded(model_type, settings):
        save_tiny_model(model_type, settings, tmp_path / model_type)
        source = Source(str(tmp_path / model_type))
        config = load_config(source)
        family = family_of(config)
        return load_cut(source, config, family, 1), config, family

    return loaded


def test_a_graph_of_the_same_vectors_passes(load, tmp_path):
    model, _, _ = load("ernie", BERT)
    write_graph(model, tmp_path)
    verify_vectors(model, tmp_path / "model.onnx", padding=True)


@pytest.mark.parametrize("change", [0.1, float("nan")])
def test_a_graph_of_other_vectors_is_refused(change, load, tmp_path):
    model, _, _ = load("ernie", BERT)
    write_graph(model, tmp_path)
    with torch.no_grad():
        next(model.encoder.parameters()).add_(change)
    with pytest.raises(VerificationError, match="differs from PyTorch by"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)


def test_a_graph_for_one_batch_size_is_refused(load, tmp_path):
    model, _, _ = load("xmod", ROBERTA | {"languages": ["en_XX"], "default_language": "en_XX"})
    write_graph(model, tmp_path)
    with pytest.raises(VerificationError, match=r"'xmod' fails on 1 x 1 tokens: .* Export a model of another type"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)


@pytest.mark.parametrize(("model_type", "settings"), [("ernie", BERT), ("data2vec-text", ROBERTA)])
def test_the_longest_text_is_found_by_trying(model_type, settings, load):
    assert max_tokens(*load(model_type, settings)) == POSITIONS


@pytest.mark.parametrize(
    ("model_type", "settings", "harmless"),
    [("ernie", BERT, True), ("mobilebert", BERT | MOBILEBERT, False), ("nystromformer", BERT, False)],
)
def test_leaking_padding_is_found(model_type, settings, harmless, load):
    model, _, family = load(model_type, settings)
    assert takes_padding(model, family) is harmless


def test_an_architecture_outside_the_table_is_exported_with_a_warning(tmp_path):
    tokenizer = KINDS["bert"](tmp_path)
    save_tiny_model("ernie", BERT | {"vocab_size": len(tokenizer)}, tmp_path / "ernie")
    tokenizer.save_pretrained(tmp_path / "ernie")
    with pytest.warns(UserWarning, match="'ernie'.*no layer was tuned"):
        bundle = export_model(str(tmp_path / "ernie"), num_layers=2, output=tmp_path / "bundle")
    assert read_manifest(bundle).family == "ernie"
