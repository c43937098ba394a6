import copy
import importlib.metadata
import shutil
from dataclasses import replace

import pytest
import torch
from transformers import FunnelConfig

from bertscore_onnx import __version__
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import (
    ExportError,
    UnknownLayerError,
    UnsupportedFamilyError,
    VerificationError,
)
from bertscore_onnx_export.graph.scoring import write_scoring_graph
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.pipeline import export_model


def test_the_manifest_says_what_was_exported(tiny_model, tiny_bundle):
    manifest = open_bundle(tiny_bundle, verify=True).manifest
    assert (manifest.model_id, manifest.family, manifest.num_layers) == ("tiny-bert", "bert", 2)
    assert (manifest.hidden_size, manifest.vocab_size, manifest.max_length) == (32, 30, 32)
    assert (manifest.pad_id, manifest.zero_weight_ids, manifest.empty_ids) == (0, [2, 3], [2, 3])
    assert (manifest.tokenizer_mode, manifest.tokenizer_differences) == ("slow", 0)
    assert len(manifest.golden) == 8
    assert {"torch", "transformers", "onnx", "bertscore-onnx"} <= manifest.exported_with.keys()


def test_a_checkout_that_is_not_installed_is_exported_from(tiny_model, tmp_path, monkeypatch):
    def version(package, known=importlib.metadata.version):
        if package == "bertscore-onnx":
            raise importlib.metadata.PackageNotFoundError(package)
        return known(package)

    monkeypatch.setattr("importlib.metadata.version", version)
    folder = export_model(str(tiny_model), num_layers=1, output=tmp_path / "bundle")
    assert open_bundle(folder).manifest.exported_with["bertscore-onnx"] == __version__


def test_versions_are_read_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda package: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_model(str(tmp_path / "absent"), num_layers=1, output=tmp_path / "bundle")


@pytest.mark.parametrize(
    ("options", "folder", "layers"),
    [
        ({"num_layers": 1}, "layer-1-slow-fp32", [1]),
        ({"num_layers": 1, "precision": "int8"}, "layer-1-slow-int8", [1]),
        ({"all_layers": True}, "all-layers-slow-fp32", [0, 1, 2, 3]),
    ],
)
def test_without_output_the_bundle_goes_to_the_home_folder(
    tiny_model, home, options, folder, layers
):
    bundle = export_model(str(tiny_model), **options)
    assert bundle == home / "bundles" / "tiny-bert" / folder
    assert list(open_bundle(bundle).manifest.layers) == layers


@pytest.mark.parametrize(
    ("card", "given", "license_id"),
    [("license: apache-2.0\n", None, "apache-2.0"), ("", "mit", "mit"), ("", None, None)],
)
def test_the_card_has_the_license_of_the_model_or_the_given(
    tiny_model, tmp_path, card, given, license_id
):
    model = shutil.copytree(tiny_model, tmp_path / "model")
    (model / "README.md").write_text(f"---\n{card}---\n# A model\n")
    bundle = export_model(str(model), num_layers=1, output=tmp_path / "bundle", license_id=given)
    written = (bundle / "README.md").read_text(encoding="utf-8")
    assert f'\nlicense: "{license_id}"\n' in written if license_id else "license" not in written


@pytest.mark.parametrize(
    "failing", ["write_graph", "write_tokenizer", "write_manifest", "verify_bundle"]
)
def test_a_failure_leaves_the_old_bundle_and_nothing_else(
    tiny_model, tiny_bundle, tmp_path, monkeypatch, failing
):
    output = shutil.copytree(tiny_bundle, tmp_path / "bundle")

    def fail(*arguments, **options):
        raise RuntimeError("power cut")

    monkeypatch.setattr(f"bertscore_onnx_export.pipeline.{failing}", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        export_model(str(tiny_model), num_layers=1, output=output, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
    assert open_bundle(output, verify=True).manifest.num_layers == 2


def test_a_graph_that_scores_differently_is_not_kept(tiny_model, tmp_path, monkeypatch):
    def write_graph_of_other_weights(model, folder, **options):
        other = copy.deepcopy(model)
        with torch.no_grad():
            other.embeddings.word_embeddings.weight.mul_(1.01)
        return write_graph(other, folder, **options)

    monkeypatch.setattr("bertscore_onnx_export.pipeline.write_graph", write_graph_of_other_weights)
    with pytest.raises(VerificationError, match="differs from the model that it was made of by"):
        export_model(str(tiny_model), num_layers=2, output=tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_scoring_graph_that_scores_differently_is_not_kept(tiny_model, tmp_path, monkeypatch):
    def write_scoring_graph_of_other_weights(folder, vocabulary, **options):
        write_scoring_graph(folder, replace(vocabulary, zero_weight_ids=[]), **options)

    monkeypatch.setattr(
        "bertscore_onnx_export.pipeline.write_scoring_graph", write_scoring_graph_of_other_weights
    )
    with pytest.raises(VerificationError, match="scoring graph"):
        export_model(str(tiny_model), num_layers=2, scoring_graph=True, output=tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("num_layers", [-1, 4])
def test_a_layer_that_the_model_lacks_is_refused(tiny_model, tmp_path, num_layers):
    with pytest.raises(UnknownLayerError, match="3 layers"):
        export_model(str(tiny_model), num_layers=num_layers, output=tmp_path / "bundle")


def test_a_bad_place_is_refused_before_loading_weights(tiny_model, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    stages = []
    with pytest.raises(ExportError, match="which does not exist"):
        export_model(str(tiny_model), num_layers=1, output=tmp_path / "link", report=stages.append)
    assert [stage.partition(" of ")[0] for stage in stages] == ["Loading the configuration"]


@pytest.mark.parametrize("name", ["a|b", "a\nb", "\x1b[31mred", "a\u2028b", "", "."])
def test_a_name_that_would_break_a_signature_is_refused(tiny_model, tmp_path, name):
    stages = []
    with pytest.raises(ExportError, match="--name"):
        export_model(
            str(tiny_model),
            num_layers=1,
            name=name,
            output=tmp_path / "bundle",
            report=stages.append,
        )
    assert stages == []


def test_a_folder_of_an_impossible_name_needs_another(tiny_model, tmp_path):
    (tmp_path / "a|b").symlink_to(tiny_model)
    (tmp_path / "c|d").mkdir()
    with pytest.raises(ExportError, match=r"c\|d"):
        export_model(str(tmp_path / "c|d"), num_layers=1)
    assert (
        export_model(str(tmp_path / "a|b"), num_layers=1, output=tmp_path / "bundle")
        == tmp_path / "bundle"
    )


def test_a_model_that_is_nowhere_is_refused():
    with pytest.raises(ExportError, match="Hub id"):
        export_model("no-such/model-anywhere", num_layers=1)


def test_a_family_that_cannot_be_cut_is_refused(tmp_path):
    FunnelConfig(block_sizes=[2, 2]).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedFamilyError, match="funnel"):
        export_model(str(tmp_path), num_layers=1)
