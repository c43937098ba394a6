"""Every block of Python and every command that the documents show is run, and prints what they
show.

Each starts in a folder that holds what a reader has after `make demo`: the examples and a bundle of
MiniLM, and pairs in Parquet files. Python runs in this process, each block in a namespace of its
own, and so does a command of bertscore-onnx, or a script, that needs no shell; other commands go to
bash, in `make test-full`. A block that cannot be run here has a line above it with the reason; one
that needs Ray or Spark is run where they are installed; one that needs public judgements where
METAEVAL names their folder, and WMT16 the file of those that bert-score's layers were tuned on.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import bertscore_onnx
from bertscore_onnx.cli import app
from tests.support.bundles import link_or_copy
from tests.support.programs import require_java
from tests.support.snippets import (
    ROOT,
    Snippet,
    copy_examples,
    difference,
    documents,
    run_in_bash,
    snippets,
)

OWN_TESTS = {"hub.md", "server.md"}
"""Documents whose commands need a server; tests of their own run them with one."""

SNIPPETS = [one for file in documents() if file.name not in OWN_TESTS for one in snippets(file)]
RUN = [one for one in SNIPPETS if one.reason is None]
WMT16_TABLE = "wmt16_da_seg.tsv.gz"
TEXTS = ("candidates.txt", "references.txt")
ENGINES = ("ray", "spark")
SUBSTITUTION = re.compile(r'"\$\((.+)\)"')
FOR_A_SHELL = re.compile(r"[|<>$;&*{}`]|^\w+=")
"""What only a shell can do."""

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"].keys()


def needs_shell(command: str) -> bool:
    return FOR_A_SHELL.search(re.sub("'[^']*'", "", command)) is not None


def is_set_up(command: str) -> bool:
    """Return whether a command sets up the environment, which tests already have; check the names
    in it.
    """
    if target := re.match(r"make (\S+)", command):
        assert re.search(rf"^{target[1]}:", MAKEFILE, flags=re.MULTILINE), f"no target {target[1]}"
    elif extras := re.match(r"pip install .*\[(.*)\]", command):
        assert {*extras[1].split(",")} <= EXTRAS, f"no such extra: {command}"
    return command.startswith(("make ", "pip install ", "python3 -m venv ", ". .venv/"))


def marks(snippet: Snippet) -> list[pytest.MarkDecorator]:
    """Return the mark of an engine, or `full` for commands that need a shell, if only to name the
    model to export.
    """
    if snippet.material in ENGINES:
        return [getattr(pytest.mark, snippet.material)]
    commands = (
        [command for command, _ in snippet.commands()] if snippet.language == "console" else []
    )
    return (
        [pytest.mark.full]
        if any(needs_shell(one) for one in commands if not is_set_up(one))
        else []
    )


def cases(language: str) -> list[object]:
    return [
        pytest.param(one, id=one.place, marks=marks(one)) for one in RUN if one.language == language
    ]


@pytest.fixture
def folder(tmp_path, minilm, minilm_bundle, minilm_scoring_bundle, monkeypatch):
    """Work in a reader's folder: the examples, texts, and MiniLM under the names that documents use
    for it.
    """
    write_pairs(tmp_path / "pairs")
    copy_examples(tmp_path)
    for file in TEXTS:
        shutil.copy(ROOT / "examples" / file, tmp_path)
    bundles = {
        "build/minilm": minilm_bundle,
        "path/to/bundle": minilm_bundle,
        "build/minilm-fast": minilm_scoring_bundle,
    }
    for name, bundle in bundles.items():
        shutil.copytree(bundle, tmp_path / name, copy_function=link_or_copy)
    shutil.copytree(minilm, tmp_path / "my-model", copy_function=link_or_copy)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    yield tmp_path
    bertscore_onnx.score.clear()


def write_pairs(folder: Path) -> None:
    """Write the texts of the examples into two Parquet files."""
    folder.mkdir()
    sides = [(ROOT / "examples" / name).read_text(encoding="utf-8").splitlines() for name in TEXTS]
    table = pa.table({"id": range(len(sides[0])), "candidate": sides[0], "reference": sides[1]})
    pa.parquet.write_table(table[: len(table) // 2], folder / "0.parquet")
    pa.parquet.write_table(table[len(table) // 2 :], folder / "1.parquet")


def provide(material: str | None, folder: Path) -> None:
    """Put public material into a reader's folder; skip the test if that, or Java for Spark, is
    missing.
    """
    if material == "spark":
        require_java()
    if material is None or material in ENGINES:
        return
    variable = "WMT16" if material == WMT16_TABLE else "METAEVAL"
    if variable not in os.environ:
        pytest.skip(f"takes minutes, and {material}: set {variable} to where it is")
    source = Path(os.environ[variable])
    (folder / material).symlink_to(
        (source if variable == "WMT16" else source / material).resolve(strict=True)
    )


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("snippet", cases("python"))
def test_python_prints_what_is_shown(snippet: Snippet, capsys) -> None:
    # it must come before bert-score, which other tests import
    if "compat.install()" in snippet.text:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", snippet.text], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert difference(snippet.output or "", done.stdout) is None
        return
    exec(compile(snippet.text, snippet.place, "exec"), {"__name__": "__main__"})  # noqa: S102 -- our documents
    assert difference(snippet.output or "", capsys.readouterr().out) is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="commands are shown for a POSIX shell")
@pytest.mark.parametrize("snippet", cases("console"))
def test_commands_print_what_is_shown(snippet: Snippet, folder: Path, monkeypatch, capsys) -> None:
    provide(snippet.material, folder)
    if "--output build/minilm" in snippet.text:  # it makes what other blocks find
        shutil.rmtree(folder / "build")
    for command, shown in snippet.commands():
        if is_set_up(command):
            continue
        if substitution := SUBSTITUTION.search(command):
            printed = run(substitution[1], snippet.material, monkeypatch, capsys).strip()
            command = command.replace(substitution[0], shlex.quote(printed))
        printed = run(command, snippet.material, monkeypatch, capsys)
        assert not shown or difference(shown, printed) is None, (
            f"{command}\n{difference(shown, printed)}"
        )


def run(command: str, material: str | None, monkeypatch, capsys) -> str:
    program, *arguments = shlex.split(command.replace("\\\n", ""), comments=True)
    if material in ENGINES or needs_shell(command):
        program = "bash"
    if program == "bertscore-onnx":
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{command}\n{result.output}"
        return result.output
    if program in ("python", "python3") and Path(arguments[0]).exists():
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(arguments[0], run_name="__main__")
        return capsys.readouterr().out
    return run_in_bash(command)


def test_every_kind_of_block_is_found() -> None:
    assert {one.language for one in RUN} == {"python", "console"}
    assert len(RUN) >= 10


@pytest.mark.parametrize(
    ("shown", "came"),
    [("F 0.75", "F 0.762"), ("F 0.75", "R 0.75"), ("", "F 0.75"), ("F 0.75", "F 0.75\nmore")],
)
def test_other_output_is_a_difference(shown: str, came: str) -> None:
    assert difference(shown, came) is not None
