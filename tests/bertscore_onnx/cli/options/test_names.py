"""Messages that name options, not Python's arguments."""

import pytest
from typer.main import get_command

from bertscore_onnx.cli import app
from bertscore_onnx.cli.options import with_option_names


@pytest.fixture
def score():
    return get_command(app).commands["score"]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("num_layers is -1; expected 0 or more.", "--num-layers is -1; expected 0 or more."),
        ("Choose one with num_layers: a, b.", "Choose one with --num-layers: a, b."),
        ("Leave num_layers out, or run `x --num-layers 3`.", "Leave --num-layers out, or run `x --num-layers 3`."),
        ("Leave precision out, or score in fp32.", "Leave --precision out, or score in fp32."),
        ("Name it with `lang` or `baseline_path`.", "Name it with `--lang` or `--baseline-path`."),
        ("Name a model with `model_type`.", "Name a model with `--model`."),
        ("Pass all_layers=True (--all-layers), or not.", "Pass --all-layers, or not."),
        ('Use device="cpu", or not.', "Use --device cpu, or not."),
        ("device is 'tpu'; expected cpu.", "--device is 'tpu'; expected cpu."),
        ("idf weights have no effect without idf=True.", "idf weights have no effect without --idf."),
    ],
)
def test_arguments_become_options(score, message, told):
    assert with_option_names(message, score) == told


@pytest.mark.parametrize(
    "message",
    [
        "The bundle is in fp16, a precision of its own; the model runs on a device.",
        "Cannot read '/data/num_layers/batch_size.csv'.",
        "Run `bertscore-onnx export --model x --num-layers 3 --all-layers`.",
    ],
)
def test_words_paths_and_options_stay(score, message):
    assert with_option_names(message, score) == message


def test_errors_of_a_command_name_its_options(run, write, tiny_bundle):
    texts = write("texts.txt", "the cat\n")
    result = run("score", "-m", tiny_bundle, "-c", texts, "-r", texts, "-l", 1)
    assert result.exit_code == 1
    assert "Leave --num-layers out" in result.stderr
    assert "num_layers" not in result.stderr
