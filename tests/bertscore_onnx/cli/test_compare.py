"""`bertscore-onnx compare`."""

import json
from contextlib import chdir
from pathlib import Path

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.evaluation import compare

BASE = "the cat sat on the mat\na red house\nit is a dog\n"
OTHER = "a dog sits on the mat\nthe blue house\nit is the dog\n"
REFERENCES = "a dog sits on the mat\nthe blue house is red\nit is a dog\n"


@pytest.fixture
def files(write):
    return "-c", write("base.txt", BASE), write("other.txt", OTHER), "-r", write("references.txt", REFERENCES)


def test_prints_what_python_finds(run, files, tiny_bundle):
    result = run("compare", "-m", tiny_bundle, *files, "--metric", "bertscore", "bleu", "--resamples", "50")
    texts = {"base": BASE.splitlines(), "other": OTHER.splitlines()}
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        expected = compare(
            texts, REFERENCES.splitlines(), scorer=scorer, metrics=["bertscore", "bleu"], num_resamples=50
        )
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(expected.table() + "\n\nSegments on which other and base differ most:\n1  ")
    assert "other      a dog sits on the mat\n" in result.stdout


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_json_has_test_resamples_and_seed_in_its_signature(run, files, test):
    result = run("compare", *files, "--metric", "chrf", "--test", test, "--resamples", 20, "--seed", 3, "--json")
    record = json.loads(result.stdout)
    assert f"|test:{test}|resamples:20|seed:3|" in record["signature"]
    assert [system["name"] for system in record["systems"]] == ["base", "other"]
    assert record["systems"][0]["metrics"]["chrf"]["p"] is None
    assert 0 < record["systems"][1]["metrics"]["chrf"]["p"] <= 1


def test_options_of_metrics_are_in_their_signatures(run, files):
    options = ["--bleu-tokenize", "char", "--chrf-word-order", "2"]
    record = json.loads(run("compare", *files, "--metric", "bleu", "chrf", *options, "--json").stdout)
    assert "tok:char" in record["signatures"]["bleu"]
    assert "nw:2" in record["signatures"]["chrf"]


def test_all_pairs_are_listed(run, files, write):
    third = write("third.txt", REFERENCES)
    result = run("compare", *files, "-c", third, "--metric", "bleu", "--all-pairs", "--json")
    assert [(pair["baseline"], pair["system"]) for pair in json.loads(result.stdout)["pairs"]["bleu"]] == [
        ("base", "other"),
        ("base", "third"),
        ("other", "third"),
    ]


def test_references_of_several_files_are_several_references(run, files, write):
    more = write("more.txt", BASE)
    record = json.loads(run("compare", *files, more, "--metric", "bleu", "--json").stdout)
    assert record["systems"][0]["metrics"]["bleu"]["score"] == pytest.approx(100)
    assert "nrefs:2" in record["signatures"]["bleu"]


def test_a_table_may_hold_each_side(run, write):
    base = write("base.jsonl", "".join(f'{{"candidate": "{text}"}}\n' for text in BASE.splitlines()))
    references = write("r.tsv", "reference\n" + REFERENCES)
    result = run("compare", "-c", base, write("other.txt", OTHER), "-r", references, "--metric", "bleu", "--tsv")
    assert [line.split("\t")[1] for line in result.stdout.splitlines()] == ["system", "base", "other"]


def test_systems_whose_files_are_called_alike_are_called_by_their_paths(run, write, tmp_path):
    for folder, content in (("a", BASE), ("b", OTHER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "out.txt").write_text(content)
    paths = [str(tmp_path / folder / "out.txt") for folder in "ab"]
    result = run("compare", "-c", *paths, "-r", write("r.txt", REFERENCES), "--metric", "bleu", "--json")
    assert [system["name"] for system in json.loads(result.stdout)["systems"]] == paths


def test_a_system_called_like_the_stem_of_another_is_not_taken_for_it(run, write):
    names = ["out.v1", "out.v2", "out.v1.txt"]
    paths = [write(name, content) for name, content in zip(names, (BASE, OTHER, REFERENCES), strict=True)]
    folder = str(Path(paths[0]).parent)
    with chdir(folder):
        result = run("compare", "-c", *names, "-r", write("r.txt", REFERENCES), "--metric", "bleu", "--json")
    systems = json.loads(result.stdout)["systems"]
    assert [system["name"] for system in systems] == names
    assert systems[2]["metrics"]["bleu"]["score"] == pytest.approx(100)


@pytest.mark.slow
def test_json_is_utf_8_whatever_the_locale(run_process, files, write, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    third = write("third.txt", "caf\u00e9 \U0001f38c\nb\nc\n")
    result = run_process("compare", *files, "-c", third, "--metric", "bleu", "--json")
    record = json.loads(result.stdout.decode())
    assert "caf\u00e9 \U0001f38c" in [one["candidates"].get("third") for one in record["segments"]]


def test_a_report_is_written_beside_what_is_printed(run, files, tmp_path):
    report = tmp_path / "report.html"
    result = run("compare", *files, "--metric", "bleu", "--html", report)
    assert result.exit_code == 0
    assert "BLEU" in result.stdout
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir() if "report" in file.name] == ["report.html"]


def test_a_report_that_cannot_be_written_is_told_before_anything_is_scored(run, files, tmp_path):
    result = run("compare", *files, "-m", "not-there", "--html", tmp_path / "absent" / "report.html")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "report.html" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_report_is_written_where_nothing_can_be_printed(run_process, files, tmp_path):
    report = tmp_path / "report.html"
    with Path("/dev/full").open("w") as full:
        result = run_process("compare", *files, "--metric", "bleu", "--json", "--html", report, stdout=full)
    assert result.returncode == 1
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_report_does_not_replace_an_input(run, files):
    result = run("compare", *files, "--metric", "bleu", "--html", files[2])
    assert result.exit_code == 1
    assert "--html" in result.stderr
    assert files[2].read_text() == OTHER


def test_systems_of_different_length_are_named_with_the_first_line_that_lacks_a_partner(run, files, write):
    longer = write("longer.txt", BASE + "one more\n")
    result = run("compare", *files, "-c", longer, "--metric", "bleu")
    assert result.exit_code == 1
    assert "longer.txt has 4 lines" in result.stderr
    assert "line 4 of" in result.stderr


def test_a_system_given_twice_is_refused(run, files):
    result = run("compare", *files, "-c", files[1], "--metric", "bleu")
    assert result.exit_code == 2
    assert "base.txt is given twice" in result.stderr


def test_an_empty_system_is_refused(run, files, write):
    result = run("compare", *files, "-c", write("empty.txt", ""), "--metric", "bleu")
    assert result.exit_code == 1
    assert "empty.txt is empty" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (["--metric", "bluu"], 1, "Did you mean bleu"),
        ([], 2, "name a model"),
        (["--metric", "bleu", "--json", "--tsv"], 2, "only one format"),
        (["--metric", "bleu", "-m", "roberta-large"], 2, "no effect"),
        (["--metric", "bleu", "--idf"], 2, "no effect"),
        (["--metric", "chrf", "--bleu-tokenize", "zh"], 2, "no effect"),
        (["--metric", "bleu", "--bleu-tokenize", "nope"], 1, "'nope'. Its tokenizers are none, zh, 13a"),
        (["--metric", "bleu", "--resamples", "0"], 2, "resamples"),
    ],
)
def test_wrong_options_are_told(run, files, arguments, exit_code, told):
    result = run("compare", *files, *arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert told in result.stderr


def test_one_system_is_no_comparison(run, files):
    result = run("compare", *files[:2], *files[3:], "--metric", "bleu")
    assert result.exit_code == 2
    assert "there is one system" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("package", ["sacrebleu", "tabulate", "jinja2"])
def test_a_package_that_is_missing_is_told_before_a_model_is_looked_for(run_process, files, tmp_path, package):
    arguments = ["-m", tmp_path / "absent", "--metric", "bertscore", "bleu", "--html", tmp_path / "report.html"]
    result = run_process("compare", *files, *arguments, blocked=[package])
    assert result.returncode == 1
    assert f"needs {package}, which is not installed".encode() in result.stderr
    assert b"bertscore-onnx[evaluation]" in result.stderr
