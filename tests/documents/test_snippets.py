"""Every block of Python and every command that the documents show is run, and gives what they show.

A block starts in a fresh process, in a folder that holds what a reader has after `make demo`: the examples and a bundle
of MiniLM, and pairs in Parquet files. A block that cannot be run here has a line above it that says why; one that needs
Ray or Spark is run where they are; one that needs public judgements where METAEVAL names their folder, and WMT16 the
file of those that bert-score's layers were tuned on.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.support.bundles import link_or_copy
from tests.support.programs import require_java
from tests.support.snippets import ROOT, Snippet, difference, documents, snippets

OWN_TESTS = {"hub.md", "server.md"}
"""Documents whose commands need a server, and are run with one by tests of their own."""

SNIPPETS = [one for file in documents() if file.name not in OWN_TESTS for one in snippets(file)]
RUN = [one for one in SNIPPETS if one.reason is None]
GUARD = 120
GUARD_OF_ENGINES = 300
WMT16_TABLE = "wmt16_da_seg.tsv.gz"
TEXTS = ("candidates.txt", "references.txt")
ENGINES = ("ray", "spark")
PORT = "8080"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"].keys()


def cases(language: str) -> list[object]:
    return [pytest.param(one, id=one.place, marks=marks(one)) for one in RUN if one.language == language]


def marks(snippet: Snippet) -> list[pytest.MarkDecorator]:
    if snippet.material in ENGINES:
        return [getattr(pytest.mark, snippet.material)]
    return []


def guard(snippet: Snippet) -> int:
    return GUARD_OF_ENGINES if snippet.material in ENGINES else GUARD


@pytest.fixture
def folder(tmp_path: Path, minilm_bundle: Path, minilm_scoring_bundle: Path) -> Path:
    """What a reader has: the examples, texts, and MiniLM under the names that documents give a bundle."""
    write_pairs(tmp_path / "pairs")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("node_modules", "site"))
    for file in TEXTS:
        shutil.copy(ROOT / "examples" / file, tmp_path)
    bundles = {
        "build/minilm": minilm_bundle,
        "path/to/bundle": minilm_bundle,
        "build/minilm-fast": minilm_scoring_bundle,
    }
    for name, bundle in bundles.items():
        shutil.copytree(bundle, tmp_path / name, copy_function=link_or_copy)
    return tmp_path


def write_pairs(folder: Path) -> None:
    """Write the texts of the examples into two Parquet files."""
    folder.mkdir()
    sides = [(ROOT / "examples" / name).read_text(encoding="utf-8").splitlines() for name in TEXTS]
    table = pa.table({"id": range(len(sides[0])), "candidate": sides[0], "reference": sides[1]})
    pa.parquet.write_table(table[: len(table) // 2], folder / "0.parquet")
    pa.parquet.write_table(table[len(table) // 2 :], folder / "1.parquet")


def provide(material: str | None, folder: Path) -> None:
    """Put public material into a reader's folder; skip the test where that, or what an engine needs, is missing."""
    if material == "spark":
        require_java()
    if material is None or material in ENGINES:
        return
    variable = "WMT16" if material == WMT16_TABLE else "METAEVAL"
    if variable not in os.environ:
        pytest.skip(f"takes minutes, and {material}: set {variable} to where it is")
    source = Path(os.environ[variable])
    (folder / material).symlink_to((source if variable == "WMT16" else source / material).resolve(strict=True))


def environment(folder: Path) -> dict[str, str]:
    """The variables of a reader's shell, with this Python's commands and an empty store."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "BERTSCORE_ONNX_HOME": str(folder / "home"), "COLUMNS": "120"}


@pytest.mark.slow
@pytest.mark.parametrize("snippet", cases("python"))
def test_python_gives_what_is_shown(snippet: Snippet, folder: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", snippet.text]
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=GUARD)
    assert done.returncode == 0, done.stderr
    assert difference(snippet.output or "", done.stdout) is None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="commands are shown for a POSIX shell")
@pytest.mark.parametrize("snippet", cases("console"))
def test_commands_give_what_is_shown(snippet: Snippet, folder: Path) -> None:
    provide(snippet.material, folder)
    if "--output build/minilm" in snippet.text:  # it makes what other blocks find
        shutil.rmtree(folder / "build")
    port = free_port()
    servers = []
    try:
        for command, shown in snippet.commands():
            if is_set_up(command):
                continue
            if command.startswith("bertscore-onnx serve"):  # a reader goes on in another terminal
                servers.append(start(f"exec {command} --port {port}", folder))
                await_port(servers[-1], port)
                continue
            process = start(command.replace(PORT, str(port)), folder)
            came, _ = process.communicate(timeout=guard(snippet))
            assert process.returncode == 0, f"{command}\n{came}"
            assert not shown or difference(shown, came) is None, f"{command}\n{difference(shown, came)}"
    finally:
        for server in servers:
            server.terminate()
            server.communicate(timeout=GUARD)


def is_set_up(command: str) -> bool:
    """Say whether a command makes the environment, which the tests have already; what it names must be there."""
    if target := re.match(r"make (\S+)", command):
        assert re.search(rf"^{target[1]}:", MAKEFILE, flags=re.MULTILINE), f"no target {target[1]}"
    elif extras := re.match(r"pip install .*\[(.*)\]", command):
        assert {*extras[1].split(",")} <= EXTRAS, f"no such extra: {command}"
    return command.startswith(("make ", "pip install ", "python3 -m venv ", ". .venv/"))


def start(command: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def await_port(server: "subprocess.Popen[str]", port: int) -> None:
    until = time.monotonic() + GUARD
    while time.monotonic() < until and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    server.kill()
    raise AssertionError(f"It does not serve: {server.communicate()[0]}")


def test_every_kind_of_block_is_found() -> None:
    assert {one.language for one in RUN} == {"python", "console"}
    assert len(RUN) >= 10


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        ("P 0.75\n… F 0.8", "P 0.754\nR 0.1 F 0.80"),
        ("[0.9007 0.8]", "[0.90071994 0.79999999]"),
        ("", ""),
    ],
)
def test_output_may_differ_in_what_is_not_shown(shown: str, came: str) -> None:
    assert difference(shown, came) is None


@pytest.mark.parametrize(
    ("shown", "came"), [("F 0.75", "F 0.762"), ("F 0.75", "R 0.75"), ("", "F 0.75"), ("F 0.75", "F 0.75\nmore")]
)
def test_other_output_is_a_difference(shown: str, came: str) -> None:
    assert difference(shown, came) is not None


def test_commands_are_told_from_their_output() -> None:
    snippet = Snippet("here:1", "console", "$ one \\\n  two\n0.5\n$ three\n", None, None)
    assert snippet.commands() == [("one \\\n  two", "0.5\n"), ("three", "")]
