"""Completion in a shell."""

import os
import subprocess
import sys

import pytest

from bertscore_onnx.cli.options import complete_model


def test_names_of_the_catalogue_are_completed(home):
    assert complete_model("RoBERTa-large") == ["roberta-large", "roberta-large-mnli", "roberta-large-openai-detector"]


def test_bundles_here_come_first(installed_bundle):
    assert complete_model("")[0] == "tiny-bert"


def test_paths_are_left_to_the_shell(home):
    assert complete_model("./bundles/") == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("inspect roberta-large-m", "roberta-large-mnli"),
        ("export --model roberta-large-m", "roberta-large-mnli"),
        ("sc", "score"),
    ],
)
def test_a_shell_gets_completions(home, words, expected):
    completion = {
        "_BERTSCORE_ONNX_COMPLETE": "complete_bash",
        "COMP_WORDS": f"bertscore-onnx {words}",
        "COMP_CWORD": str(len(words.split())),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    code = "import sys; sys.argv[0] = 'bertscore-onnx'; from bertscore_onnx.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **completion}, capture_output=True, text=True
    )
    assert done.stdout.split() == [expected]


def test_the_script_can_be_shown(run):
    assert "--show-completion" in run("--help").stdout
    assert "--install-completion" in run("--help").stdout
