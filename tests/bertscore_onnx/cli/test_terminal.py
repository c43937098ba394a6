"""What commands print: tables, messages, and standard streams that are closed or lack
characters.
"""

import os
import shlex
import subprocess
import sys

import pytest

from tests.support.processes import run_python

posix = pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX closes the streams")


@pytest.fixture
def run_in_shell():
    def run(*arguments, redirections="", **environment):
        command = shlex.join([sys.executable, "-m", "bertscore_onnx", *map(str, arguments)])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **environment,
        }
        shell = ["/bin/sh", "-c", f"{command} {redirections}"]
        return subprocess.run(shell, capture_output=True, env=environment, timeout=120, check=False)

    return run


@posix
@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", [pytest.param("inspect", marks=pytest.mark.full), "score"])
def test_closed_streams_do_not_matter_to_what_is_done(
    run_in_shell, tiny_bundle, write, command, closed
):
    texts = write("texts.txt", "the cat\n")
    arguments = {
        "inspect": ["inspect", tiny_bundle],
        "score": ["score", "-m", tiny_bundle, "-c", texts, "-r", texts],
    }
    result = run_in_shell(*arguments[command], redirections=closed)
    assert (result.returncode, result.stderr) == (0, b"")
    assert bool(result.stdout) == (">&-" not in closed.replace("2>&-", ""))


@posix
def test_closed_streams_are_empty_and_no_error_is_printed_on_standard_output_instead(
    run_in_shell, tiny_bundle, write
):
    result = run_in_shell("inspect", "no-such-bundle", redirections="2>&-")
    assert (result.returncode, result.stdout) == (2, b"")
    arguments = ["score", "-m", tiny_bundle, "-c", "-", "-r", write("references.txt", "the cat\n")]
    result = run_in_shell(*arguments, redirections="<&-")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"Error: Standard input is empty;")


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "BUNDLE"],
        ["models"],
        ["doctor"],
        ["--help"],
        ["score", "--help"],
        ["serve", "--help"],
    ],
)
def test_any_encoding_carries_what_is_printed(run, tiny_bundle, home, arguments):
    result = run(*(tiny_bundle if argument == "BUNDLE" else argument for argument in arguments))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout
    assert result.stdout.isascii()


@posix
def test_what_the_encoding_lacks_is_escaped_in_messages(run_in_shell):
    result = run_in_shell("inspect", "über-model", PYTHONIOENCODING="ascii")
    assert result.returncode == 2
    assert rb"'\xfcber-model'" in result.stderr


@posix
@pytest.mark.parametrize(
    "options", [pytest.param(["--format", "jsonl"], marks=pytest.mark.full), ["--format", "tsv"]]
)
def test_texts_are_written_in_utf_8_whatever_the_encoding(
    run_in_shell, tiny_bundle, write, options
):
    texts = write("texts.txt", "中文 café\n")
    arguments = ["score", "-m", tiny_bundle, "-c", texts, "-r", texts, *options]
    result = run_in_shell(*arguments, PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "中文 café" in result.stdout.decode()


@pytest.mark.slow  # it starts a process
def test_messages_of_several_threads_are_whole_lines():
    program = (
        "from concurrent.futures import ThreadPoolExecutor; from bertscore_onnx.cli.terminal "
        "import echo\n"
        "with ThreadPoolExecutor(4) as pool: list(pool.map(echo, ['abc'] * 20_000))"
    )
    assert run_python(program).stderr == "abc\n" * 20_000
