"""Packages of the extra that are missing are told before anything is computed."""

import pytest

pytestmark = pytest.mark.slow

TABLE = "lang_pair,system,segment,human,m\ncs-en,A,1,90,1\ncs-en,B,1,60,2\n"


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("tabulate", ["--task", "darr", "--score", "m"]),
        ("sacrebleu", ["--task", "darr", "--metric", "bleu", "--json"]),
        ("scipy", ["--task", "hybrid", "--score", "m", "--json"]),
        ("scipy", ["--score", "m", "--json"]),
    ],
)
def test_a_missing_package_is_told(run_process, write, package, arguments):
    result = run_process("meta", write("table.csv", TABLE), *arguments, blocked=(package,))
    assert (result.returncode, result.stdout) == (1, b"")
    message = (
        f"Error: This task needs {package}, which is not installed. Install it with "
        "`pip install 'bertscore-onnx[evaluation]'`.\n"
    )
    assert result.stderr.decode() == message


@pytest.mark.parametrize("task", ["darr", "auc"])
def test_scores_that_are_there_need_no_package(run_process, write, task):
    table = write("table.csv", "label," + TABLE.replace("\ncs-en,A", "\n1,cs-en,A").replace("\ncs-en,B", "\n0,cs-en,B"))
    arguments = ("--task", task, "--score", "m", "--json")
    result = run_process("meta", table, *arguments, blocked=("tabulate", "sacrebleu", "scipy"))
    assert (result.returncode, result.stderr) == (0, b"")
