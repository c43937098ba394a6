"""The examples of the help."""

import shlex

import pytest
from typer.main import get_command

from bertscore_onnx.cli import app
from bertscore_onnx.cli.options import EXAMPLES

COMMANDS = get_command(app).commands
LINES = [line.strip() for examples in EXAMPLES.values() for line in examples.strip().splitlines()]


def test_every_command_has_examples():
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("line", LINES)
def test_an_example_is_a_command_that_can_be_given(line):
    program, command, *arguments = shlex.split(line.partition(" > ")[0].partition(" < ")[0])
    assert program == "bertscore-onnx"
    assert COMMANDS[command].make_context(command, arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_ends_with_them_as_they_are(run, command):
    lines = [f"    {line.strip()}" for line in EXAMPLES[command].strip().splitlines()]
    assert run(command, "--help").stdout.endswith("\n".join(["  Examples:", *lines, ""]))


def test_the_help_says_which_model_to_take_and_what_is_a_good_score(run):
    text = " ".join(run("score", "--help").stdout.split())
    assert "Which model?" in text
    assert "What is a good score?" in text
