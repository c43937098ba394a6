"""`bertscore-onnx score`: tables to read, and files to write."""

import contextlib
import csv
import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from bertscore_onnx import BERTScorer

PAIRS = [
    ("the cat sat", "a cat sat", "the dog"),
    ('a "red" house', "the blue house", "a red, red\thouse"),
    ("it", "a", "it"),
]


@pytest.fixture
def table(tmp_path):
    """Write `PAIRS` as a table and return its path."""

    def table(name):
        path = tmp_path / name
        if ".jsonl" in name:
            objects = [{"candidate": candidate, "references": references} for candidate, *references in PAIRS]
            content = "".join(f"{json.dumps(one)}\n" for one in objects)
        else:
            with path.open("w", newline="") as file:
                writer = csv.writer(file, delimiter="," if ".csv" in name else "\t")
                writer.writerows([("candidate", "reference", "other"), *PAIRS])
            content = path.read_text()
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return table


@pytest.fixture
def scores(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        return scorer.score([candidate for candidate, *_ in PAIRS], [references for _, *references in PAIRS])


@pytest.fixture
def columns(table):
    """Options that read all references of a table."""

    def columns(name):
        others = [] if ".jsonl" in name else ["--reference-column", "reference", "other"]
        return ["-c", table(name), *others]

    return columns


NAMES = ["pairs.csv", "pairs.tsv.gz", "pairs.jsonl"]


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_scored_by_their_columns(run, columns, tiny_bundle, scores, name):
    result = json.loads(run("score", "-m", tiny_bundle, *columns(name), "--json", "-s").stdout)
    assert [segment["f1"] for segment in result["segments"]] == scores.F.tolist()
    assert [segment["best_reference"] for segment in result["segments"]] == scores.best_reference.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_tables_come_through_pipes(run, columns, tiny_bundle, scores, name):
    _, path, *others = columns(name)
    options = ["--input-format", name.split(".")[1], *others]
    result = json.loads(run("score", "-m", tiny_bundle, "-c", "-", *options, "--json", stdin=path.read_bytes()).stdout)
    assert result["f1"] == pytest.approx(scores.F.mean(), abs=1e-7)


def test_parquet_is_scored_by_its_columns_also_through_a_pipe(run, tmp_path, tiny_bundle, scores):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"mt": [one for one, *_ in PAIRS], "refs": [references for _, *references in PAIRS]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "pairs.parquet")
    options = ["--candidate-column", "mt", "--reference-column", "refs", "--json", "-s"]
    by_name = run("score", "-m", tiny_bundle, "-c", tmp_path / "pairs.parquet", *options)
    assert [segment["f1"] for segment in json.loads(by_name.stdout)["segments"]] == scores.F.tolist()
    stdin = (tmp_path / "pairs.parquet").read_bytes()
    piped = run("score", "-m", tiny_bundle, "-c", "-", "--input-format", "parquet", *options, stdin=stdin)
    assert piped.stdout == by_name.stdout


def test_candidates_and_references_may_be_in_files_of_different_formats(run, table, write, tiny_bundle):
    texts = write("candidates.txt", "".join(f"{candidate}\n" for candidate, *_ in PAIRS))
    lines, rows = table("pairs.jsonl"), table("pairs.csv")
    expected = run("score", "-m", tiny_bundle, "-c", rows).stdout
    assert run("score", "-m", tiny_bundle, "-c", texts, "-r", rows).stdout == expected
    assert run("score", "-m", tiny_bundle, "-c", lines, "-r", rows).stdout == expected


def test_a_format_is_said_for_candidates_and_references_apart(run, table, write, tiny_bundle):
    references = write("references.txt", "".join(f"{reference}\n" for _, reference, _ in PAIRS))
    options = ["--input-format", "jsonl", "--reference-format", "text"]
    stdin = table("pairs.jsonl").read_text()
    result = run("score", "-m", tiny_bundle, "-c", "-", "-r", references, *options, stdin=stdin)
    assert result.stdout == run("score", "-m", tiny_bundle, "-c", table("pairs.csv")).stdout


def test_json_lines_are_not_scored_as_texts_unless_asked_to(run, write, tiny_bundle):
    lines = '{"text": "the cat"}\n'
    references = write("references.txt", "the cat\n")
    refused = run("score", "-m", tiny_bundle, "-c", "-", "-r", references, stdin=lines)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "Standard input seems to hold JSON lines. Add --input-format jsonl" in refused.stderr
    scored = run("score", "-m", tiny_bundle, "-c", "-", "-r", references, "--input-format", "text", stdin=lines)
    assert scored.exit_code == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-c", "a.txt"], "--ref: give the references, -r FILE. a.txt is read as text"),
        (["-c", "a.txt", "-r", "b.txt", "--candidate-column", "x"], "--candidate-column: it has no effect"),
        (["-c", "a.tsv", "-r", "b.txt", "--reference-column", "x"], "--reference-column: it has no effect"),
        (["-c", "a.jsonl", "--no-header"], "--no-header: it has no effect"),
        (["-c", "a.jsonl", "--no-quotes"], "--no-quotes: it has no effect"),
        (["-c", "a.jsonl", "--reference-format", "text"], "--reference-format: it has no effect without -r"),
        (["-c", "a.jsonl", "--input-format", "xlsx"], "'--input-format'"),
        (["-c", "a.jsonl", "--with-texts"], "--with-texts: it has no effect without pairs"),
        (["-c", "a.jsonl", "--json", "--output-format", "tsv"], "--json: it means --output-format json"),
        (["-c", "a.jsonl", "-o", "b.parquet"], "--output: Cannot write .parquet."),
        (["-c", "a.jsonl", "-o", "b.tsv.gz"], "--output: Cannot write .gz."),
        (["-c", "a.jsonl", "-o", "b.tsv", "--all-layers"], "pairs have the scores of one layer"),
        (["-c", "a.jsonl", "--output-format", "jsonl", "--all-layers"], "pairs have the scores of one layer"),
    ],
)
def test_options_that_do_not_fit_together_are_wrong_usage(run, options, told):
    result = run("score", "-m", "x", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


@pytest.mark.parametrize(
    ("name", "format_"),
    [("out.tsv", "tsv"), ("out.csv", "csv"), ("out.jsonl", "jsonl"), ("out.txt", "tsv"), ("out", "tsv")],
)
def test_pairs_go_to_a_file_and_the_means_to_standard_output(
    run, columns, tiny_bundle, tmp_path, scores, name, format_
):
    inputs = columns("pairs.jsonl")
    result = run("score", "-m", tiny_bundle, *inputs, "-o", tmp_path / name, "--with-texts")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == run("score", "-m", tiny_bundle, *inputs).stdout
    path = tmp_path / name
    read = {"tsv": lambda: pd.read_csv(path, sep="\t"), "csv": lambda: pd.read_csv(path)}
    frame = read.get(format_, lambda: pd.read_json(path, lines=True))()
    assert frame["f1"].tolist() == pytest.approx(scores.F.tolist(), abs=1e-6)
    assert frame["candidate"].tolist() == [candidate for candidate, *_ in PAIRS]
    best = [references[position] for (_, *references), position in zip(PAIRS, scores.best_reference, strict=True)]
    references = frame["references"].tolist() if format_ == "jsonl" else frame["reference"].tolist()
    assert references == ([list(references) for _, *references in PAIRS] if format_ == "jsonl" else best)


def test_json_in_a_file_has_pairs_and_means(run, columns, tiny_bundle, tmp_path):
    inputs = columns("pairs.jsonl")
    result = run("score", "-m", tiny_bundle, *inputs, "-o", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads(
        run("score", "-m", tiny_bundle, *inputs, "--json", "-s").stdout
    )
    assert result.stdout == run("score", "-m", tiny_bundle, *inputs).stdout


def test_json_lines_are_whole_objects(run, columns, tiny_bundle, scores):
    result = run("score", "-m", tiny_bundle, *columns("pairs.tsv"), "--output-format", "jsonl")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert objects == [
        {"precision": precision, "recall": recall, "f1": f1, "best_reference": best}
        for precision, recall, f1, best in zip(*map(list, scores), scores.best_reference.tolist(), strict=True)
    ]
    assert result.stderr.startswith("bertscore-onnx|model:tiny-bert|")


@pytest.mark.parametrize("options", [["--idf"], []])
def test_texts_stand_beside_their_scores_over_many_chunks(run, write, tiny_bundle, monkeypatch, options):
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", 3)
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", 2)
    texts = [f"the cat {'sat ' * number}on" for number in range(20)]
    path = write("texts.txt", "".join(f"{text}\n" for text in texts))
    for candidates, stdin in ((path, None), ("-", path.read_text())):
        arguments = ["-c", candidates, "-r", path, *options, "--output-format", "jsonl", "--with-texts"]
        lines = run("score", "-m", tiny_bundle, *arguments, stdin=stdin).stdout.splitlines()
        assert [json.loads(line)["candidate"] for line in lines] == texts


def test_a_file_that_cannot_be_written_is_told_before_scoring(run, columns, tiny_bundle, tmp_path):
    result = run("score", "-m", "no-such-model", *columns("pairs.tsv"), "-o", tmp_path / "absent" / "out.tsv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(
        f"Error: Cannot write '{tmp_path / 'absent' / 'out.tsv'}' (No such file or directory)"
    )


def test_a_file_is_kept_where_nothing_is_scored(run, columns, tmp_path, home):
    kept, absent = tmp_path / "out.tsv", tmp_path / "new.tsv"
    kept.write_text("of yesterday")
    for path in (kept, absent):
        assert run("score", "-m", "no-such-model", *columns("pairs.tsv"), "-o", path).exit_code == 1
    assert kept.read_text() == "of yesterday"
    assert not absent.exists()


def test_a_file_of_a_bundle_is_not_written(run, columns, tiny_bundle, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, bundle)
    (tmp_path / "link.json").symlink_to(bundle / "bertscore.json")
    result = run("score", "-m", bundle, *columns("pairs.tsv"), "-o", tmp_path / "link.json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is in the folder of a bundle" in result.stderr
    assert (bundle / "bertscore.json").read_bytes() == (tiny_bundle / "bertscore.json").read_bytes()


def test_a_file_that_is_read_is_not_written(run, columns, tiny_bundle, tmp_path):
    inputs = columns("pairs.tsv")
    before = inputs[1].read_bytes()
    os.link(inputs[1], tmp_path / "other.tsv")
    result = run("score", "-m", tiny_bundle, *inputs, "-o", tmp_path / "other.tsv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is one of the files to read" in result.stderr
    assert inputs[1].read_bytes() == before


@pytest.mark.filterwarnings("default::UserWarning")
def test_quiet_leaves_errors_alone(run, write, tiny_bundle, tmp_path):
    texts = write("texts.txt", "the cat\n\n")
    arguments = ["score", "-m", tiny_bundle, "-c", texts, "-r", texts, "-s"]
    assert "Warning: 1 pair scores 0" in run(*arguments).stderr
    result = run(*arguments, "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == run(*arguments).stdout
    assert run(*arguments, "--quiet", "--device", "tpu").stderr.startswith("Error: --device is 'tpu'")


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl"])
def test_an_interrupted_run_leaves_whole_lines_in_its_file(start_scoring, write, tmp_path, name):
    texts = "".join(f"the cat {'sat ' * number}\n" for number in range(30))
    process = start_scoring("-r", write("references.txt", texts), "-o", tmp_path / name, "--with-texts")
    process.stdin.write("".join(texts.splitlines(keepends=True)[:20]).encode())
    path = Path(tmp_path / name)
    lines = 0
    while lines < 12:
        assert process.poll() is None
        with contextlib.suppress(FileNotFoundError):  # it is made for a moment, to see that it can be
            lines = path.read_bytes().count(b"\n")
    process.send_signal(subprocess.signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.startswith(b"Interrupted; ")
    content = path.read_text()
    assert content.endswith("\n")
    if name == "out.jsonl":
        assert [json.loads(line)["best_reference"] for line in content.splitlines()] == [0] * content.count("\n")
    else:
        assert {line.count("\t") for line in content.splitlines()} == {4}
