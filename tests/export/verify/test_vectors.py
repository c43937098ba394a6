from pathlib import Path

import pytest
import torch
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.verify.vectors import verify_vectors

from bertscore_onnx.errors import VerificationError
from tests.export.verify.conftest import Load
from tests.support.tiny_models import SETTINGS

BERT = SETTINGS["bert"][1]
ROBERTA = SETTINGS["roberta"][1]


def test_a_graph_of_the_same_vectors_passes(load: Load, tmp_path: Path) -> None:
    model, _, _ = load("ernie", BERT)
    write_graph(model, tmp_path)
    verify_vectors(model, tmp_path / "model.onnx", padding=True)


@pytest.mark.parametrize("change", [0.1, float("nan")])
def test_a_graph_of_other_vectors_is_refused(change: float, load: Load, tmp_path: Path) -> None:
    model, _, _ = load("ernie", BERT)
    write_graph(model, tmp_path)
    with torch.no_grad():
        next(model.encoder.parameters()).add_(change)
    with pytest.raises(VerificationError, match="differs from PyTorch by"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)


def test_a_graph_for_one_batch_size_is_refused(load: Load, tmp_path: Path) -> None:
    model, _, _ = load("xmod", ROBERTA | {"languages": ["en_XX"], "default_language": "en_XX"})
    write_graph(model, tmp_path)
    with pytest.raises(VerificationError, match="fails on 1 x 1 tokens"):
        verify_vectors(model, tmp_path / "model.onnx", padding=True)
