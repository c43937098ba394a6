"""Scripts that call the command `bert-score` keep working with `bertscore-onnx score`."""

import argparse
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bertscore_onnx.cli import app

PAGE = Path(__file__).parents[3] / "docs" / "migrating.md"


class Parsed(Exception):  # noqa: N818 -- it carries the parser out of `main`
    pass


@pytest.fixture
def actions(monkeypatch):
    """Return what bert-score's parser takes, without help."""
    from bert_score_cli import score  # imports PyTorch

    def parse_args(parser):
        raise Parsed(parser)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
    with pytest.raises(Parsed) as caught:
        score.main()
    return [action for action in caught.value.args[0]._actions if action.dest != "help"]


@pytest.mark.slow
def test_every_option_of_bert_score_is_taken(actions):
    options = [
        [name, *(["1"] if action.nargs != 0 else [])]
        for action in actions
        for name in action.option_strings
    ]
    assert len(options) == 20
    refused = [
        option
        for option in options
        if CliRunner().invoke(app, ["score", *option, "--help"]).exit_code
    ]
    assert refused == []


def test_what_differs_is_in_one_row_of_the_page():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "alias" in line]
    assert len(rows) == 1
    assert all(word in rows[0] for word in ("-v", "abbreviated", "grep F1:", "files"))
