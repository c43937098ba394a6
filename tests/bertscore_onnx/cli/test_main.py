"""What all commands have in common: help, version, exit status, and the two standard streams."""

import logging
import os
from pathlib import Path

import pytest

from bertscore_onnx import __version__
from bertscore_onnx.cli import COMMANDS as NAMES
from tests.support.processes import run_python

COMMANDS = ("score", "export", "models", "inspect", "doctor")
EXTRAS = ("torch", "transformers", "onnx", "onnxruntime")
ALL_HELP = (
    "import bertscore_onnx.cli as c; [c.app([*name, '--help'], standalone_mode=False) for name "
    "in {!r}]"
)


def modules_after(code):
    done = run_python(code + "; import sys; print(*sys.modules, file=sys.stderr)")
    assert done.returncode == 0, done.stderr
    return {*done.stderr.split()}


def test_the_command_line_and_its_help_need_nothing_that_only_work_needs():
    loaded = modules_after(ALL_HELP.format([(), *((name,) for name in NAMES)]))
    heavy = ("numpy", "tokenizers", "msgspec", "pyarrow", "asyncio", "starlette", "uvicorn")
    ours = ("scorer", "settings", "scoring", "encoding", "hub")
    houses = (
        "evaluation.systems",
        "evaluation.metrics",
        "service.jobs",
        "service.batcher",
        "service.http.app",
    )
    assert not loaded & {*EXTRAS, *heavy, *(f"bertscore_onnx.{name}" for name in ours)}
    assert not loaded & {f"bertscore_onnx_{name}" for name in houses}
    of_typer = ("typer", "pydantic")
    assert len([name for name in loaded if not name.startswith(of_typer)]) < 240


def test_counting_pairs_above_unrelated_ones_loads_nothing_of_evaluation():
    loaded = modules_after(
        "import bertscore_onnx.cli.score as s, numpy; s.Means(numpy.linspace(0, 1, 101))"
    )
    assert "bertscore_onnx.matching.rescaling" in loaded
    assert not [name for name in loaded if name.startswith("bertscore_onnx_evaluation")]


def test_help_lists_the_commands_and_the_version_is_printed(run):
    shown = run("--help").stdout
    assert [command for command in COMMANDS if f"\n  {command} " not in shown] == []
    assert run("--version").stdout == f"bertscore-onnx {__version__}\n"


def test_no_command_is_wrong_usage(run):
    result = run()
    assert (result.exit_code, "Usage: " in result.stderr) == (2, True)


def test_log_messages_are_one_line_of_standard_error(run, monkeypatch, home):
    monkeypatch.setattr(
        "bertscore_onnx.bundle.store.stored_bundles",
        lambda: logging.getLogger("any").warning("of\nthis") or [],
    )
    result = run("models", "roberta-base")
    assert result.stderr == "Warning: of this\n"


def test_an_interrupt_exits_with_130_and_one_line(run, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bertscore_onnx.cli.score.open_pairs", interrupt)
    result = run("score", "-m", "x", "-c", "a", "-r", "b")
    assert (result.exit_code, result.output) == (130, "Interrupted.\n")


INTERRUPTED_IMPORT = """
import os
import signal
import sys
from bertscore_onnx.__main__ import main

class Interrupt:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

module = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupt())
main()
"""


@pytest.mark.slow  # it starts processes
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    "module", ["bertscore_onnx.cli", "bertscore_onnx.cli.score", "numpy.linalg._umath_linalg"]
)
def test_an_interrupt_while_modules_are_imported_is_one_line(tiny_bundle, write, module):
    text = write("texts.txt", "a text\n")
    done = run_python(
        INTERRUPTED_IMPORT, module, "score", "-m", tiny_bundle, "-c", text, "-r", text
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_errors_have_no_traceback(run_process):
    result = run_process(
        "score", "-m", "no-such-model", "-c", "-", "-r", "no-such-file", stdin=b"one\n"
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(
        b"Error: Cannot read 'no-such-file' (No such file or directory);"
    )
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("arguments", [["models"], ["score", "--help"]])
def test_a_reader_that_goes_away_causes_no_traceback(run_until_first_line, arguments):
    first, stderr, _ = run_until_first_line(*arguments)
    assert first
    assert stderr == b""


@pytest.mark.parametrize("options", [["-s"], ["-s", "--format", "json"]])
def test_a_reader_that_goes_away_early_exits_as_after_sigpipe(
    run_until_first_line, tiny_bundle, write, options
):
    texts = write("texts.txt", "the cat\n" * 10_000)
    first, stderr, status = run_until_first_line(
        "score", "-m", tiny_bundle, "-c", texts, "-r", texts, *options
    )
    assert first.startswith((b"precision\trecall\tf1\n", b'{"segments": ['))
    assert (status, stderr) == (141, b"")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["score", "--help"], ["models"]], ids=" ".join
)
def test_a_reader_that_is_gone_exits_as_after_sigpipe(run_process, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        result = run_process(*arguments, stdout=closed)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported_in_one_line(run_process):
    with Path("/dev/full").open("wb") as full:
        result = run_process("models", stdout=full)
    message = b"Error: Cannot write all of the output (No space left on device).\n"
    assert (result.returncode, result.stderr) == (2, message)
