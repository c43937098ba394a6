"""`python -m bertscore_onnx.compat` runs a program unchanged, as `python -m pdb` does."""

import subprocess
import sys

import pytest

from bertscore_onnx.compat.__main__ import USAGE, main

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
from bert_score import BERTScorer, score

P, R, F1 = score(["a cat sat"], ["the cat sat"], model_type=sys.argv[1])
print(F1.mean().item(), F1.cpu().numpy()[0], sys.argv[2:], __name__, "torch" in sys.modules)
sys.exit(3)
"""


def run(*arguments, cwd=None, flags=()):
    command = [sys.executable, *flags, "-m", "bertscore_onnx.compat", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.fixture
def program(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "neighbour.py").write_text("")
    (folder / "torch.py").write_text(
        "raise ModuleNotFoundError('as where it is not installed', name='torch')"
    )
    (folder / "program.py").write_text("import neighbour\n" + PROGRAM)
    return folder / "program.py"


def test_a_script_with_its_arguments(program, tiny_bundle, tmp_path):
    done = run(program, tiny_bundle, "--idf", "-m", cwd=tmp_path)
    assert done.stdout.split(maxsplit=2)[2] == "['--idf', '-m'] __main__ False\n", done.stderr
    assert 0 < float(done.stdout.split()[0]) <= 1
    assert done.returncode == 3


@pytest.mark.parametrize("flag", [["-m"], []])
def test_a_module_with_its_arguments(program, tiny_bundle, flag):
    done = run(*flag, "program", tiny_bundle, "one", cwd=program.parent)
    assert done.stdout.split(maxsplit=2)[2] == "['one'] __main__ False\n", done.stderr
    assert done.returncode == 3


@pytest.mark.parametrize(
    "method", ["spawn", *(["forkserver", "fork"] if sys.platform == "linux" else [])]
)
def test_the_processes_of_a_pool_have_it(tmp_path, tiny_bundle, method):
    (tmp_path / "program.py").write_text("""
import multiprocessing, sys

def score(text):
    import bert_score
    return bert_score.score([text], ["the cat sat"], model_type=sys.argv[1])[2].item(), bert_score.__name__

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[2]).Pool(1) as pool:
        print(pool.map(score, ["the cat sat"]))
""")
    done = run("program.py", tiny_bundle, method, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "'bertscore_onnx.compat.bert_score'" in done.stdout


def test_an_error_of_the_program_is_its_own(tmp_path):
    (tmp_path / "fails.py").write_text("raise ValueError('of the program')")
    done = run("fails.py", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: of the program\n")


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        *((arguments, USAGE) for arguments in ([], ["-x"], ["-m"])),
        (
            ["nothing of this name"],
            "'nothing of this name' is neither a file nor a module; expected a Python program",
        ),
        (
            ["-m", "nothing.at.all"],
            "'nothing.at.all' is neither a file nor a module; expected a Python program",
        ),
        (
            ["bert-score", "-c", "a"],
            "'bert-score' is neither a file nor a module; use `bertscore-onnx score` in its",
        ),
        (
            ["bert-score-show", "-c", "a"],
            "'bert-score-show' is neither a file nor a module; use `bertscore-onnx show`",
        ),
    ],
)
def test_what_is_no_program_is_answered_with_the_usage(
    monkeypatch, capsys, tmp_path, arguments, first
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["compat", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert printed.err.startswith(first)
    assert printed.err.endswith(f"{USAGE}\n")


def test_help_is_the_usage(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compat", "--help"])
    main()
    assert capsys.readouterr() == (f"{USAGE}\n", "")


def test_the_folder_of_the_script_is_not_searched_in_safe_mode(program, tiny_bundle, tmp_path):
    done = run(program, tiny_bundle, cwd=tmp_path, flags=["-P"])
    assert "No module named 'neighbour'" in done.stderr


@pytest.mark.full
def test_bert_scores_own_command_draws_with_the_stand_in(tiny_bundle, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("bert_score_cli")
    options = (
        "-m",
        tiny_bundle,
        "-l",
        "2",
        "-c",
        "a cat sat",
        "-r",
        "the cat sat",
        "-f",
        tmp_path / "match.png",
    )
    done = run("bert_score_cli.visualize", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "match.png").read_bytes().startswith(b"\x89PNG")
