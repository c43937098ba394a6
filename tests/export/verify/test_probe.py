"""Architectures outside the table: what is learnt by running them, and how their graphs are verified."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.model.families import Family, family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.pipeline import export_model
from bertscore_onnx_export.verify.probe import max_tokens, takes_padding, verify_vectors
from transformers import BertTokenizer, PreTrainedModel

from bertscore_onnx.bundle.opening import read_manifest
from bertscore_onnx.errors import VerificationError
from tests.support.tiny_models import POSITIONS, SETTINGS, save_tiny_model

BERT = SETTINGS["bert"][1]
ROBERTA = SETTINGS["roberta"][1]
MOBILEBERT = {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16}

Loaded = tuple[PreTrainedModel, Any, Family]
Load = Callable[..., Loaded]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Draws a tiny model and loads its first layer."""

    def loaded(model_type: str, settings: dict[str, Any]) -> Loaded:
        save_tiny_model(model_type, settings, tmp_path / model_type)
        source = Source(str(tmp_path / model_type))
        config = load_config(source)
        family = family_of(config)
        return load_cut(source, config, family, 1), config, family

    return loaded


@pytest.mark.parametrize(("model_type", "settings"), [("ernie", BERT), ("data2vec-text", ROBERTA)])
def test_the_longest_text_is_found_by_trying(model_type: str, settings: dict[str, Any], load: Load) -> None:
    assert max_tokens(*load(model_type, settings)) == POSITIONS


@pytest.mark.parametrize(
    ("model_type", "settings", "harmless"),
    [("ernie", BERT, True), ("mobilebert", BERT | MOBILEBERT, False), ("nystromformer", BERT, False)],
)
def test_leaking_padding_is_noticed(model_type: str, settings: dict[str, Any], harmless: bool, load: Load) -> None:
    model, _, family = load(model_type, settings)
    assert takes_padding(model, family) is harmless


def test_a_graph_of_the_same_vectors_passes(load: Load, tmp_path: Path) -> None:
    model, _, _ = load("ernie", BERT)
    write_graph(model, tmp_path)
    verify_vectors(model, tmp_path / "model.onnx", padding=True)


def test_a_graph_of_other_vectors_is_refused(load: Load, tmp_path: Path) -> None:
    model, _, _ = load("ernie", BERT)
    write_graph(model, tmp_path)
    with torch.no_grad():
        next(model.encoder.parameters()).add_(0.1)
    with pytest.raises(VerificationError, match="differs from PyTorch by"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)


def test_a_graph_for_one_batch_size_is_refused(load: Load, tmp_path: Path) -> None:
    model, _, _ = load("xmod", ROBERTA | {"languages": ["en_XX"], "default_language": "en_XX"})
    write_graph(model, tmp_path)
    with pytest.raises(VerificationError, match="fails on 1 x 1 tokens"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)


def test_an_architecture_outside_the_table_is_exported_with_a_warning(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,", "the", "cat"]
    save_tiny_model("ernie", BERT, tmp_path / "ernie")
    (tmp_path / "ernie" / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizer(tmp_path / "ernie" / "vocab.txt").save_pretrained(tmp_path / "ernie")
    with pytest.warns(UserWarning, match="'ernie'.*no layer was tuned"):
        bundle = export_model(str(tmp_path / "ernie"), num_layers=2, output=tmp_path / "bundle")
    assert read_manifest(bundle).family == "ernie"
