"""A model's own code is never run, whatever standard input answers."""

import contextlib
import json
import shutil

import pytest
from transformers import AutoModel
from typer.testing import CliRunner

from bertscore_onnx.cli import app

CODE = """
from pathlib import Path
Path({mark!r}).touch()
from transformers import BertConfig as Own, BertModel as OwnModel, BertTokenizer as OwnTokenizer
"""


@pytest.fixture
def model(tiny_model, tmp_path):
    """A model with a module of its own, which leaves a mark when it is imported."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / "own.py").write_text(CODE.format(mark=str(tmp_path / "ran")))
    return folder


def change(file, **settings):
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        (
            "config.json",
            {
                "model_type": "own",
                "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.OwnModel"},
            },
        ),
        ("config.json", {"auto_map": {"AutoModel": "own.OwnModel"}}),
        ("config.json", {"auto_map": {"AutoConfig": "someone/else--own.Own"}}),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}},
        ),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "Own", "auto_map": ["own.OwnTokenizer", None]},
        ),
    ],
)
def test_a_model_with_code_of_its_own_is_refused(model, tmp_path, file, settings):
    change(model / file, **settings)
    output = tmp_path / "out" / "bundle"
    result = CliRunner().invoke(
        app, ["export", "-m", str(model), "-l", "1", "--output", str(output)], input="y\n" * 9
    )
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        f"Error: {model} comes with code of its own (`auto_map` in {file}), and the export runs "
        "none. Export a model whose architecture transformers itself has, or a graph of it with "
        "--from-onnx."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.fixture
def kernels(monkeypatch):
    """The names of the kernels that transformers asks the hub for, as it does where `kernels` is
    installed.
    """
    asked = []
    monkeypatch.setattr("transformers.modeling_utils.is_kernels_available", lambda: True)
    monkeypatch.setattr("transformers.modeling_utils.load_and_register_kernel", asked.append)
    return asked


@pytest.mark.parametrize(
    "key", ["attn_implementation", "_attn_implementation", "_attn_implementation_internal"]
)
@pytest.mark.parametrize(
    "kernel", ["someone/kernel", "someone/kernel@main:attention", "flash_attention_2"]
)
def test_no_kernel_is_loaded_from_the_hub(model, tmp_path, kernels, key, kernel):
    change(model / "config.json", **{key: kernel})
    result = CliRunner().invoke(
        app, ["export", "-m", str(model), "-l", "1", "--output", str(tmp_path / "bundle")]
    )
    assert result.exit_code == 0, result.stderr
    assert kernels == []


def test_transformers_alone_would_load_a_kernel(model, kernels):
    change(model / "config.json", _attn_implementation_internal="someone/kernel")
    with contextlib.suppress(Exception):  # the kernel is not there
        AutoModel.from_pretrained(model)
    assert kernels == ["someone/kernel"]
