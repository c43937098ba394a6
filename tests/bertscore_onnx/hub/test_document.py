"""The commands and the code of docs/hub.md run, on a hub on loopback and with the tiny bundle."""

import shlex

import pytest
from typer.testing import CliRunner

from bertscore_onnx.cli import app
from tests.bertscore_onnx.hub.conftest import VARIANT
from tests.support.snippets import ROOT, difference, snippets

PAGE = ROOT / "docs" / "hub.md"
COMMANDS = [
    command for one in snippets(PAGE, "console") if one.reason is None for command in one.commands()
]
RUN = [(line, shown) for line, shown in COMMANDS if line.startswith("bertscore-onnx ")]
CODE = [one.text for one in snippets(PAGE, "python")]


@pytest.fixture
def as_here(hub, tiny_bundle, tmp_path, monkeypatch):
    """Return a function that puts what is here for what the page names: the hub, folders, texts and
    the bundle.
    """
    hub.token = "right"  # noqa: S105 (of the test's hub)
    monkeypatch.setenv("HF_TOKEN", "right")
    linked = tmp_path / "linked"
    linked.mkdir()
    for file in tiny_bundle.iterdir():
        (linked / file.name).symlink_to(file)
    (tmp_path / "texts.txt").write_text("the cat sat\n", encoding="utf-8")
    names = {
        "path/to/snapshots/COMMIT/layer-17-slow-fp32": str(linked),
        "path/to/bundle": str(tiny_bundle),
        "layer-17-slow-fp32": VARIANT,
        "FILE": str(tmp_path / "texts.txt"),
    }

    def replaced(text):
        for name, here in names.items():
            text = text.replace(name, here)
        return text

    return replaced


@pytest.fixture
def published(hub, tiny_bundle):
    """The bundle in the page's repository, under the names of its revisions."""
    for ref in ("main", "REVISION", "v1"):
        hub.add("ORG/REPO", tiny_bundle, VARIANT, ref)


def test_every_command_is_run():
    assert len(COMMANDS) == len(RUN) + 1
    assert COMMANDS[0][0].startswith("pip install ")


@pytest.mark.parametrize(
    ("line", "shown"), [pytest.param(*one, id=one[0]) for one in RUN if " push " not in one[0]]
)
def test_commands_run(line, shown, as_here, published):
    result = CliRunner().invoke(app, shlex.split(as_here(line))[1:])
    assert result.exit_code == 0, result.stderr
    assert not shown


def test_a_push_prints_what_is_shown(as_here):
    [(line, shown)] = [(line, shown) for line, shown in RUN if " push " in line]
    result = CliRunner().invoke(app, shlex.split(as_here(line))[1:])
    assert difference(as_here(shown).replace("COMMIT", "…"), result.stdout) is None


@pytest.mark.parametrize("code", CODE, ids=range(len(CODE)))
def test_the_code_runs(code, as_here, published):
    exec(as_here(code), {})  # noqa: S102 (the page's own code)
