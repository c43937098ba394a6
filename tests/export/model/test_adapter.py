import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source

QUERY = "encoder.layer.{}.attention.self.query"
RANK, ALPHA = 2, 6


@pytest.fixture
def model(tiny_model, tmp_path):
    """A model with an adapter of the queries of two layers and of the embeddings of words."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    draw = torch.Generator().manual_seed(0)
    sides = {
        f"base_model.model.{QUERY.format(layer)}.lora_{side}.weight": torch.randn(
            shape, generator=draw
        )
        for layer in (0, 2)
        for side, shape in (("A", (RANK, 32)), ("B", (32, RANK)))
    }
    words = "base_model.model.embeddings.word_embeddings.lora_embedding_"
    sides |= {
        f"{words}A": torch.randn(RANK, 30, generator=draw),
        f"{words}B": torch.randn(32, RANK, generator=draw),
    }
    (folder / "retrieval").mkdir()
    save_file(sides, folder / "retrieval" / "adapter_model.safetensors")
    write_settings(folder)
    return folder


def write_settings(folder, **changed):
    settings = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "bias": "none", **changed}
    (folder / "retrieval" / "adapter_config.json").write_text(json.dumps(settings))


def load(folder, adapter=None):
    source = Source(str(folder), adapter=adapter)
    config = load_config(source)
    return dict(load_cut(source, config, family_of(config), 2).named_parameters())


@pytest.mark.parametrize(
    ("settings", "scale"), [({}, ALPHA / RANK), ({"use_rslora": True}, ALPHA / RANK**0.5)]
)
def test_the_products_are_added_to_the_weights(model, settings, scale):
    from safetensors.torch import load_file

    write_settings(model, **settings)
    plain, merged = load(model), load(model, "retrieval")
    parts = load_file(model / "retrieval" / "adapter_model.safetensors")
    changed = {name for name in plain if not torch.equal(plain[name], merged[name])}
    query, words = f"{QUERY.format(0)}.weight", "embeddings.word_embeddings.weight"
    assert changed == {query, words}  # not the layer above the cut
    first = [parts[f"base_model.model.{QUERY.format(0)}.lora_{side}.weight"] for side in "BA"]
    assert torch.allclose(merged[query] - plain[query], scale * first[0] @ first[1], atol=1e-5)
    table = [
        parts[f"base_model.model.embeddings.word_embeddings.lora_embedding_{side}"] for side in "BA"
    ]
    assert torch.allclose(merged[words] - plain[words], scale * (table[0] @ table[1]).T, atol=1e-5)


def test_the_model_is_named_with_its_adapter():
    assert Source("org/model", adapter="retrieval").model_id == "org/model+retrieval"


def test_an_unknown_adapter_is_answered_with_those_there_are(model):
    with pytest.raises(ExportError, match=r"matching.*retrieval"):
        load(model, "matching")


@pytest.mark.parametrize("settings", [{"peft_type": "IA3"}, {"bias": "all"}, {"use_dora": True}])
def test_other_kinds_of_adapters_are_refused(model, settings):
    write_settings(model, **settings)
    with pytest.raises(ExportError, match="LoRA"):
        load(model, "retrieval")


def test_an_adapter_of_another_model_is_refused(model):
    save_file(
        {"base_model.model.layers.0.q.lora_A.weight": torch.ones(1, 1)},
        model / "retrieval" / "adapter_model.safetensors",
    )
    with pytest.raises(ExportError, match=r"layers\.0\.q"):
        load(model, "retrieval")
