"""Bundles of graphs that others have exported: the scores are those of this project's own export of
the same model.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import onnx
import pytest
import torch
import transformers
from transformers import AutoModel, AutoTokenizer
from typer.testing import CliRunner

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.cli import app
from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.published.config import read_config
from bertscore_onnx_export.published.cut import read_graph
from tests.support.bundles import exported, saved
from tests.support.parity import KNOWN_WARNINGS, ORDINARY_PAIRS
from tests.support.tiny_models import LAYERS

pytestmark = [
    *KNOWN_WARNINGS,
    pytest.mark.filterwarnings("default:The nodes of .* do not tell its layers apart:UserWarning"),
]

PAIRS = [list(side) for side in zip(*ORDINARY_PAIRS[:20], strict=True)]
MODELS = ["bert", "roberta", "modernbert"]
TRANSFORMERS_5 = [
    pytest.mark.transformers5,
    pytest.mark.skipif(
        transformers.__version__.startswith("4."), reason="transformers 4 has no exporter"
    ),
]
TRANSFORMERS_4 = pytest.mark.skipif(
    not transformers.__version__.startswith("4."), reason="optimum needs transformers 4"
)
COUNTED = ["bert", "camembert", "data2vec", "electra", "mpnet", "roberta", "xlm-roberta"]
"""Models that take positions: the first and the fourth from 0, the others from the id of
padding.
"""


class Pooled(torch.nn.Module):
    """A model with the outputs of a graph of sentence-transformers, and a further input."""

    def __init__(self, model, other=None):
        super().__init__()
        self.auto_model = model
        self.other = other

    def forward(self, input_ids, attention_mask, other=None):
        options = {} if other is None else {self.other: other}
        vectors = self.auto_model(
            input_ids=input_ids, attention_mask=attention_mask, **options
        ).last_hidden_state
        weights = attention_mask[..., None].float()
        return vectors, (vectors * weights).sum(1) / weights.sum(1)


def publish(name, folder, writer):
    """Write a model's files as they are published, with a graph as optimum or another exporter
    writes it.
    """
    AutoTokenizer.from_pretrained(saved(name)).save_pretrained(folder)
    model = AutoModel.from_pretrained(saved(name)).eval()
    model.config.save_pretrained(folder)
    inputs = {
        "input_ids": torch.full((2, 16), 7),
        "attention_mask": torch.ones(2, 16, dtype=torch.int64),
    }
    inputs["attention_mask"][1, -3:] = 0
    if writer in ("transformers", "transformers-fused"):
        # not in transformers 4
        from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

        model.config.use_cache = False
        fusions = "cpu" if writer == "transformers-fused" else None
        OnnxExporter().export(
            model, inputs, config=OnnxConfig(dynamic=True, ort_fusions=fusions)
        ).save_pretrained(folder)
        return folder
    if writer == "optimum-cli":
        from optimum.exporters.onnx import main_export  # not with transformers 5

        main_export(str(saved(name)), folder, task="feature-extraction", do_validation=False)
        return folder
    (folder / "onnx").mkdir()
    if writer == "optimum" and name == "bert":
        inputs["token_type_ids"] = torch.zeros(2, 16, dtype=torch.int64)
    if writer == "positions":
        inputs["position_ids"] = torch.arange(16).repeat(2, 1) + 2
    vectors = "last_hidden_state" if writer in ("optimum", "positions") else "token_embeddings"
    names = [vectors, "sentence_embedding"]
    options = {"input_names": [*inputs], "output_names": names}
    graph = str(folder / "onnx" / "model.onnx")
    if writer == "dynamo":
        axes = dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
        arguments = tuple(inputs.values())
        torch.onnx.export(
            Pooled(model), arguments, graph, dynamo=True, dynamic_shapes=(axes, axes), **options
        )
        return folder
    axes = {one: {0: "batch", 1: "tokens"} for one in (*inputs, vectors)} | {
        "sentence_embedding": {0: "batch"}
    }
    module = Pooled(
        model.get_encoder() if model.config.is_encoder_decoder else model, [*inputs][-1]
    ).eval()
    torch.onnx.export(
        module,
        tuple(inputs.values()),
        graph,
        dynamo=False,
        opset_version=14,
        dynamic_axes=axes,
        **options,
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


def export(folder, output, num_layers, *options):
    return CliRunner().invoke(app, export_words(folder, output, num_layers, *options))


def export_words(folder, output, num_layers, *options):
    return [
        "export",
        "--from-onnx",
        str(folder),
        "-o",
        str(output),
        "-l",
        str(num_layers),
        "--name",
        "x",
        *options,
    ]


def own_export(name, num_layers, folder):
    model = folder / name
    model.mkdir()
    AutoTokenizer.from_pretrained(saved(name)).save_pretrained(model)
    for file in saved(name).iterdir():
        if file.name.startswith(("config", "model")):
            shutil.copy(file, model)
    return exported("own", model, num_layers=num_layers, tokenizer_mode="fast")


def scores_of(bundle, pairs=PAIRS):
    with BERTScorer(bundle, device="cpu") as scorer:
        return np.stack(scorer.score(*pairs))


def assert_scores_as_own_export(published, name, num_layers, folder, pairs=PAIRS):
    """Export a published graph; compare its scores with those of an export of the model, and return
    both bundles.
    """
    result = export(published, folder / "bundle", num_layers)
    assert result.exit_code == 0, result.stderr
    assert "differ from the uncut graph's by" in result.stderr
    own = own_export(name, num_layers, folder)
    assert np.abs(scores_of(folder / "bundle", pairs) - scores_of(own, pairs)).max() <= 1e-5
    return folder / "bundle", own


@pytest.mark.parametrize("num_layers", [0, 1, LAYERS])
@pytest.mark.parametrize(
    "writer",
    [
        "optimum",
        "sentence-transformers",
        pytest.param("dynamo", marks=pytest.mark.transformers5),
        pytest.param("transformers", marks=TRANSFORMERS_5),
        pytest.param("optimum-cli", marks=TRANSFORMERS_4),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_those_of_an_export_of_the_model(published, name, writer, num_layers, tmp_path):
    bundles = assert_scores_as_own_export(published(name, writer), name, num_layers, tmp_path)
    ours, theirs = map(read_manifest, bundles)
    for fact in (
        "pad_id",
        "zero_weight_ids",
        "max_length",
        "hidden_size",
        "vocab_size",
        "padding",
        "model_layers",
    ):
        assert getattr(ours, fact) == getattr(theirs, fact)


@pytest.mark.parametrize("name", COUNTED)
def test_positions_are_those_that_the_model_counts(published, name, tmp_path):
    folder = published(name, "positions")
    padding = AutoTokenizer.from_pretrained(folder).pad_token
    pairs = [[*PAIRS[0], f"one {padding} of two"], [*PAIRS[1], f"two {padding} {padding} of one"]]
    assert_scores_as_own_export(folder, name, LAYERS, tmp_path, pairs)


@pytest.mark.parametrize("model_type", ["nystromformer", "unheard-of"])
def test_positions_that_nobody_knows_are_refused(published, tmp_path, model_type):
    folder = change(
        published("bert", "positions"), tmp_path / "model", config={"model_type": model_type}
    )
    result = export(folder, tmp_path / "bundle", 1)
    assert f"how models of the type '{model_type}' count positions is not known" in result.stderr


@pytest.mark.parametrize("num_layers", [1, LAYERS])
@pytest.mark.parametrize("name", [pytest.param("modernbert", marks=TRANSFORMERS_5)])
def test_a_graph_that_transformers_has_fused_is_used_whole_or_refused(
    published, name, num_layers, tmp_path
):
    folder = published(name, "transformers-fused")
    if num_layers == LAYERS:
        assert_scores_as_own_export(folder, name, num_layers, tmp_path)
    else:
        result = export(folder, tmp_path / "bundle", num_layers)
        assert (
            f"cannot be cut at layer {num_layers}: its nodes do not tell its layers apart"
            in result.stderr
        )


@pytest.mark.parametrize("writer", [pytest.param("transformers", marks=TRANSFORMERS_5)])
@pytest.mark.parametrize("num_layers", [1, LAYERS])
def test_the_encoder_of_a_pair_is_taken_not_the_decoder(published, writer, tmp_path, num_layers):
    folder = published("bart", writer)
    assert_scores_as_own_export(folder, "bart", num_layers, tmp_path)


def of_a_decoder(graph):
    for node in graph.node:
        node.name = node.name.replace("/encoder/", "/decoder/")


def in_half(graph):
    """Store the largest weight in fp16, and convert it when it is used, as converters that keep
    inputs and outputs.
    """
    weight = max(graph.initializer, key=lambda tensor: len(tensor.raw_data))
    name, half = weight.name, onnx.numpy_helper.to_array(weight).astype(np.float16)
    weight.CopyFrom(onnx.numpy_helper.from_array(half, "half"))
    graph.node.insert(0, onnx.helper.make_node("Cast", ["half"], [name], to=onnx.TensorProto.FLOAT))


def in_bytes(graph):
    """Store the largest weight in 8 bits, as quantisation of the weights alone does."""
    weight = max(graph.initializer, key=lambda tensor: len(tensor.raw_data))
    name, values = weight.name, onnx.numpy_helper.to_array(weight)
    scale = np.float32(np.abs(values).max() / 127)
    weight.CopyFrom(onnx.numpy_helper.from_array(np.rint(values / scale).astype(np.int8), "bytes"))
    graph.initializer.append(onnx.numpy_helper.from_array(scale, "scale"))
    graph.node.insert(0, onnx.helper.make_node("DequantizeLinear", ["bytes", "scale"], [name]))


@pytest.mark.full  # with 280 MB of weights
def test_large_weights_stored_as_numbers_get_their_own_file(published, tmp_path):
    def with_numbers(graph):
        numbers = np.zeros(70_000_000, np.float32).tobytes()
        field = bytes([4 << 3 | 2]) + varint(len(numbers)) + numbers  # `float_data`, packed
        graph.initializer.append(onnx.TensorProto.FromString(field))
        graph.initializer[-1].MergeFrom(
            onnx.TensorProto(name="numbers", data_type=1, dims=[70_000_000])
        )
        graph.initializer.append(onnx.numpy_helper.from_array(np.array([3]), "third"))
        behind_vectors(
            graph,
            lambda name: [
                onnx.helper.make_node("Gather", ["numbers", "third"], ["zero"]),
                onnx.helper.make_node("Add", ["inner", "zero"], [name]),
            ],
        )

    folder = change(published("bert", "optimum"), tmp_path / "model", graph=with_numbers)
    result = export(folder, tmp_path / "bundle", LAYERS)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "bundle" / "model.onnx.data").stat().st_size > 280_000_000


def varint(number):
    """Return a number as protobuf writes it, 7 bits to a byte."""
    rest, last = divmod(number, 128)
    return bytes([last | 128]) + varint(rest) if rest else bytes([last])


def test_the_number_of_layers_of_xlnet_is_found(published, tmp_path):
    assert_scores_as_own_export(published("xlnet", "optimum"), "xlnet", LAYERS, tmp_path)


def test_rembert_saved_by_transformers_5_keeps_special_tokens(published, tmp_path):
    def without_special_tokens(content):
        content["post_processor"] |= {
            "single": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {},
        }

    folder = change(
        published("rembert", "optimum"), tmp_path / "model", tokenizer=without_special_tokens
    )
    assert_scores_as_own_export(folder, "rembert", LAYERS, tmp_path)


def of_types(**kinds):
    """Return a change that lets a graph take its inputs in other types, named as TensorFlow names
    its nodes.
    """

    def change_types(graph):
        for node in graph.node:
            node.name = re.sub(r"/layer\.(\d+)/", r"/layer_._\1/", node.name)
            node.input[:] = [f"whole_{name}" if name in kinds else name for name in node.input]
        for value in graph.input:
            value.type.tensor_type.elem_type = kinds.get(value.name, onnx.TensorProto.INT64)
        for name in kinds:
            graph.node.insert(
                0,
                onnx.helper.make_node("Cast", [name], [f"whole_{name}"], to=onnx.TensorProto.INT64),
            )

    return change_types


def without_shapes(graph):
    for value in graph.input:
        value.type.tensor_type.ClearField("shape")


INT32, FLOAT, BOOL = onnx.TensorProto.INT32, onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL


@pytest.mark.parametrize(
    "graph",
    [
        of_types(input_ids=INT32, attention_mask=INT32, token_type_ids=INT32),
        of_types(attention_mask=FLOAT),
        of_types(input_ids=INT32, attention_mask=BOOL),
        without_shapes,
    ],
)
@pytest.mark.parametrize("num_layers", [1, LAYERS])
def test_inputs_of_other_types_are_converted(published, graph, num_layers, tmp_path):
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=graph)
    assert_scores_as_own_export(folder, "bert", num_layers, tmp_path)


@pytest.mark.parametrize(
    ("weights", "shown"),
    [
        (None, "the published graph's scores; not compared with PyTorch"),
        ("bert", "PyTorch's scores"),
    ],
)
def test_a_bundle_says_what_it_was_compared_with(published, tmp_path, weights, shown):
    folder = change(published("bert", "optimum"), tmp_path / "model")
    if weights:
        shutil.copy(saved(weights) / "model.safetensors", folder)
    result = export(folder, tmp_path / "bundle", 1)
    assert result.exit_code == 0, result.stderr
    assert ("not compared with PyTorch" in result.stderr) == (weights is None)
    inspected = CliRunner().invoke(app, ["inspect", str(tmp_path / "bundle")])
    assert f"of {shown}\n" in inspected.stdout
    assert read_manifest(tmp_path / "bundle").comparison == (
        "with PyTorch" if weights else "not compared"
    )
    assert ("not compared with PyTorch" in (tmp_path / "bundle" / "README.md").read_text()) == (
        weights is None
    )


def test_a_graph_of_other_weights_than_beside_it_is_refused(published, tmp_path):
    folder = change(published("bert", "optimum"), tmp_path / "model")
    model = AutoModel.from_pretrained(saved("bert"))
    with torch.no_grad():
        model.embeddings.position_embeddings.weight[:] = (
            model.embeddings.position_embeddings.weight.roll(1, 0)
        )
    model.save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    result = export(folder, tmp_path / "bundle", 1)
    assert "The published graph is not the model beside it" in result.stderr
    assert not (tmp_path / "bundle").exists()


def test_neither_torch_nor_transformers_is_imported(published, tmp_path):
    code = (
        "import sys; from pathlib import Path; from bertscore_onnx_export.published.pipeline "
        "import export_graph; export_graph(Path(sys.argv[1]), num_layers=1, "
        "output=Path(sys.argv[2]), name='x')"
    )
    # found first, in the process and in those that it starts
    for package in ("torch", "transformers"):
        (tmp_path / f"{package}.py").write_text("raise ImportError('not to be imported')")
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
    }
    command = [sys.executable, "-c", code, published("bert", "optimum"), tmp_path / "bundle"]
    subprocess.run(command, env=variables, check=True)


def change(folder, output, *, config=None, graph=None, tokenizer=None, without=(), content=None):
    shutil.copytree(folder, output)
    if content:
        (output / "onnx" / "model.onnx").write_bytes(content)
    if config:
        settings = json.loads((output / "config.json").read_text()) | config
        (output / "config.json").write_text(json.dumps(settings))
    if tokenizer:
        settings = json.loads((output / "tokenizer.json").read_text())
        tokenizer(settings)
        (output / "tokenizer.json").write_text(json.dumps(settings))
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


def with_prefix(prefix, graph):
    for value in graph.output:
        for node in graph.node:
            node.output[:] = [
                f"{prefix}_{one}" if one == value.name else one for one in node.output
            ]
            node.input[:] = [f"{prefix}_{one}" if one == value.name else one for one in node.input]
        value.name = f"{prefix}_{value.name}"


def behind_vectors(graph, nodes):
    """Let nodes lead from `inner`, the vectors until now, to the output."""
    name = graph.output[0].name
    for node in graph.node:
        node.input[:] = ["inner" if one == name else one for one in node.input]
        node.output[:] = ["inner" if one == name else one for one in node.output]
    graph.node.extend(nodes(name))


def with_many_nodes(graph):
    names = ["inner", *map(str, range(200_000))]
    chain = [
        onnx.helper.make_node("Identity", [one], [two]) for one, two in itertools.pairwise(names)
    ]
    behind_vectors(
        graph, lambda name: [*chain, onnx.helper.make_node("Identity", names[-1:], [name])]
    )


def with_endless_loop(graph):
    kinds = {
        "count": onnx.TensorProto.INT64,
        "go": onnx.TensorProto.BOOL,
        "state": onnx.TensorProto.FLOAT,
    }
    shapes = {"count": [], "go": [], "state": None}
    inputs = [
        onnx.helper.make_tensor_value_info(name, kind, shapes[name]) for name, kind in kinds.items()
    ]
    outputs = [
        onnx.helper.make_tensor_value_info(f"{name}_", kinds[name], shapes[name])
        for name in ("go", "state")
    ]
    nodes = [onnx.helper.make_node("Identity", [name], [f"{name}_"]) for name in ("go", "state")]
    body = onnx.helper.make_graph(nodes, "body", inputs, outputs)
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "yes"))
    behind_vectors(
        graph, lambda name: [onnx.helper.make_node("Loop", ["", "yes", "inner"], [name], body=body)]
    )


def of_much_memory(graph):
    """Add the sum of a billion numbers, 4 GB."""
    graph.initializer.append(onnx.numpy_helper.from_array(np.array([10**9]), "count"))
    behind_vectors(
        graph,
        lambda name: [
            onnx.helper.make_node("ConstantOfShape", ["count"], ["numbers"]),
            onnx.helper.make_node("ReduceSum", ["numbers"], ["sum"], keepdims=0),
            onnx.helper.make_node("Add", ["inner", "sum"], [name]),
        ],
    )


def of_fixed_length(graph):
    """Slice 40 tokens out of a table of positions, as an exporter does that has seen no longer
    text.
    """
    graph.initializer.extend(
        onnx.numpy_helper.from_array(np.array(values), name)
        for name, values in {"zero": [0], "one": [1], "two": [2]}.items()
    )
    graph.initializer.append(
        onnx.numpy_helper.from_array(np.zeros((1, 40, 1), np.float32), "table")
    )
    behind_vectors(
        graph,
        lambda name: [
            onnx.helper.make_node("Shape", ["input_ids"], ["sizes"]),
            onnx.helper.make_node("Slice", ["sizes", "one", "two"], ["length"]),
            onnx.helper.make_node("Slice", ["table", "zero", "length", "one"], ["part"]),
            onnx.helper.make_node("Add", ["inner", "part"], [name]),
        ],
    )


def that_grows(content):
    doubling = {"type": "Replace", "pattern": {"Regex": "."}, "content": "aa"}
    content["normalizer"] = {"type": "Sequence", "normalizers": [doubling] * 40}


def of_many_ids(content):
    content["model"]["vocab"]["further"] = 10**9


def that_draws(content):
    content["model"] |= {"type": "BPE", "merges": [], "dropout": 0.3}


def that_backtracks(content):
    pattern = {"Regex": "(a|a|aa|[a-z ]+)+$(?=zq)"}
    content["normalizer"] = {"type": "Replace", "pattern": pattern, "content": "b"}


def of_too_long_a_pattern(content):
    pattern = {"Regex": "a{100000000}"}
    content["pre_tokenizer"] = {
        "type": "Split",
        "pattern": pattern,
        "behavior": "Isolated",
        "invert": False,
    }


MEASURED = """
import resource, subprocess, sys
ended = subprocess.run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime, used.ru_maxrss)
sys.exit(ended.returncode)
"""
"""Runs a command, and prints the CPU time of all its processes in seconds and the memory of the
largest in kB.
"""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"graph": without_names},
            "cannot be cut at layer 1: its nodes do not tell its layers apart",
        ),
        (
            {"config": {"is_encoder_decoder": True}, "graph": of_a_decoder},
            "returns the vectors of a decoder",
        ),
        ({"graph": in_half}, "is not in fp32 throughout: it computes with FLOAT16."),
        ({"graph": in_bytes}, "is not in fp32 throughout: it computes with INT8."),
        ({"config": {"model_type": "xlm"}}, "The graph wants 'token_type_ids'"),
        ({"config": {"model_type": "xlnet"}}, "The graph wants 'token_type_ids'"),
        (
            {"graph": partial(with_prefix, "logits")},
            "returns no vectors of tokens, but logits_last_hidden_state",
        ),
        (
            {"graph": partial(with_prefix, "encoder")},
            "returns no vectors of tokens, but encoder_last_hidden_state",
        ),
        ({"content": b"version https://git-lfs.github.com/spec/v1\n"}, "run `git lfs pull`"),
        ({"without": ["onnx/model.onnx"]}, "has no onnx/model.onnx or model.onnx"),
        ({"without": ["tokenizer.json"]}, "has no tokenizer.json"),
        ({"without": ["config.json"]}, "config.json (No such file or directory). Copy it"),
        (
            {"without": ["tokenizer_config.json", "special_tokens_map.json"]},
            "does not say which tokens are special",
        ),
        (
            {"config": {"hidden_size": 64}},
            "returns published_last_hidden_state of the shape (2, 7, 32)",
        ),
        ({"config": {"num_hidden_layers": None}}, "has no number as encoder_layers"),
        (
            {"config": {"num_hidden_layers": "3"}},
            'has num_hidden_layers = "3"; expected a whole number',
        ),
        ({"config": {"pad_token_id": "x"}}, 'has pad_token_id = "x"; expected a whole number'),
        (
            {"config": {"max_position_embeddings": 512.5}},
            "has max_position_embeddings = 512.5; expected a whole",
        ),
        (
            {"config": {"is_encoder_decoder": "no"}},
            'has is_encoder_decoder = "no"; expected true or false',
        ),
        (
            {"config": {"num_hidden_layers": 10**9}},
            "num_hidden_layers = 1000000000, and at most 1,000 is accepted",
        ),
        ({"config": {"vocab_size": 5}}, "the model has ids from 0 to 4"),
        ({"config": {"model_type": "be\x1b[31mrt"}}, r"has 'be\x1b[31mrt' as model_type"),
        ({"graph": with_many_nodes}, "has more than 50,000 nodes"),
        ({"graph": with_endless_loop}, "as in an endless loop"),
        ({"graph": of_much_memory}, "Failed to allocate memory"),
        ({"graph": of_fixed_length}, "The graph fails on 48 tokens"),
        ({"tokenizer": that_grows}, "tokenizer"),
        ({"tokenizer": of_many_ids}, "it has the id 1000000000"),
        (
            {"tokenizer": that_draws},
            'its "dropout" is 0.3, so that the tokens of a text would be drawn at random',
        ),
        ({"tokenizer": that_backtracks}, "tokenizer"),
        ({"tokenizer": of_too_long_a_pattern}, "more than 10,000 parts with its repeats"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(published, tmp_path, changes, message):
    folder = change(published("bert", "optimum"), tmp_path / "model", **changes)
    command = [
        sys.executable,
        "-m",
        "bertscore_onnx",
        *export_words(folder, tmp_path / "bundle", 1),
    ]
    # Started by a small process, since the system counts a process's memory from its parent's on.
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], capture_output=True, text=True, check=False
    )
    seconds, peak_kilobytes = map(float, ended.stdout.split())
    assert seconds <= 15  # a busy machine may need twice the usual time
    assert peak_kilobytes <= 1_500_000
    assert ended.returncode == 2
    [error] = [line for line in ended.stderr.splitlines() if line.startswith("Error: ")]
    assert message in error
    assert not (tmp_path / "bundle").exists()


def with_noise(operator, **attributes):
    """Return a change that adds what an operator draws to the vectors behind each layer."""

    def add_noise(graph):
        node = onnx.helper.make_node(
            operator, ["inner"], ["noise"], dtype=onnx.TensorProto.FLOAT, **attributes
        )
        behind_vectors(
            graph, lambda name: [node, onnx.helper.make_node("Add", ["inner", "noise"], [name])]
        )

    return add_noise


def behind_a_product(graph, nodes):
    """Let nodes lead from `product` to where the first product of layer 0 led."""
    place, product = next(
        (place, node)
        for place, node in enumerate(graph.node)
        if "/layer.0/" in node.name and node.op_type == "MatMul"
    )
    for index, node in enumerate(nodes(product.output[0])):
        node.name = f"{product.name}_{index}"
        graph.node.insert(place + 1 + index, node)
    product.output[0] = "product"


def with_dropout(graph, *, is_training):
    """Add a Dropout, as the export of a model in training mode."""
    for name, value in {
        "ratio": np.array(0.1, np.float32),
        "training": np.array(is_training),
    }.items():
        graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    inputs = ["product", "ratio", "training"]
    behind_a_product(graph, lambda name: [onnx.helper.make_node("Dropout", inputs, [name])])


def with_batch_mean(graph):
    """Subtract the mean of all tokens of a batch, as a norm in training mode."""
    behind_a_product(
        graph,
        lambda name: [
            onnx.helper.make_node("ReduceMean", ["product"], ["mean"], axes=[0, 1]),
            onnx.helper.make_node("Sub", ["product", "mean"], [name]),
        ],
    )


@pytest.mark.parametrize(
    ("graph", "operator"),
    [
        (partial(with_dropout, is_training=True), "Dropout in training mode"),
        (with_noise("RandomNormalLike"), "RandomNormalLike"),
        (with_noise("RandomUniformLike", seed=1.0), "RandomUniformLike"),
    ],
)
def test_a_graph_that_draws_at_random_is_refused_by_name(published, graph, operator, tmp_path):
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=graph)
    for num_layers in (1, LAYERS):
        result = export(folder, tmp_path / "bundle", num_layers)
        assert result.exit_code == 2
        assert f"draws at random, by {operator}: two runs on the same text" in result.stderr


def test_a_graph_whose_vectors_depend_on_the_batch_is_refused(published, tmp_path):
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=with_batch_mean)
    result = export(folder, tmp_path / "bundle", LAYERS)
    assert "depend on the other texts of its batch" in result.stderr


def test_a_dropout_that_does_not_train_is_used(published, tmp_path):
    folder = change(
        published("bert", "optimum"),
        tmp_path / "model",
        graph=partial(with_dropout, is_training=False),
    )
    assert_scores_as_own_export(folder, "bert", 1, tmp_path)


def make(operator, inputs, output, **attributes):
    return onnx.helper.make_node(operator, inputs, [output], **attributes)


def over_tokens(operator):
    """Return nodes that give every token the same vector of all tokens."""
    return [make(operator, ["inner"], "each", axes=[1]), *spread("each")]


def spread(vector):
    return [make("Shape", ["inner"], "shape"), make("Expand", [vector, "shape"], "end")]


FIRST, SECOND, THIRD = "first", "second", "third"
"""The hidden states before layers 0, 1 and 2, in the ends below."""

ENDS = {
    "the sum of the last four": [make("Sum", [FIRST, SECOND, THIRD, "inner"], "end")],
    "the embeddings added": [make("Add", ["inner", FIRST], "end")],
    "a gate by another layer": [
        make("Sigmoid", [THIRD], "gate"),
        make("Mul", ["inner", "gate"], "end"),
    ],
    "a norm by another layer": [
        make("ReduceL2", [THIRD], "size", axes=[2]),
        make("Div", ["inner", "size"], "end"),
    ],
    "the mean of tokens": over_tokens("ReduceMean"),
    "the maximum of tokens": over_tokens("ReduceMax"),
    "the first token": [make("Gather", ["inner", "zero"], "each", axis=1), *spread("each")],
    "tokens less their mean": [
        make("ReduceMean", ["inner"], "mean", axes=[1]),
        make("Sub", ["inner", "mean"], "end"),
    ],
    "sums along the text": [make("CumSum", ["inner", "one"], "end")],
    "attention": [
        make("Transpose", ["inner"], "turned", perm=[0, 2, 1]),
        make("MatMul", ["inner", "turned"], "products"),
        make("Softmax", ["products"], "shares", axis=-1),
        make("MatMul", ["shares", "inner"], "end"),
    ],
    "a norm of the whole text": [
        make("ReduceL2", ["inner"], "size", axes=[1, 2]),
        make("Div", ["inner", "size"], "end"),
    ],
    "a product with weights": [make("MatMul", ["inner", "weights"], "end")],
    "a projection": [
        make("MatMul", ["inner", "weights"], "product"),
        make("Tanh", ["product"], "end"),
    ],
    "other dimensions": [make("Mul", ["inner", "scales"], "end")],
    "a bias": [make("Add", ["inner", "scales"], "end")],
    "clipped values": [make("Clip", ["inner", "low", "high"], "end")],
}
"""Nodes that lead from the hidden states after the last layer, `inner`, to `end`, and are no
norm.
"""

OF_A_NORM = {"other dimensions", "a bias"}
"""The ends that change nothing but the weight or the bias of a norm in front."""

NORMS = {
    "nothing": [make("Identity", ["inner"], "end")],
    "a norm": [
        make("ReduceL2", ["inner"], "size", axes=[-1]),
        make("Div", ["inner", "size"], "end"),
    ],
    "the mask": [
        make("Unsqueeze", ["attention_mask", "axis"], "column"),
        make("Cast", ["column"], "floats", to=onnx.TensorProto.FLOAT),
        make("Mul", ["inner", "floats"], "end"),
    ],
}


def with_end(nodes, states):
    """Return a change that lets nodes lead from the hidden states after the last layer to the
    output.
    """
    generator = np.random.default_rng(0)
    constants = {
        "zero": np.array([0]),
        "one": np.array(1),
        "axis": np.array([2]),
        "weights": generator.normal(size=(32, 32)).astype(np.float32),
        "scales": generator.uniform(0.5, 2, 32).astype(np.float32),
        "low": np.array(-0.5, np.float32),
        "high": np.array(0.5, np.float32),
    }

    def add_end(graph):
        graph.initializer.extend(
            onnx.numpy_helper.from_array(value, name) for name, value in constants.items()
        )
        names = dict(zip((FIRST, SECOND, THIRD), states, strict=False))

        def renamed(output):
            for node in nodes:
                copy = onnx.NodeProto()
                copy.CopyFrom(node)
                copy.input[:] = [names.get(name, name) for name in node.input]
                copy.output[:] = [output if name == "end" else name for name in node.output]
                yield copy

        behind_vectors(graph, renamed)

    return add_end


def hidden_states(folder):
    states = read_graph(str(folder / "onnx" / "model.onnx"), read_config(folder)).hidden_states
    assert len(states) == LAYERS + 1
    return states


@pytest.mark.parametrize(
    ("name", "end"),
    [
        *(pytest.param("bert", nodes, id=f"bert-{end}") for end, nodes in ENDS.items()),
        *(
            pytest.param("t5", nodes, id=f"t5-{end}")
            for end, nodes in ENDS.items()
            if end not in OF_A_NORM
        ),
    ],
)
def test_vectors_that_are_no_norm_of_the_last_layer_are_refused(published, name, end, tmp_path):
    folder = published(name, "optimum")
    tampered = change(folder, tmp_path / "model", graph=with_end(end, hidden_states(folder)))
    with pytest.raises(ExportError, match="computes more than a norm after its last layer"):
        read_graph(str(tampered / "onnx" / "model.onnx"), read_config(tampered))


@pytest.mark.parametrize(
    ("name", "end"),
    [
        *(pytest.param("bert", nodes, id=f"bert-{end}") for end, nodes in NORMS.items()),
        *(pytest.param("t5", NORMS[end], id=f"t5-{end}") for end in ("nothing", "the mask")),
    ],
)
def test_a_norm_behind_the_last_layer_is_applied_to_others(published, name, end, tmp_path):
    folder = published(name, "optimum")
    changed = change(folder, tmp_path / "model", graph=with_end(end, hidden_states(folder)))
    assert_scores_as_own_export(changed, name, 1, tmp_path)


def test_a_graph_whose_end_is_no_norm_is_refused_at_every_layer(published, tmp_path):
    folder = published("bert", "optimum")
    end = with_end(ENDS["the sum of the last four"], hidden_states(folder))
    tampered = change(folder, tmp_path / "model", graph=end)
    for num_layers in (0, 1, LAYERS):
        result = export(tampered, tmp_path / "bundle", num_layers)
        assert result.exit_code == 2
        assert "computes more than a norm after its last layer" in result.stderr


def exchange(one, other):
    """Return a change that gives two inputs each other's names."""
    names = {one: other, other: one}

    def change_inputs(graph):
        for node in graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]

    return change_inputs


def mask_by(*nodes, keeps_input=True):
    """Return a change that gives the model the last output of nodes for its mask."""

    def change_mask(graph):
        for node in graph.node:
            node.input[:] = ["mask" if name == "attention_mask" else name for name in node.input]
        for number in (0, 1):
            graph.initializer.append(
                onnx.numpy_helper.from_array(np.array(number), f"number_{number}")
            )
        for place, (operator, *inputs) in enumerate(nodes):
            graph.node.insert(
                place,
                onnx.helper.make_node(
                    operator, inputs, ["zeros" if place < len(nodes) - 1 else "mask"]
                ),
            )
        if not keeps_input:
            graph.input.remove(
                next(value for value in graph.input if value.name == "attention_mask")
            )

    return change_mask


ONES = [("Mul", "input_ids", "number_0"), ("Add", "zeros", "number_1")]
WRONG_INPUTS = {
    "types and mask": (
        exchange("token_type_ids", "attention_mask"),
        "attention_mask does not hide tokens",
    ),
    "ids and mask": (exchange("input_ids", "attention_mask"), "input_ids move nothing"),
    "ids and types": (exchange("input_ids", "token_type_ids"), "does not run: "),
    "an inverted mask": (
        mask_by(("Sub", "number_1", "attention_mask")),
        "attention_mask does not hide tokens",
    ),
    "a mask of ones": (mask_by(*ONES), "ignores its attention_mask"),
    "a mask of zeros": (
        mask_by(("Mul", "attention_mask", "number_0")),
        "ignores its attention_mask",
    ),
    "no mask": (mask_by(*ONES, keeps_input=False), "takes no attention_mask"),
}


@pytest.mark.parametrize(("graph", "message"), WRONG_INPUTS.values(), ids=WRONG_INPUTS)
def test_a_graph_of_other_inputs_than_their_names_say_is_refused(
    published, tmp_path, graph, message
):
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=graph)
    for num_layers in (1, LAYERS):
        result = export(folder, tmp_path / "bundle", num_layers)
        assert result.exit_code == 2
        assert message in result.stderr
        assert not (tmp_path / "bundle").exists()


def test_inspect_finds_such_a_graph_in_a_bundle(published, tmp_path, monkeypatch):
    graph, message = WRONG_INPUTS["types and mask"]
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=graph)
    with monkeypatch.context() as unchecked:
        unchecked.setattr("bertscore_onnx_export.verify.bundle.check_inputs", lambda pipeline: None)
        assert export(folder, tmp_path / "bundle", 1).exit_code == 0
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "bundle")])
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_graph_without_a_mask_is_used_if_its_weights_show_it_right(published, tmp_path):
    folder, bundle = tmp_path / "model", tmp_path / "bundle"
    change(published("bert", "optimum"), folder, graph=WRONG_INPUTS["no mask"][0])
    shutil.copy(saved("bert") / "model.safetensors", folder)
    assert export(folder, bundle, LAYERS).exit_code == 0
    assert not read_manifest(bundle).padding
    assert np.abs(scores_of(bundle) - scores_of(own_export("bert", LAYERS, tmp_path))).max() <= 1e-5
    assert CliRunner().invoke(app, ["inspect", str(bundle)]).exit_code == 0


@pytest.mark.filterwarnings("ignore:The sentencepiece tokenizer:UserWarning")
@pytest.mark.parametrize(
    ("name", "padding"),
    [
        *dict.fromkeys(["albert", "bigbird", "deberta-v3", "distilbert", "t5"], True).items(),
        # they reach into padding
        *dict.fromkeys(["convbert", "mobilebert", "nystromformer"], False).items(),
    ],
)
def test_the_mask_of_every_kind_of_attention_is_accepted(published, name, padding, tmp_path):
    bundle, _ = assert_scores_as_own_export(
        published(name, "sentence-transformers"), name, LAYERS, tmp_path
    )
    assert read_manifest(bundle).padding == padding


@pytest.mark.parametrize("num_layers", [1, LAYERS])
def test_nodes_behind_the_layers_need_no_names(published, tmp_path, num_layers):
    def twice_alike(name):
        return [
            onnx.helper.make_node("Identity", *ends)
            for ends in ((["inner"], ["same"]), (["same"], [name]))
        ]

    graph = partial(behind_vectors, nodes=twice_alike)
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=graph)
    assert_scores_as_own_export(folder, "bert", num_layers, tmp_path)


@pytest.mark.parametrize("weights", [False, True])
def test_a_graph_without_names_is_used_whole_with_a_warning_unless_it_is_compared(
    published, tmp_path, weights
):
    folder = change(published("bert", "optimum"), tmp_path / "model", graph=without_names)
    if weights:
        shutil.copy(saved("bert") / "model.safetensors", folder)
    result = export(folder, tmp_path / "bundle", LAYERS)
    assert result.exit_code == 0
    warned = [line for line in result.stderr.splitlines() if line.startswith("Warning: ")]
    graph = folder / "onnx" / "model.onnx"
    expected = (
        f"Warning: The nodes of {graph} do not tell its layers apart: only config.json says that "
        "its vectors are"
    )
    assert [line.startswith(expected) for line in warned] == [True] * (not weights)


@pytest.mark.parametrize("options", [(), ("-l", "1")])
def test_a_graph_of_another_model_gets_no_name_of_the_catalogue(published, tmp_path, options):
    folder = change(published("bert", "optimum"), tmp_path / "bert-base-uncased")
    for name, named in ((folder.name, ()), ("roberta-base", ("--name", "roberta-base"))):
        result = CliRunner().invoke(app, ["export", "--from-onnx", str(folder), *options, *named])
        assert result.exit_code == 2
        assert f"{name} is a model of the catalogue with" in result.stderr


def test_a_layer_too_high_is_answered_with_their_number(published, tmp_path):
    result = export(published("bert", "optimum"), tmp_path / "bundle", 9)
    assert f"has {LAYERS} layers; num_layers must be from 0 to that, not 9." in result.stderr


@pytest.mark.parametrize(
    "writer", ["optimum", pytest.param("dynamo", marks=pytest.mark.transformers5)]
)
@pytest.mark.parametrize("layers_of_config", [1, 2, 4, 12])
def test_names_that_tell_of_other_layers_than_the_configuration_are_refused(
    published, writer, layers_of_config, tmp_path
):
    folder = change(
        published("bert", writer),
        tmp_path / "model",
        config={"num_hidden_layers": layers_of_config},
    )
    for num_layers in (1, layers_of_config):
        result = export(folder, tmp_path / "bundle", num_layers)
        assert result.exit_code == 2
        assert (
            f"has {LAYERS} layers by the names of its nodes, and config.json has {layers_of_config}"
            in result.stderr
        )


@pytest.mark.parametrize("num_layers", [1, LAYERS])
def test_layers_may_be_counted_from_another_number(published, num_layers, tmp_path):
    def from_seven(graph):
        for node in graph.node:
            node.name = re.sub(
                r"/layer\.(\d+)/", lambda found: f"/layer.{int(found[1]) + 7}/", node.name
            )

    folder = change(published("bert", "optimum"), tmp_path / "model", graph=from_seven)
    assert_scores_as_own_export(folder, "bert", num_layers, tmp_path)


@pytest.mark.parametrize(
    "option", [["--all-layers"], ["--precision", "int8"], ["--adapter", "x"], ["--model", "x"]]
)
def test_options_without_effect_are_refused(tmp_path, option):
    assert export(tmp_path, tmp_path / "bundle", 1, *option).exit_code == 2
