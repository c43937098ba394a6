"""`show`: in the terminal, and as files."""

import os
import pty
import subprocess
import sys

import pytest

from bertscore_onnx import BERTScorer

PAIR = ("-c", "the cat sat", "-r", "a dog sat on it")


@pytest.fixture
def scorer(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        yield scorer


def test_a_pair_is_shown_with_the_score_of_score(run, tiny_bundle, scorer):
    result = run("show", "-m", tiny_bundle, *PAIR)
    [score] = scorer.score(["the cat sat"], ["a dog sat on it"]).each()
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"
    assert [line.split()[0] for line in lines[3:6]] == ["the", "cat", "sat"]
    assert lines[-1] == f"{scorer.model_type}, layer {scorer.num_layers}; idf: no; rescale: no"
    assert "\x1b" not in result.stdout


def test_of_several_references_the_best_is_named(run, tiny_bundle, scorer):
    references = ["a dog", "the cat sat", "it"]
    result = run("show", "-m", tiny_bundle, "-c", "the cat sat", "-r", *references)
    [score] = scorer.score(["the cat sat"], [references]).each()
    lines = result.stdout.splitlines()
    assert lines[0] == "Reference 2 of 3 is the best match."
    assert [line.split()[0] for line in lines[3:7]] == ["1", "2", "3", "best"]
    assert lines[6].split()[1:] == [f"{value:.3f}" for value in score]
    assert lines[8] == "P 1.000   R 1.000   F 1.000"


def test_idf_weights_come_from_a_file(run, tiny_bundle, tmp_path):
    sentences = tmp_path / "references.txt"
    sentences.write_text("the cat sat\nthe dog\n", encoding="utf-8")
    result = run("show", "-m", tiny_bundle, *PAIR, "--idf-sents", sentences)
    with BERTScorer(tiny_bundle, idf=True, idf_sents=["the cat sat", "the dog"]) as scorer:
        [score] = scorer.score(["the cat sat"], ["a dog sat on it"]).each()
        name = scorer.signature.idf
    assert result.stdout.splitlines()[0] == f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"
    rows = {line.split()[0]: line.split()[-1] for line in result.stdout.splitlines()[3:6]}
    assert rows == {"the": "0.00", "cat": "0.41", "sat": "0.41"}
    assert f"; idf: {name}; rescale: no" in result.stdout


def test_a_layer_of_all_layers_is_shown(run, all_layers_bundle):
    with BERTScorer(all_layers_bundle, all_layers=True) as scorer:
        scores = scorer.score(["the cat sat"], ["a dog sat on it"])
    result = run("show", "-m", all_layers_bundle, *PAIR, "--all-layers", "-l", "1")
    assert result.stdout.splitlines()[0].endswith(f"F {scores.F[1, 0]:.3f}")
    assert ", layer 1; " in result.stdout
    result = run("show", "-m", all_layers_bundle, *PAIR, "--all-layers")
    assert result.exit_code == 1
    assert "Matches are those of one layer" in result.stderr
    assert "--num-layers" in result.stderr


@pytest.mark.parametrize(("name", "start"), [("a.html", b"<!doctype"), ("a.SVG", b"<?xml"), ("a.png", b"\x89PNG")])
def test_a_file_is_written_whole(run, tiny_bundle, tmp_path, name, start):
    if not name.endswith("html"):
        pytest.importorskip("matplotlib")
    result = run("show", "-m", tiny_bundle, *PAIR, "-o", tmp_path / name)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.docx", "a", "svg", "a.html.gz"])
def test_an_unknown_suffix_is_wrong_usage_before_a_model_is_loaded(run, name):
    result = run("show", "-m", "/no/such/bundle", *PAIR, "-o", name)
    assert result.exit_code == 2
    assert f"Cannot write {name}; expected a name that ends in .html, .svg or .png." in result.stderr


def test_a_place_that_cannot_be_written_is_told_before_a_model_is_loaded(run, tmp_path):
    result = run("show", "-m", "/no/such/bundle", *PAIR, "-o", tmp_path / "missing" / "a.html")
    assert result.exit_code == 1
    assert "Cannot write" in result.stderr


@pytest.mark.slow
def test_without_matplotlib_a_drawing_names_the_extra_and_a_page_works(run_process, tiny_bundle, tmp_path):
    done = run_process("show", "-m", "/no/such/bundle", *PAIR, "-o", tmp_path / "a.svg", blocked=("matplotlib",))
    assert done.returncode == 1
    assert b"bertscore-onnx[plot]" in done.stderr
    done = run_process("show", "-m", tiny_bundle, *PAIR, "-o", tmp_path / "a.html", blocked=("matplotlib", "torch"))
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-m", "x", "-c", "a"), "--ref"),
    ],
)
def test_wrong_usage(run, options, message):
    result = run("show", *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_missing_file_of_references_is_told_before_a_model_is_loaded(run):
    result = run("show", "-m", "/no/such/bundle", *PAIR, "--idf-sents", "missing.txt")
    assert result.exit_code == 1
    assert "missing.txt" in result.stderr


def test_the_name_of_a_file_is_a_text_with_a_note(run, tiny_bundle, tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("the cat\n", encoding="utf-8")
    result = run("show", "-m", tiny_bundle, "-c", file, "-r", "the cat")
    assert result.exit_code == 0
    assert f"Note: {file} is shown as a text." in result.stderr


def test_a_text_that_was_cut_is_told(run, tiny_bundle):
    result = run("show", "-m", tiny_bundle, "-c", "cat " * 1000, "-r", "the cat")
    assert result.exit_code == 0
    assert "Warning: A text is longer than" in result.stderr


def test_an_empty_text_scores_0(run, tiny_bundle):
    result = run("show", "-m", tiny_bundle, "-c", "", "-r", "cat")
    assert result.exit_code == 0
    assert result.stdout.startswith("P 0.000   R 0.000   F 0.000\n")


def test_options_of_bert_score_show_are_known(run, tiny_bundle, tmp_path):
    options = ("--num_layers", "2", "--baseline_path", tmp_path / "b.tsv", "--rescale_with_baseline", "--file")
    (tmp_path / "b.tsv").write_text("LAYER,P,R,F\n0,0,0,0\n1,0,0,0\n2,0.1,0.2,0.3\n", encoding="utf-8")
    result = run("show", "--model", tiny_bundle, *PAIR, *options, tmp_path / "a.html")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "|rescale:file-" in (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "utf-16"])
def test_any_encoding_of_standard_output_will_do(tiny_bundle, encoding):
    command = [
        sys.executable,
        "-m",
        "bertscore_onnx",
        "show",
        "-m",
        str(tiny_bundle),
        "-c",
        "東京 😀",
        "-r",
        "اليوم é",
        "東",
    ]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": encoding}, timeout=60)
    assert done.returncode == 0
    assert done.stdout.decode(encoding).startswith("Reference 1 of 2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colours_unless_it_wants_none(tiny_bundle, settings, is_coloured):
    shown = in_terminal("show", "-m", str(tiny_bundle), *PAIR, COLUMNS="70", **settings)
    assert (b"\x1b[38;5;" in shown) == is_coloured
    assert b"candidate" in shown


def in_terminal(*arguments, **settings):
    """Run a command on a terminal of its own, and return what it shows."""
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | settings
    command = [sys.executable, "-m", "bertscore_onnx", *arguments]
    process = subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave, env=environment)
    os.close(slave)
    shown = b""
    while True:
        try:
            if not (part := os.read(master, 65536)):
                break
        except OSError:  # the other end was closed
            break
        shown += part
    os.close(master)
    assert process.wait(60) == 0
    return shown


def test_weights_are_shown_where_all_are_equal(run, tiny_bundle, tmp_path):
    sentences = tmp_path / "references.txt"
    sentences.write_text("the cat sat\nthe dog\n", encoding="utf-8")
    lines = run("show", "-m", tiny_bundle, "-c", "cat", "-r", "sat", "--idf-sents", sentences).stdout.splitlines()
    assert lines[2].endswith("weight")
    assert lines[3].split()[-1] == "0.41"


def test_a_second_candidate_is_refused(run, tiny_bundle):
    for words in (["-c", "a dog", "-c", "the cat"], ["-c", "a dog", "the cat"]):
        result = run("show", "-m", tiny_bundle, *words, "-r", "it")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "there are 2 candidates, 'a dog', 'the cat'; expected one" in " ".join(result.stderr.split())
