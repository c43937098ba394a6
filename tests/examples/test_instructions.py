"""The commands at the top of examples and scripts, and in documents, are whole, one in a line."""

import ast
import json
import os
import re
import shlex
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from tests.examples.conftest import EXAMPLES
from tests.support.bundles import link_or_copy
from tests.support.snippets import ROOT, copy_examples, documents, run_in_bash, snippets

FOLDERS = ("examples", "scripts", "reproduce")
SCRIPTS = sorted(
    path for path in EXAMPLES.rglob("*.py") if "sys.argv" in path.read_text(encoding="utf-8")
)
PROGRAMS = frozenset(
    ". ./spark_submit.sh .venv/bin/python awk base64 bertscore-onnx cat cd curl cut docker echo"  # noqa: SIM905
    " export gh gunicorn gzip head inspect java jq kubectl lighteval lm-eval ls make node npm npx"
    " paste pip pipx printf pytest python python3 spark-submit tritonserver true uvicorn uvx".split()
)
OUR_COMMANDS = {"export", "inspect"}
PACKAGES = {"bertscore-onnx", "lighteval", "lm-eval"}
RUNNERS = {"-m", "pipx", "uvx"}
ASSIGNMENT = re.compile(r"[A-Z_]\w*=\S*")
LITERAL = re.compile(r" {4,}(\S.*)")
COMMENTED = re.compile(r"(?:#|//| \*) {3,}(\S.*)")


def is_step(words: list[str]) -> bool:
    """Return whether words are one call of a program."""
    if not words or words[0] not in PROGRAMS:
        return False
    later = {word for before, word in pairwise(words) if before not in RUNNERS} - {"."}
    if words[0] == "bertscore-onnx":
        later -= OUR_COMMANDS
    if words[1:2] == ["install"]:
        later -= PACKAGES
    return words[0] in RUNNERS or PROGRAMS.isdisjoint(later)


def is_command(line: str) -> bool:
    """Return whether a line is a command, or several with `|`, `&&` or `;` between them."""
    lexer = shlex.shlex(re.sub(r" \[[^]]*\]| & *$", "", line), posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    steps = [[]]
    for word in lexer:
        if set(word) <= set("|&;"):
            steps.append([])
        elif steps[-1] or not ASSIGNMENT.fullmatch(word):
            steps[-1].append(word)
    return all(map(is_step, steps))


def is_python(block: str) -> bool:
    try:
        return bool(ast.parse(block).body)
    except SyntaxError:
        return False


def is_sound(block: str) -> bool:
    """Return whether a block is commands line by line, Python, or the form of a file in JSON."""
    return block.startswith("{") or is_python(block) or all(map(is_command, block.splitlines()))


def literal_blocks(path: Path) -> list[str]:
    """Return the indented blocks at the top of a file, in a docstring or in comments."""
    text = path.read_text(encoding="utf-8")
    form = COMMENTED
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(text), clean=False) or ""
        form = LITERAL
    blocks = []
    is_open = False
    before = ""
    for line in re.sub(r"\\\n[# ]*", "", text).splitlines():
        found = form.fullmatch(line)
        begins = found and not is_open and (form is COMMENTED or not before)
        if begins:
            blocks.append([])
        is_open = bool(begins or (found and is_open))
        if is_open:
            blocks[-1].append(found[1])
        before = line
    return ["\n".join(block) for block in blocks]


BLOCKS = [
    pytest.param(block, id=f"{path.relative_to(ROOT)}:{number}")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.name == "Dockerfile" or path.suffix in (".java", ".mjs", ".py", ".sh", ".yaml")
    if "node_modules" not in path.parts
    for number, block in enumerate(literal_blocks(path))
]
PAIR = {"candidate": "It is freezing today.", "reference": "It is cold today."}
TURN = {"final_response": "It is cold today."}
STATS = {"name": {"name": "METRIC", "split": "test"}, "count": 1, "mean": 1.0}
RUN = [{"instance_id": "id0", "train_trial_index": 0, "stats": [STATS]}]
MATERIAL = {
    "INPUT.json": {
        "invocations": [TURN],
        "expected_invocations": [TURN],
        "config": {"model": "BUNDLE"},
    },
    "TABLE.jsonl": PAIR,
    "RUN_FOLDER/per_instance_stats.json": RUN,
    "ANOTHER_RUN_FOLDER/per_instance_stats.json": RUN,
}
"""Files under the names that instructions use."""

OFFLINE = [
    "agentevals_evaluator.py",
    "datasets_map.py",
    "demo.py",
    "evaluation-logs/adders.py",
    "evaluation-logs/helm.py",
    "pandas_frame.py",
    "polars_frame.py",
    "pytest-gate/conftest.py",
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_literal_block_is_commands_line_by_line(block):
    assert is_sound(block), block


@pytest.mark.parametrize(
    "snippet", [one for path in documents() for one in snippets(path, "console")], ids=str
)
def test_a_console_block_of_a_document_is_commands(snippet):
    for command, _ in snippet.commands():
        assert all(map(is_command, command.replace("\\\n", "").splitlines())), command


def test_commands_that_were_joined_are_none():
    joined = [
        " ".join(lines)
        for block in BLOCKS
        for lines in pairwise(block.values[0].splitlines())
        if all(map(is_command, lines)) and "#" not in lines[0]
    ]
    assert len(joined) > 20
    assert [line for line in joined if is_sound(line)] == []


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
@pytest.mark.parametrize("name", OFFLINE)
def test_the_instructions_run(name, minilm_bundle, tmp_path, monkeypatch):
    folder = (tmp_path / "examples" / name).parent
    copy_examples(tmp_path)
    shutil.copytree(minilm_bundle, folder / "BUNDLE", copy_function=link_or_copy)
    for file, content in MATERIAL.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(json.dumps(content), encoding="utf-8")
    pl.DataFrame([PAIR]).write_parquet(folder / "TABLE.parquet")
    lines = literal_blocks(EXAMPLES / name)[0].replace("NUMBER", "3").splitlines()
    commands = [line for line in lines if "install" not in line]
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("BERTSCORE_BUNDLE", "BUNDLE")
    printed = run_in_bash("\n".join(["set -e", *commands]))
    written = {file.name for file in folder.iterdir()} & {"SCORED.jsonl", "SCORED.parquet"}
    assert printed or written or (folder / "helm.csv").stat().st_size


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_an_example_without_arguments_shows_its_usage(path, monkeypatch):
    """Of the block that runs, the first statement, which needs none of the packages that the
    example imports.
    """
    module = ast.parse(path.read_text(encoding="utf-8"))
    [block] = [statement for statement in module.body if isinstance(statement, ast.If)]
    names = {"sys": sys, "__doc__": ast.get_docstring(module)}
    monkeypatch.setattr(sys, "argv", [path.name])
    with pytest.raises(SystemExit, match=rf"{path.name} \S*(BUNDLE|MODEL|FOLDER|NUMBER)"):
        exec(compile(ast.Module(block.body[:1], []), str(path), "exec"), names)  # noqa: S102
