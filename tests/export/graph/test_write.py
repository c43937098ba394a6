import shutil
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from safetensors.torch import load_file, save_file

from bertscore_onnx.errors import ExportError, UnsupportedFamilyError
from bertscore_onnx_export.graph import exporters, write
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.verify.vectors import sample_ids, unit_vectors
from tests.support.tiny_models import LAYERS, SETTINGS, save_tiny_model

IDS = np.array([[11, 12, 13, 14, 15], [21, 22, 23, 0, 0]])
MASK = (IDS > 0).astype(np.int64)


@pytest.mark.parametrize(
    "name",
    [
        "albert",
        "bert",
        *(
            pytest.param(name, marks=pytest.mark.full)
            for name in ("deberta-v3", "longformer", "t5", "xlnet")
        ),
    ],
)
def test_streamed_weights_give_the_same_vectors(name, tmp_path, monkeypatch):
    save_tiny_model(*SETTINGS[name], tmp_path / name)
    usual, streamed = (tmp_path / kind for kind in ("usual", "streamed"))
    export(tmp_path / name, LAYERS - 1, usual)
    monkeypatch.setattr(exporters, "LARGE", 0)
    export(tmp_path / name, LAYERS - 1, streamed)
    assert [file.name for file in usual.iterdir()] == ["model.onnx"]
    assert sorted(file.name for file in streamed.iterdir()) == ["model.onnx", "model.onnx.data"]
    np.testing.assert_allclose(
        vectors(streamed)[MASK > 0], vectors(usual)[MASK > 0], rtol=0, atol=1e-6
    )


def test_weights_that_layers_share_are_streamed_once(tmp_path, monkeypatch):
    monkeypatch.setattr(exporters, "LARGE", 0)
    save_tiny_model(*SETTINGS["albert"], tmp_path / "albert")
    for num_layers in (1, LAYERS):
        export(tmp_path / "albert", num_layers, tmp_path / str(num_layers))
    shallow, deep = (
        onnx.load(tmp_path / str(layers) / "model.onnx").graph for layers in (1, LAYERS)
    )
    assert len(shallow.node) < len(deep.node)
    assert len(shallow.initializer) == len(deep.initializer)


def test_the_embeddings_alone_take_no_mask(tmp_path):
    save_tiny_model(*SETTINGS["bert"], tmp_path / "bert")
    assert export(tmp_path / "bert", 0, tmp_path / "graph") == ["input_ids"]


BUCKETS = {"position_buckets": 12, "max_position_embeddings": 90}
"""With these the longest distance is on the boundary of two buckets, where ONNX Runtime's logarithm
rounds up.
"""


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("deberta-v3", BUCKETS),
        pytest.param("deberta-v2", BUCKETS, marks=pytest.mark.families),
        pytest.param("mpnet", {"max_position_embeddings": 160}, marks=pytest.mark.families),
        pytest.param("t5", {}, marks=pytest.mark.families),
    ],
)
def test_buckets_of_distances_are_those_of_pytorch(name, settings, tmp_path):
    kind, tiny = SETTINGS[name]
    save_tiny_model(kind, {**tiny, **settings}, tmp_path / name)
    model = load(tmp_path / name, 2)
    write.write_graph(model, tmp_path)
    operators = {node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node}
    assert not {"If", "Log"} & operators
    for tokens in (2, 12, 89, 90, 91, 150):
        ids, mask = sample_ids(model, tokens)
        expected = unit_vectors(model, ids, mask).numpy()
        np.testing.assert_allclose(
            vectors(tmp_path, ids.numpy(), mask.numpy()), expected, rtol=0, atol=1e-5
        )


def test_a_full_disk_stops_the_export(tmp_path, monkeypatch):
    save_tiny_model(*SETTINGS["bert"], tmp_path / "bert")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=10_000_000))
    with pytest.raises(ExportError, match=r"0\.1 GB"):
        export(tmp_path / "bert", 1, tmp_path / "graph")


def test_a_model_that_fails_when_it_is_traced_is_not_supported(tmp_path):
    save_tiny_model(*SETTINGS["deberta-v3"], tmp_path / "deberta")
    with pytest.raises(UnsupportedFamilyError, match=r"deberta-v2.*0 layers"):
        export(tmp_path / "deberta", 0, tmp_path / "graph")


def test_missing_weights_are_named(tmp_path):
    save_tiny_model(*SETTINGS["bert"], tmp_path / "bert")
    weights = load_file(tmp_path / "bert" / "model.safetensors")
    del weights["encoder.layer.0.output.dense.bias"], weights["encoder.layer.2.output.dense.bias"]
    save_file(weights, tmp_path / "bert" / "model.safetensors", metadata={"format": "pt"})
    with pytest.warns(UserWarning, match="lacks 1 weights"):
        export(tmp_path / "bert", 1, tmp_path / "graph")


def export(model, num_layers, folder):
    folder.mkdir(exist_ok=True)
    return write.write_graph(load(model, num_layers), folder)


def load(model, num_layers):
    source = Source(str(model))
    config = load_config(source)
    return load_cut(source, config, family_of(config), num_layers)


def vectors(folder, ids=IDS, mask=MASK):
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    return session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
