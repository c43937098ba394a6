"""Bundles of graphs that others have exported: the scores are those of this project's own export of the same model."""

import json
import shutil
import subprocess
import sys
import warnings

import numpy as np
import onnx
import pytest
import torch
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.cli import app
from tests.support.bundles import exported, saved
from tests.support.parity import KNOWN_WARNINGS, ORDINARY_PAIRS
from tests.support.tiny_models import LAYERS

pytestmark = KNOWN_WARNINGS

PAIRS = [list(side) for side in zip(*ORDINARY_PAIRS[:20], strict=True)]
MODELS = ["bert", "roberta", "modernbert"]


class Pooled(torch.nn.Module):
    """A model with the outputs of a graph of sentence-transformers."""

    def __init__(self, model):
        super().__init__()
        self.auto_model = model

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        options = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        vectors = self.auto_model(input_ids=input_ids, attention_mask=attention_mask, **options).last_hidden_state
        weights = attention_mask[..., None].float()
        return vectors, (vectors * weights).sum(1) / weights.sum(1)


def publish(name, folder, writer):
    """Write a model's files as they are published, with a graph as optimum or another exporter writes it."""
    AutoTokenizer.from_pretrained(saved(name)).save_pretrained(folder)
    model = AutoModel.from_pretrained(saved(name)).eval()
    model.config.save_pretrained(folder)
    (folder / "onnx").mkdir()
    inputs = {"input_ids": torch.full((2, 16), 7), "attention_mask": torch.ones(2, 16, dtype=torch.int64)}
    inputs["attention_mask"][1, -3:] = 0
    if writer == "optimum" and name == "bert":
        inputs["token_type_ids"] = torch.zeros(2, 16, dtype=torch.int64)
    vectors = "last_hidden_state" if writer == "optimum" else "token_embeddings"
    names = [vectors, "sentence_embedding"]
    options = {"input_names": [*inputs], "output_names": names}
    graph = str(folder / "onnx" / "model.onnx")
    if writer == "dynamo":
        axes = dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
        arguments = tuple(inputs.values())
        torch.onnx.export(Pooled(model), arguments, graph, dynamo=True, dynamic_shapes=(axes, axes), **options)
        return folder
    axes = {one: {0: "batch", 1: "tokens"} for one in (*inputs, vectors)} | {"sentence_embedding": {0: "batch"}}
    module = Pooled(model).eval()
    torch.onnx.export(
        module, tuple(inputs.values()), graph, dynamo=False, opset_version=14, dynamic_axes=axes, **options
    )
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Return a function that gives the folder of a published graph."""
    folders = {}

    def folder(name, writer):
        if (name, writer) not in folders:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of the exporters
                folders[name, writer] = publish(name, tmp_path_factory.mktemp("published"), writer)
        return folders[name, writer]

    return folder


def export(folder, output, *arguments):
    return CliRunner().invoke(app, ["export", "--from-onnx", str(folder), "-o", str(output), *map(str, arguments)])


@pytest.mark.parametrize("num_layers", [0, 1, LAYERS])
@pytest.mark.parametrize(
    "writer",
    [
        "optimum",
        "sentence-transformers",
        pytest.param("dynamo", marks=pytest.mark.transformers5),
    ],  # which has onnxscript
)
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_an_export_of_the_model(published, name, writer, num_layers, tmp_path):
    result = export(published(name, writer), tmp_path / "bundle", "-l", num_layers, "--name", "x")
    assert result.exit_code == 0, result.stderr
    assert "differ from the uncut graph's by" in result.stderr
    (tmp_path / name).mkdir()
    model = tmp_path / name
    AutoTokenizer.from_pretrained(saved(name)).save_pretrained(model)
    for file in saved(name).iterdir():
        if file.name.startswith(("config", "model")):
            shutil.copy(file, model)
    own = exported("own", model, num_layers=num_layers, tokenizer_mode="fast")
    scores = []
    for bundle in (tmp_path / "bundle", own):
        with BERTScorer(bundle, device="cpu") as scorer:
            scores.append(np.stack(scorer.score(*PAIRS)))
    assert np.abs(scores[0] - scores[1]).max() <= 1e-5
    ours, theirs = read_manifest(tmp_path / "bundle"), read_manifest(own)
    for fact in ("pad_id", "zero_weight_ids", "max_length", "hidden_size", "vocab_size", "padding", "model_layers"):
        assert getattr(ours, fact) == getattr(theirs, fact)


def test_neither_torch_nor_transformers_is_imported(published, tmp_path):
    code = (
        "import sys; from pathlib import Path; from bertscore_onnx_export.published.pipeline import export_graph; "
        "export_graph(Path(sys.argv[1]), num_layers=1, output=Path(sys.argv[2]), name='x'); "
        "print({'torch', 'transformers'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", code, published("bert", "optimum"), tmp_path / "bundle"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"


def change(folder, output, *, config=None, graph=None, without=(), content=None):
    """Copy a published graph with changes."""
    shutil.copytree(folder, output)
    if content:
        (output / "onnx" / "model.onnx").write_bytes(content)
    if config:
        settings = json.loads((output / "config.json").read_text()) | config
        (output / "config.json").write_text(json.dumps(settings))
    if graph:
        model = onnx.load(output / "onnx" / "model.onnx")
        graph(model.graph)
        onnx.save(model, output / "onnx" / "model.onnx")
    for name in without:
        (output / name).unlink()
    return output


def without_names(graph):
    for index, node in enumerate(graph.node):
        node.name = f"fused_{index}"


def with_head(graph):
    for value in graph.output:
        for node in graph.node:
            node.output[:] = [f"logits_{one}" if one == value.name else one for one in node.output]
            node.input[:] = [f"logits_{one}" if one == value.name else one for one in node.input]
        value.name = f"logits_{value.name}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"graph": without_names}, "cannot be cut at layer 1: its nodes do not tell its layers apart"),
        ({"graph": with_head}, "returns no vectors of tokens, but logits_last_hidden_state"),
        ({"content": b"version https://git-lfs.github.com/spec/v1\n"}, "run `git lfs pull`"),
        ({"without": ["onnx/model.onnx"]}, "has no onnx/model.onnx or model.onnx"),
        ({"without": ["tokenizer.json"]}, "has no tokenizer.json"),
        ({"without": ["config.json"]}, "config.json: "),
        ({"without": ["tokenizer_config.json", "special_tokens_map.json"]}, "does not say which tokens are special"),
        ({"config": {"hidden_size": 64}}, "returns published_last_hidden_state of the shape (2, 7, 32)"),
        ({"config": {"num_hidden_layers": "3"}}, "has no number as encoder_layers"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(published, tmp_path, changes, message):
    folder = change(published("bert", "optimum"), tmp_path / "model", **changes)
    result = export(folder, tmp_path / "bundle", "-l", 1, "--name", "x")
    assert result.exit_code == 1
    [error] = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert message in error
    assert not (tmp_path / "bundle").exists()


def test_a_graph_without_names_is_used_whole(published, tmp_path):
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=without_names)
    assert export(folder, tmp_path / "bundle", "-l", LAYERS, "--name", "x").exit_code == 0


def test_a_layer_too_high_is_answered_with_their_number(published, tmp_path):
    result = export(published("bert", "optimum"), tmp_path / "bundle", "-l", 9, "--name", "x")
    assert f"has {LAYERS} layers; --num-layers must be from 0 to that, not 9." in result.stderr


@pytest.mark.parametrize("option", [["--all-layers"], ["--precision", "int8"], ["--adapter", "x"], ["--model", "x"]])
def test_options_without_effect_are_refused(tmp_path, option):
    assert export(tmp_path, tmp_path / "bundle", *option).exit_code == 2
