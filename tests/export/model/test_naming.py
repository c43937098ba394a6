"""What the model of a folder is called, that two models of one name do not meet in the store, and
that a name of the catalogue is given to a model of its type and sizes only."""

from shutil import copytree

import pytest
import torch
from transformers import AlbertConfig, AlbertModel, AutoModel

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.pipeline import export_model

pytestmark = pytest.mark.usefixtures("home")


def other_model(tiny_model, folder):
    """Copy the tiny model with other weights."""
    copytree(tiny_model, folder)
    torch.manual_seed(1)
    model = AutoModel.from_pretrained(folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "name", ["model", "Checkpoint-500", "output", "12000", "0_Transformer", "5c7f" * 10]
)
def test_a_folder_of_a_generic_name_needs_another_in_the_store(tiny_model, tmp_path, name):
    copytree(tiny_model, tmp_path / name)
    stages = []
    with pytest.raises(ExportError, match=f"{name}.*--name"):
        export_model(str(tmp_path / name), num_layers=1, report=stages.append)
    assert stages == []


def test_a_folder_of_any_name_has_a_place_or_a_name_of_its_own(tiny_model, tmp_path):
    folder = copytree(tiny_model, tmp_path / "model")
    bundle = export_model(str(folder), num_layers=1, output=tmp_path / "bundle")
    assert open_bundle(bundle).manifest.model_id == "model"
    assert (
        open_bundle(export_model(str(folder), num_layers=1, name="mine")).manifest.model_id
        == "mine"
    )


@pytest.mark.parametrize(
    ("repository", "name"),
    [("models--acme--news-bert", "acme/news-bert"), ("models--roberta-large", "roberta-large")],
)
def test_a_folder_in_the_cache_of_a_hub_has_the_hubs_name(tmp_path, repository, name):
    snapshot = tmp_path / repository / "snapshots" / ("5c7f" * 10)
    snapshot.mkdir(parents=True)
    assert Source(str(snapshot)).model_id == name


def test_two_models_of_one_name_do_not_meet_in_the_store(tiny_model, tmp_path):
    one, other = (
        copytree(tiny_model, tmp_path / "a" / "news"),
        other_model(tiny_model, tmp_path / "b" / "news"),
    )
    bundle = export_model(str(one), num_layers=1)
    digest = open_bundle(bundle).manifest.digest
    with pytest.raises(ExportError, match="another model"):
        export_model(str(other), num_layers=1, force=True)
    with pytest.raises(ExportError, match="already exists"):
        export_model(str(other), num_layers=1)
    assert open_bundle(bundle, verify=True).manifest.digest == digest
    assert export_model(str(other), num_layers=1, name="news", force=True) == bundle
    assert open_bundle(bundle).manifest.digest != digest


def test_a_model_of_another_size_does_not_join_one_of_its_name(tiny_model, tmp_path):
    one, other = (
        copytree(tiny_model, tmp_path / "a" / "news"),
        copytree(tiny_model, tmp_path / "b" / "news"),
    )
    export_model(str(one), num_layers=1)
    model = AutoModel.from_pretrained(other)
    model.resize_token_embeddings(40)
    model.save_pretrained(other)
    with pytest.raises(ExportError, match="another model"):
        export_model(str(other), num_layers=2)
    assert open_bundle(export_model(str(one), num_layers=2)).manifest.num_layers == 2


def test_the_same_model_replaces_its_own_bundle(tiny_model, tmp_path):
    folder = copytree(tiny_model, tmp_path / "news")
    bundle = export_model(str(folder), num_layers=1)
    export_model(str(folder), num_layers=1, precision="int8")
    assert export_model(str(folder), num_layers=1, force=True) == bundle


@pytest.fixture
def albert_base(tiny_model, tmp_path):
    """A random model of the type and sizes of albert-base-v1, and smaller otherwise, in a folder of
    that name.
    """
    folder = copytree(tiny_model, tmp_path / "albert-base-v1")
    (folder / "model.safetensors").unlink()
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 30_000,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "max_position_embeddings": 64,
    }
    rest = {
        "embedding_size": 8,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "initializer_range": 0.2,
    }
    AlbertModel(AlbertConfig(**sizes, **rest)).save_pretrained(folder)
    return folder


def layer_and_baseline(bundle):
    manifest = open_bundle(bundle).manifest
    assert manifest.model_id == "albert-base-v1"
    return manifest.num_layers, manifest.baselines["en"][0]


def test_a_catalogue_name_gives_its_model_layer_and_baselines(albert_base, recwarn):
    bundle = export_model(str(albert_base), name="albert-base-v1")
    assert layer_and_baseline(bundle) == (10, catalogue.baselines("albert-base-v1", 10)["en"])
    assert [warning for warning in recwarn if "catalogue" in str(warning.message)] == []
    layers = open_bundle(
        export_model(str(albert_base), name="albert-base-v1", all_layers=True)
    ).manifest
    assert layers.baselines["en"] == [
        catalogue.baselines("albert-base-v1", layer)["en"] for layer in range(13)
    ]


def test_a_catalogue_name_that_only_the_folder_has_is_reported(albert_base, tmp_path):
    with pytest.warns(
        UserWarning, match="Only the name of its folder says that this model is albert-base-v1"
    ):
        bundle = export_model(str(albert_base), output=tmp_path / "bundle")
    assert layer_and_baseline(bundle) == (10, catalogue.baselines("albert-base-v1", 10)["en"])


@pytest.mark.parametrize(
    "name", ["albert-base-v1", "bert-base-uncased", "roberta-large", "amazon/bort"]
)
@pytest.mark.parametrize("options", [{}, {"num_layers": 1}, {"all_layers": True}])
def test_a_model_of_other_sizes_gets_no_name_of_the_catalogue(
    tiny_model, tmp_path, home, name, options
):
    with pytest.raises(
        ExportError, match=f"{name} is a model of the catalogue with .*; this one has type bert"
    ):
        export_model(str(tiny_model), name=name, **options)
    folder = copytree(tiny_model, tmp_path / "models--x" / "snapshots" / "x")
    folder.parents[1].rename(tmp_path / f"models--{name.replace('/', '--')}")
    [folder] = tmp_path.glob("models--*/snapshots/x")
    with pytest.raises(ExportError, match=f"bears the name of another model: {name}"):
        export_model(str(folder), output=tmp_path / "bundle", **options)
    assert not home.exists()
    assert not (tmp_path / "bundle").exists()
