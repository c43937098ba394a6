"""Standard streams that are closed, or cannot encode everything: no command ends in a traceback."""

import os
import shlex
import subprocess
import sys

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX closes the streams")


@pytest.fixture
def run_in_shell():
    """Run a command as a line of a shell, followed by redirections."""

    def run(*arguments, redirections="", **environment):
        command = shlex.join([sys.executable, "-m", "bertscore_onnx", *map(str, arguments)])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
        shell = ["/bin/sh", "-c", f"{command} {redirections}"]
        return subprocess.run(shell, capture_output=True, env=environment, timeout=120, check=False)

    return run


@posix
@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", [pytest.param("inspect", marks=pytest.mark.full), "score"])
def test_closed_streams_do_not_matter_to_what_is_done(run_in_shell, tiny_bundle, write, command, closed):
    texts = write("texts.txt", "the cat\n")
    arguments = {"inspect": ["inspect", tiny_bundle], "score": ["score", "-m", tiny_bundle, "-c", texts, "-r", texts]}
    result = run_in_shell(*arguments[command], redirections=closed)
    assert (result.returncode, result.stderr) == (0, b"")
    assert bool(result.stdout) == (">&-" not in closed.replace("2>&-", ""))


@posix
def test_errors_are_not_told_on_standard_output_instead(run_in_shell):
    result = run_in_shell("inspect", "no-such-bundle", redirections="2>&-")
    assert (result.returncode, result.stdout) == (1, b"")


@posix
def test_a_closed_standard_input_is_empty(run_in_shell, tiny_bundle, write):
    arguments = ["score", "-m", tiny_bundle, "-c", "-", "-r", write("references.txt", "the cat\n")]
    result = run_in_shell(*arguments, redirections="<&-")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr == b"Error: Standard input is empty; expected texts, one a line.\n"


@posix
@pytest.mark.parametrize("encoding", [pytest.param("cp1252", marks=pytest.mark.full), "ascii"])
@pytest.mark.parametrize(
    "arguments", [["inspect", "BUNDLE"], ["models"], ["doctor"], ["--help"], ["score", "--help"], ["serve", "--help"]]
)
def test_any_encoding_carries_what_is_printed(run_in_shell, tiny_bundle, home, arguments, encoding):
    arguments = [tiny_bundle if argument == "BUNDLE" else argument for argument in arguments]
    result = run_in_shell(*arguments, PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"\\" not in result.stdout
    assert result.stdout


@posix
def test_what_the_encoding_lacks_is_escaped_in_messages(run_in_shell):
    result = run_in_shell("inspect", "über-model", PYTHONIOENCODING="ascii")
    assert result.returncode == 1
    assert rb"'\xfcber-model'" in result.stderr


@posix
@pytest.mark.parametrize("options", [["--output-format", "jsonl"], ["-s"]])
def test_texts_are_written_in_utf_8_whatever_the_encoding(run_in_shell, tiny_bundle, write, options):
    texts = write("texts.txt", "中文 café\n")
    arguments = ["score", "-m", tiny_bundle, "-c", texts, "-r", texts, "--with-texts", *options]
    result = run_in_shell(*arguments, PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "中文 café" in result.stdout.decode()


def test_messages_of_several_threads_are_whole_lines():
    program = (
        "from concurrent.futures import ThreadPoolExecutor; from bertscore_onnx.cli.messages import tell\n"
        "with ThreadPoolExecutor(4) as pool: list(pool.map(tell, ['abc'] * 20_000))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert result.stderr == "abc\n" * 20_000
