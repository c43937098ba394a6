"""The graphs of each exporter give the scores of the default one's; packages that are missing are
named.
"""

import sys
from importlib.metadata import version

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import MissingExtraError
from bertscore_onnx.scoring.golden import GOLDEN_TOLERANCES
from bertscore_onnx_export.graph import exporters
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.pipeline import export_model
from tests.support.bundles import saved
from tests.support.parity import KNOWN_WARNINGS, ORDINARY_PAIRS
from tests.support.tiny_models import (
    ONLY_IN_5,
    POSITIONS,
    SETTINGS,
    VOCABULARY,
    each_family,
    save_tiny_model,
)

pytestmark = [*KNOWN_WARNINGS, pytest.mark.slow]

IS_TRANSFORMERS_5 = not transformers.__version__.startswith("4.")
OPTIMUM = pytest.mark.skipif(IS_TRANSFORMERS_5, reason="optimum-onnx needs transformers 4")
TRANSFORMERS = [
    pytest.mark.transformers5,
    pytest.mark.skipif(not IS_TRANSFORMERS_5, reason="transformers 4 has no exporter"),
]
OTHERS = [pytest.param("optimum", marks=OPTIMUM), pytest.param("transformers", marks=TRANSFORMERS)]
NOT_SAVED_BY_5 = {"bert-relative-key", "bert-relative-key-query", "xlm-prophetnet"}
"""Models of which transformers 5 saves a part of the weights, or none."""

FAMILIES = sorted({*SETTINGS, *ONLY_IN_5} - NOT_SAVED_BY_5) if IS_TRANSFORMERS_5 else [*SETTINGS]


@pytest.fixture
def without_torchscript(monkeypatch):
    """Let PyTorch have no exporter but the newer one."""
    export = torch.onnx.export

    def only_dynamo(*arguments, dynamo, **options):
        if not dynamo:
            raise TypeError("export() got an unexpected keyword argument 'dynamic_axes'")
        return export(*arguments, dynamo=dynamo, **options)

    return lambda: monkeypatch.setattr(torch.onnx, "export", only_dynamo)


@pytest.fixture
def cut(tmp_path):
    """Return a function that loads a tiny model of a family up to layer 2."""

    def load(name):
        folder = tmp_path / "model"
        if not folder.exists():
            save_tiny_model(*{**SETTINGS, **ONLY_IN_5}[name], folder)
        source = Source(str(folder))
        config = load_config(source)
        return load_cut(source, config, family_of(config), 2)

    return load


def similarities(model, folder, exporter):
    """Export a model; return P and R of random ids, (2, pairs), with the texts of each side in a
    batch.

    F would multiply their differences where they cancel, as those of random ids may.
    """
    folder.mkdir()
    write_graph(model, folder, exporter=exporter)
    graph = onnxruntime.InferenceSession(folder / "model.onnx")
    draw = np.random.default_rng(0)
    scores = []
    for longest in (1, 7, POSITIONS):
        lengths = draw.integers(1, longest, (2, 4), endpoint=True)
        if not family_of(model.config).padding:
            lengths[:] = longest
        sides = []
        for side in lengths:
            mask = (np.arange(side.max()) < side[:, None]).astype(np.int64)
            values = {
                "input_ids": draw.integers(10, VOCABULARY, mask.shape) * mask,
                "attention_mask": mask,
            }
            sides.append(
                graph.run(None, {node.name: values[node.name] for node in graph.get_inputs()})[0]
            )
        for (a, b), c, r in zip(lengths.T, *sides, strict=True):
            similarity = c[:a] @ r[:b].T
            scores.append([similarity.max(1).mean(), similarity.max(0).mean()])
    return np.array(scores).T


def assert_same_scores(cut, name, folder, exporter, record_property, before=lambda: None):
    usual = similarities(cut(name), folder / "usual", "torch")
    before()
    other = similarities(cut(name), folder / "other", exporter)
    difference = float(np.abs(other - usual).max())
    record_property("largest_difference", difference)
    assert difference <= 1e-6


@pytest.mark.parametrize("name", each_family(FAMILIES, quick={"bert", "xlm"}))
@pytest.mark.parametrize("exporter", OTHERS)
def test_graphs_give_the_scores_of_the_default_exporter(
    cut, name, exporter, tmp_path, record_property
):
    assert_same_scores(cut, name, tmp_path, exporter, record_property)


@pytest.mark.parametrize("name", each_family(FAMILIES, quick={"bert"}))
def test_every_family_is_exported_without_torchscript(
    cut, name, without_torchscript, tmp_path, record_property
):
    assert_same_scores(cut, name, tmp_path, "torch", record_property, without_torchscript)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"precision": "fp16"}, marks=pytest.mark.families),
        pytest.param({"precision": "int8"}, marks=pytest.mark.families),
        {"all_layers": True},
    ],
)
def test_graphs_of_a_newer_opset_are_reduced_and_scored(
    options, without_torchscript, tmp_path, record_property
):
    scores = []
    for folder in (tmp_path / "usual", tmp_path / "newer"):
        layers = {} if "all_layers" in options else {"num_layers": 2}
        export_model(str(saved("bert")), **options, **layers, scoring_graph=True, output=folder)
        with BERTScorer(folder, device="cpu", all_layers="all_layers" in options) as scorer:
            scores.append(np.stack(scorer.score(*zip(*ORDINARY_PAIRS, strict=True))))
        without_torchscript()
    difference = float(np.abs(scores[0] - scores[1]).max())
    record_property("largest_difference", difference)
    assert difference <= GOLDEN_TOLERANCES.get(options.get("precision"), 1e-6)


def test_without_torchscript_and_onnxscript_the_second_is_named(
    cut, without_torchscript, monkeypatch, tmp_path
):
    model = cut("bert")
    without_torchscript()
    monkeypatch.setattr(exporters, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError,
        match=r"needs onnxscript, which is not installed: `pip install .*onnxscript",
    ):
        write_graph(model, tmp_path)


@pytest.mark.parametrize(
    ("exporter", "module", "message"),
    [
        (
            "optimum",
            "optimum.exporters.onnx",
            r"needs optimum-onnx, .* `pip install '?optimum-onnx",
        ),
        (
            "transformers",
            "onnxscript",
            r"needs transformers 5\.13 or newer, and onnxscript: `pip install",
        ),
        (
            "transformers",
            "transformers.exporters.exporter_onnx",
            r"`pip install 'transformers>=5\.13",
        ),
    ],
)
def test_a_missing_package_of_an_exporter_is_named(
    exporter, module, message, monkeypatch, tiny_model, tmp_path
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=message):
        export_model(str(tiny_model), num_layers=1, exporter=exporter, output=tmp_path / "bundle")


@pytest.mark.parametrize("exporter", OTHERS)
def test_the_manifest_names_the_exporter_and_its_version(exporter, tmp_path):
    bundle = export_model(
        str(saved("modernbert")),
        num_layers=1,
        exporter=exporter,
        tokenizer_mode="fast",
        output=tmp_path / "bundle",
    )
    made = read_manifest(bundle).exported_with
    assert (made["exporter"], made.get("optimum-onnx")) == (
        exporter,
        version("optimum-onnx") if exporter == "optimum" else None,
    )
