"""Graphs against the models they are of, and the bounds of architectures outside the table, found
by running them.
"""

from functools import partial

import pytest
import torch
from transformers import XmodConfig, XmodModel

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import VerificationError
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.pipeline import export_model
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import original_ids, write_tokenizer
from bertscore_onnx_export.verify.bundle import verify_bundle
from bertscore_onnx_export.verify.golden import encode_long_text
from bertscore_onnx_export.verify.vectors import max_tokens, takes_padding, verify_vectors
from tests.support.bundles import exported, saved
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


@pytest.mark.parametrize("change", [0.1, float("nan")])
def test_a_graph_of_other_vectors_is_refused(change, load, tmp_path):
    model, _, _ = load("ernie", BERT)
    write_graph(model, tmp_path)
    with torch.no_grad():
        next(model.encoder.parameters()).add_(change)
    with pytest.raises(VerificationError, match="differs from PyTorch"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)


def test_a_graph_for_one_batch_size_is_refused(tmp_path):
    config = XmodConfig(**ROBERTA, languages=["en_XX", "de_DE"], default_language="en_XX")
    # of several languages; the tracer fixes which texts have which
    model = XmodModel(config).eval()
    write_graph(model, tmp_path)
    with pytest.raises(VerificationError, match=r"xmod.*1 x 1"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)


@pytest.mark.parametrize(("model_type", "settings"), [("ernie", BERT), ("data2vec-text", ROBERTA)])
def test_the_longest_text_is_found_by_trying(model_type, settings, load):
    assert max_tokens(*load(model_type, settings)) == POSITIONS


@pytest.mark.parametrize(
    ("model_type", "settings", "harmless"),
    [
        ("ernie", BERT, True),
        ("mobilebert", BERT | MOBILEBERT, False),
        ("nystromformer", BERT, False),
    ],
)
def test_leaking_padding_is_found(model_type, settings, harmless, load):
    model, _, family = load(model_type, settings)
    assert takes_padding(model, family) is harmless


def test_an_unknown_architecture_is_exported_with_a_warning(tmp_path):
    tokenizer = KINDS["bert"](tmp_path)
    save_tiny_model("splinter", BERT | {"vocab_size": len(tokenizer)}, tmp_path / "splinter")
    tokenizer.save_pretrained(tmp_path / "splinter")
    with pytest.warns(UserWarning, match="splinter"):
        bundle = export_model(str(tmp_path / "splinter"), num_layers=2, output=tmp_path / "bundle")
    assert read_manifest(bundle).family == "splinter"


def test_a_graph_that_fixes_the_most_tokens_is_refused(monkeypatch, tmp_path):
    def span(query, key, most):
        # the tracer does not follow `min`
        return torch.tensor(min(max(query.size(-2), key.size(-2)), most))

    monkeypatch.setattr("transformers.models.deberta.modeling_deberta.compute_attention_span", span)
    with pytest.raises(VerificationError, match="72 tokens"):
        export_model(str(saved("deberta")), num_layers=1, output=tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.fixture
def long_text(tmp_path):
    """Return a function that encodes a long text with two layers of a BERT, given the most
    tokens.
    """
    source = Source(str(saved("bert")))
    config = load_config(source)
    model, tokenizer = (
        load_cut(source, config, family_of(config), 2),
        load_tokenizer(source, "slow"),
    )
    write_tokenizer(tokenizer, POSITIONS, tmp_path)
    return lambda max_length: encode_long_text(model, partial(original_ids, tokenizer), max_length)


@pytest.mark.parametrize("max_length", [8, POSITIONS])
def test_the_long_text_has_the_maximum_length(max_length, long_text):
    assert len(long_text(max_length).ids) == max_length


def test_a_model_that_fails_below_its_maximum_is_refused(long_text):
    with pytest.raises(VerificationError, match="60 tokens"):
        long_text(None)


@pytest.mark.parametrize("change", [2e-4, float("nan")])
@pytest.mark.parametrize("place", [0, POSITIONS - 1])
def test_another_vector_of_a_long_text_is_refused(change, place, long_text):
    bundle, text = exported("bundle", saved("bert"), num_layers=2), long_text(POSITIONS)
    assert verify_bundle(bundle, text) == pytest.approx(
        read_manifest(bundle).golden_difference, abs=1e-6
    )
    text.vectors[0, place, 0] += change
    with pytest.raises(VerificationError, match=f"{POSITIONS} tokens"):
        verify_bundle(bundle, text)


@pytest.mark.filterwarnings("ignore:No test compares models of the type 'opt':UserWarning")
def test_all_layers_are_refused_if_an_unknown_norm_follows(tmp_path):
    tokenizer = KINDS["bert"](tmp_path)
    sizes = {"vocab_size": len(tokenizer), "ffn_dim": 48, "word_embed_proj_dim": 32}
    save_tiny_model("opt", BERT | sizes, tmp_path / "opt")
    tokenizer.save_pretrained(tmp_path / "opt")
    model, output = str(tmp_path / "opt"), tmp_path / "bundle"
    with pytest.raises(VerificationError, match="--no-inner-norm"):
        export_model(model, all_layers=True, output=output)
    assert read_manifest(
        export_model(model, all_layers=True, inner_norm=False, output=output)
    ).all_layers
