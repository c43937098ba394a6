"""Architectures outside the table: their bounds are found by running them."""

from pathlib import Path
from typing import Any

import pytest
from bertscore_onnx_export.pipeline import export_model
from bertscore_onnx_export.verify.vectors import max_tokens, takes_padding
from transformers import BertTokenizer

from bertscore_onnx.bundle.bundle import read_manifest
from tests.export.verify.conftest import Load
from tests.support.tiny_models import POSITIONS, SETTINGS, save_tiny_model

BERT = SETTINGS["bert"][1]
ROBERTA = SETTINGS["roberta"][1]
MOBILEBERT = {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16}


@pytest.mark.parametrize(("model_type", "settings"), [("ernie", BERT), ("data2vec-text", ROBERTA)])
def test_the_longest_text_is_found_by_trying(model_type: str, settings: dict[str, Any], load: Load) -> None:
    assert max_tokens(*load(model_type, settings)) == POSITIONS


@pytest.mark.parametrize(
    ("model_type", "settings", "harmless"),
    [("ernie", BERT, True), ("mobilebert", BERT | MOBILEBERT, False), ("nystromformer", BERT, False)],
)
def test_leaking_padding_is_found(model_type: str, settings: dict[str, Any], harmless: bool, load: Load) -> None:
    model, _, family = load(model_type, settings)
    assert takes_padding(model, family) is harmless


def test_an_architecture_outside_the_table_is_exported_with_a_warning(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,", "the", "cat"]
    save_tiny_model("ernie", BERT, tmp_path / "ernie")
    (tmp_path / "ernie" / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizer(tmp_path / "ernie" / "vocab.txt").save_pretrained(tmp_path / "ernie")
    with pytest.warns(UserWarning, match="'ernie'.*no layer was tuned"):
        bundle = export_model(str(tmp_path / "ernie"), num_layers=2, output=tmp_path / "bundle")
    assert read_manifest(bundle).family == "ernie"
