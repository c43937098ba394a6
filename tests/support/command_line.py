"""Runs the command line, in this process or in one of its own."""

import io
import json
import os
import pty
import shutil
import subprocess
import sys
import termios
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer.testing
from typer.testing import CliRunner

from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.cli import app

# it takes as long as a command that is refused
typer.testing._get_command = cache(typer.testing._get_command)


class Pipe(io.BytesIO):
    """Bytes that can be read only once, as from a pipe."""

    def seekable(self):
        return False


@pytest.fixture
def run():
    """Run a command in this process; the result has exit_code, stdout and stderr."""

    def run(*arguments, stdin=None):
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)

    return run


@pytest.fixture
def run_score(run, tiny_bundle):
    """Score with the tiny bundle."""

    def run_score(*arguments, stdin=None):
        return run("score", "-m", tiny_bundle, *arguments, stdin=stdin)

    return run_score


@pytest.fixture
def stdin_is_a_pipe(monkeypatch):
    monkeypatch.setattr("typer.testing.make_input_stream", lambda content, charset: Pipe(content))


@pytest.fixture
def run_json(run):
    def run_json(*arguments, stdin=None):
        result = run(*arguments, "--format", "json", stdin=stdin)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run_json


@pytest.fixture
def refused(run):
    """Run a command that fails and prints nothing on standard output; return its standard error as
    one line.
    """

    def refused(*arguments, stdin=None):
        result = run(*arguments, stdin=stdin)
        assert (result.exit_code, result.stdout) == (2, "")
        return " ".join(result.stderr.split())

    return refused


@pytest.fixture
def score_on(monkeypatch):
    """Let `score` find that its standard streams are a terminal, or that they are none."""

    def score_on(terminal):
        stream = io.StringIO()
        stream.isatty = lambda: terminal
        monkeypatch.setattr(
            "bertscore_onnx.cli.score.sys", SimpleNamespace(stdout=stream, stderr=stream)
        )

    return score_on


@pytest.fixture
def run_process():
    """Run a command in a process of its own, after some setup, in which some packages cannot be
    imported.
    """

    def run(*arguments, stdin=b"", stdout=subprocess.PIPE, blocked=(), setup=""):
        blocking = f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); "
        code = blocking + setup + "from bertscore_onnx.cli import main; main()"
        command = [sys.executable, "-c", code, *map(str, arguments)]
        streams = {"input": stdin, "stdout": stdout, "stderr": subprocess.PIPE}
        return subprocess.run(command, **streams, env=_environment(), timeout=300, check=False)

    return run


@pytest.fixture
def run_until_first_line():
    """Run a command whose reader goes away after the first line; return that, standard error and
    the exit status.
    """

    def run(*arguments):
        command = [sys.executable, "-m", "bertscore_onnx", *map(str, arguments)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
        ) as process:
            first = process.stdout.readline()
            process.stdout.close()
            return first, process.stderr.read(), process.wait(60)

    return run


@pytest.fixture
def run_on_terminal():
    """Run a command whose standard streams are a terminal; return what that shows."""

    def run(*arguments, **environment):
        return on_terminal(
            [sys.executable, "-m", "bertscore_onnx", *map(str, arguments)], **environment
        )

    return run


def on_terminal(command, **environment):
    """Return what a command shows on a terminal that changes no character."""
    master, slave = pty.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    settings = {
        name: value for name, value in _environment().items() if name != "NO_COLOR"
    } | environment
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=settings)
    os.close(slave)
    shown = b"".join(iter(lambda: _read(master), b""))
    os.close(master)
    assert process.wait(60) == 0
    return shown.decode()


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed, on Linux
        return b""


@pytest.fixture
def start_scoring(tiny_bundle):
    """Start to score candidates from standard input, one pair a window; return the process."""
    processes = []

    def start(*arguments):
        code = "import bertscore_onnx.scoring.pipeline as p; p.CHUNK_CANDIDATES = 1; "
        code += "import bertscore_onnx.scoring.inputs as i; i.PAIRS_AT_ONCE = 1; "
        code += "from bertscore_onnx.cli import main; main()"
        command = [
            sys.executable,
            "-c",
            code,
            "score",
            "-m",
            tiny_bundle,
            "-c",
            "-",
            *map(str, arguments),
        ]
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        processes.append(subprocess.Popen(command, **streams, bufsize=0, env=_environment()))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def installed_bundle(home, tiny_bundle) -> Path:
    """A copy of `tiny_bundle` at its place in the test's own home folder."""
    return shutil.copytree(tiny_bundle, bundle_folder("tiny-bert", Variant(2)))


def _environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
