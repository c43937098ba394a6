"""Runs the command line, in this process or in one of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.cli import app


@pytest.fixture
def run():
    """Run a command in this process; the result has exit_code, stdout and stderr."""

    def run(*arguments, stdin=None):
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)

    return run


@pytest.fixture
def run_process():
    """Run a command in a process of its own, in which some packages cannot be imported."""

    def run(*arguments, stdin=b"", stdout=subprocess.PIPE, blocked=()):
        blocking = f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); "
        code = blocking + "from bertscore_onnx.cli import main; main()"
        command = [sys.executable, "-c", code, *map(str, arguments)]
        streams = {"input": stdin, "stdout": stdout, "stderr": subprocess.PIPE}
        return subprocess.run(command, **streams, env=_environment(), timeout=60, check=False)

    return run


@pytest.fixture
def run_until_first_line():
    """Run a command whose reader goes away after the first line; return that, standard error and the exit status."""

    def run(*arguments):
        command = [sys.executable, "-m", "bertscore_onnx", *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()) as process:
            first = process.stdout.readline()
            process.stdout.close()
            return first, process.stderr.read(), process.wait(60)

    return run


@pytest.fixture
def start_scoring(tiny_bundle):
    """Start to score candidates from standard input, one pair a window; return the process."""
    processes = []

    def start(*arguments):
        code = "import bertscore_onnx.scoring.pipeline as p; p.CHUNK_CANDIDATES = 1; "
        code += "import bertscore_onnx.scoring.inputs as i; i.PAIRS_AT_ONCE = 1; "
        code += "from bertscore_onnx.cli import main; main()"
        command = [sys.executable, "-c", code, "score", "-m", tiny_bundle, "-c", "-", *map(str, arguments)]
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
