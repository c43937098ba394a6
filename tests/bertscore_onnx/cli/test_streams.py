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
@pytest.mark.parametrize("command", ["inspect", "score"])
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
def test_what_the_encoding_lacks_is_escaped(run_in_shell, tiny_bundle):
    result = run_in_shell("inspect", tiny_bundle, PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, b"")
    assert rb"input_ids, attention_mask \u2192 token_embeddings" in result.stdout
