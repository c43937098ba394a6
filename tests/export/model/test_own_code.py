"""A model's own code is never run, whatever standard input answers."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from bertscore_onnx.cli import app
from bertscore_onnx_export.model.load import load_config
from bertscore_onnx_export.model.source import Source

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
        ("config.json", {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.OwnModel"}}),
        ("config.json", {"auto_map": {"AutoModel": "own.OwnModel"}}),
        ("config.json", {"auto_map": {"AutoConfig": "someone/else--own.Own"}}),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}},
        ),
        ("tokenizer_config.json", {"tokenizer_class": "Own", "auto_map": ["own.OwnTokenizer", None]}),
    ],
)
def test_a_model_with_code_of_its_own_is_refused(model, tmp_path, file, settings):
    change(model / file, **settings)
    output = tmp_path / "out" / "bundle"
    result = CliRunner().invoke(app, ["export", "-m", str(model), "-l", "1", "--output", str(output)], input="y\n" * 9)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        f"Error: {model} comes with code of its own (`auto_map` in {file}), and the export runs none. Export a model "
        "whose architecture transformers itself has, or a graph of it with --from-onnx."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.parametrize("attention", ["someone/kernel", "flash_attention_2"])
def test_attention_that_would_be_code_of_the_hub_is_not_chosen(model, attention):
    change(model / "config.json", _attn_implementation=attention)
    assert load_config(Source(str(model)))._attn_implementation is None
