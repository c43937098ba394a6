"""`bertscore-onnx score`: tables to read, and files to write."""

import contextlib
import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from tests.support.command_line import Pipe

PAIRS = [
    ("the cat sat", "a cat sat", "the dog"),
    ('a "red" house', "the blue house", "a red, red\thouse"),
    ("it", "a", "it"),
]


@pytest.fixture
def table(tmp_path):
    """Write `PAIRS` as a table and return its path; Parquet and JSON lines have a list of
    references.
    """

    def table(name):
        path = tmp_path / name
        frame = pd.DataFrame(PAIRS, columns=["candidate", "reference", "other"])
        lists = frame[["candidate"]].assign(references=[references for _, *references in PAIRS])
        if name.endswith(".parquet"):
            lists.rename(columns={"candidate": "mt"}).to_parquet(path)
        elif name.endswith(".jsonl"):
            lists.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, sep="," if ".csv" in name else "\t", index=False)
        return path

    return table


@pytest.fixture
def scores(scorer):
    return scorer.score(
        [candidate for candidate, *_ in PAIRS], [references for _, *references in PAIRS]
    )


@pytest.fixture
def columns(table):
    def columns(name):
        of_format = {"jsonl": [], "parquet": ["--columns", "candidate=mt"]}
        return [
            "-c",
            table(name),
            *of_format.get(name.split(".")[1], ["--columns", "reference=reference+other"]),
        ]

    return columns


def test_candidates_and_references_may_be_in_files_of_different_formats(run_score, table, write):
    texts = write("candidates.txt", "".join(f"{candidate}\n" for candidate, *_ in PAIRS))
    references = write("references.txt", "".join(f"{reference}\n" for _, reference, _ in PAIRS))
    objects, rows = table("pairs.jsonl"), table("pairs.csv")
    formats = ["--input-format", "jsonl", "text"]
    expected = run_score("-c", rows).stdout
    assert expected
    assert run_score("-c", texts, "-r", rows).stdout == expected
    assert run_score("-c", objects, "-r", rows).stdout == expected
    arguments = ["-c", "-", "-r", references, *formats]
    assert run_score(*arguments, stdin=objects.read_text()).stdout == expected


def test_json_lines_are_not_scored_as_texts_unless_asked_to(run, refused, write, tiny_bundle):
    objects = '{"text": "the cat"}\n'
    arguments = ["score", "-m", tiny_bundle, "-c", "-", "-r", write("references.txt", "the cat\n")]
    stderr = refused(*arguments, stdin=objects)
    assert "Standard input seems to hold JSON lines. Add --input-format jsonl" in stderr
    assert run(*arguments, "--input-format", "text", stdin=objects).exit_code == 0


@pytest.mark.parametrize("name", ["out.txt", "out"])
def test_a_file_of_another_suffix_is_tsv(run_score, columns, tmp_path, name):
    run_score(*columns("pairs.jsonl"), "-o", tmp_path / name)
    assert (tmp_path / name).read_text().startswith("candidate\treferences\tprecision\t")


def test_texts_of_files_are_columns_with_the_best_reference(run_score, write, tmp_path):
    paths = [
        write(f"{side}.txt", "".join(f"{text}\n" for text in texts))
        for side, texts in enumerate(zip(*PAIRS, strict=True))
    ]
    run_score("-c", paths[0], "-r", *paths[1:], "-o", tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv")
    assert list(frame) == ["candidate", "reference", "precision", "recall", "f1", "best_reference"]
    best = [
        references[position]
        for (_, *references), position in zip(PAIRS, frame["best_reference"], strict=True)
    ]
    assert frame["reference"].tolist() == best


def test_json_in_a_file_has_pairs_and_means(run_score, columns, tmp_path):
    inputs = columns("pairs.jsonl")
    result = run_score(*inputs, "-o", tmp_path / "out.json")
    written_object = json.loads((tmp_path / "out.json").read_text())
    expected = json.loads(run_score(*inputs, "--format", "json", "-s").stdout)
    for segment, (candidate, *references) in zip(expected["segments"], PAIRS, strict=True):
        segment |= {"candidate": candidate, "references": references}
    assert written_object == expected
    assert result.stdout == run_score(*inputs).stdout


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("more", [[], ["a house"]])
def test_a_fourth_name_adds_a_column_of_truncated_texts(run_score, write, tmp_path, more):
    long = "the cat sat on the mat " * 20
    rows = [("a cat", ["the cat"]), (long, ["the cat"]), ("a dog", [long]), ("a dog", ["a"])] * 3
    objects = [
        {"candidate": candidate, "references": references + more} for candidate, references in rows
    ]
    arguments = ["-c", write("in.jsonl", "\n".join(map(json.dumps, objects)))]
    result = run_score(
        *arguments,
        "--columns",
        "precision=p,recall=r,f1=f,truncated=cut",
        "-o",
        tmp_path / "out.csv",
    )
    assert "longer than 32 tokens and truncated" in result.stderr
    frame = pd.read_csv(tmp_path / "out.csv")
    assert list(frame) == [
        "candidate",
        "references",
        "p",
        "r",
        "f",
        "cut",
        "unknown",
        *["best_reference"] * len(more),
    ]
    assert frame["cut"].tolist() == [False, True, True, False] * 3
    assert json.loads(run_score(*arguments, "--format", "json").stdout)["truncated"] == 6


def test_json_lines_are_whole_objects(run_score, columns, scores):
    result = run_score(*columns("pairs.tsv"), "--format", "jsonl", "-s")
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(one.values()) for one in objects] == [
        [*score, score.best_reference] for score in scores.each()
    ]
    assert list(objects[0]) == ["precision", "recall", "f1", "best_reference"]
    assert result.stderr.startswith("bertscore-onnx|model:tiny-bert|")


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("options", [["--idf"], []])
def test_texts_stand_beside_their_scores_over_many_chunks(run_score, write, options):
    texts = [f"the cat {'sat ' * number}on" for number in range(20)]
    path = write("texts.txt", "".join(f"{text}\n" for text in texts))
    for candidates, stdin in ((path, None), ("-", path.read_text())):
        arguments = ["-c", candidates, "-r", path, *options, "--format", "jsonl"]
        scored = run_score(*arguments, stdin=stdin).stdout.splitlines()
        assert [json.loads(line)["candidate"] for line in scored] == texts


def test_a_file_is_opened_before_scoring_and_kept_where_nothing_is_scored(
    refused, columns, tmp_path, home
):
    kept = tmp_path / "kept.tsv"
    kept.write_text("of yesterday")
    arguments = ["score", "-m", "no-such-model", *columns("pairs.tsv"), "-o"]
    absent = tmp_path / "absent" / "out.tsv"
    assert refused(*arguments, absent).startswith(
        f"Error: Cannot write '{absent}' (No such file or directory)"
    )
    for path in (kept, tmp_path / "new.tsv"):
        assert "'no-such-model'" in refused(*arguments, path)
    assert kept.read_text() == "of yesterday"
    assert not (tmp_path / "new.tsv").exists()


def test_neither_a_bundle_nor_a_file_that_is_read_is_written_over(
    refused, columns, tiny_bundle, tmp_path
):
    bundle = shutil.copytree(tiny_bundle, tmp_path / "bundle")
    inputs = columns("pairs.tsv")
    (tmp_path / "link.json").symlink_to(bundle / "bertscore.json")
    os.link(inputs[1], tmp_path / "other.tsv")
    before = inputs[1].read_bytes()
    for name, reason in (
        ("link.json", "is in the folder of a bundle"),
        ("other.tsv", "is one of the files to read"),
    ):
        assert reason in refused("score", "-m", bundle, *inputs, "-o", tmp_path / name)
    assert (bundle / "bertscore.json").read_bytes() == (tiny_bundle / "bertscore.json").read_bytes()
    assert inputs[1].read_bytes() == before


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl"])
def test_an_interrupted_run_leaves_whole_lines_in_its_file(start_scoring, write, tmp_path, name):
    texts = "".join(f"the cat {'sat ' * number}\n" for number in range(30))
    process = start_scoring("-r", write("references.txt", texts), "-o", tmp_path / name)
    process.stdin.write("".join(texts.splitlines(keepends=True)[:20]).encode())
    Path(tmp_path / name).write_text("of yesterday")
    path = Path(tmp_path / f"{name}.part1")
    written_lines = 0
    while written_lines < 12:
        assert process.poll() is None
        with contextlib.suppress(FileNotFoundError):
            written_lines = path.read_bytes().count(b"\n")
    process.send_signal(subprocess.signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"The rows so far are in {path}; {tmp_path / name} is as it was." in stderr.decode()
    assert b"\nInterrupted; " in stderr
    assert (tmp_path / name).read_text() == "of yesterday"
    content = path.read_text()
    assert content.endswith("\n")
    if name == "out.jsonl":
        assert {tuple(json.loads(line)) for line in content.splitlines()} == {
            ("candidate", "references", "precision", "recall", "f1")
        }
    else:
        assert {line.count("\t") for line in content.splitlines()} == {4}


@pytest.mark.parametrize("name", ["out.csv", "out.json", "out.parquet"])
def test_the_old_file_stays_until_the_new_one_is_whole(
    run, run_score, write, tmp_path, stdin_is_a_pipe, name
):
    (tmp_path / name).write_text("of yesterday")
    rows = "candidate,reference\n" + "a cat,the cat\n" * 5
    options = ["-c", "-", "--input-format", "csv", "-o", tmp_path / name]
    for number in (1, 2):
        result = run_score(*options, stdin=f"{rows}alone\n".encode())
        assert result.exit_code == 2
        assert (
            f"{tmp_path / name}.part{number}; {tmp_path / name} is as it was. `score` cannot"
            in result.stderr
        )
        assert (tmp_path / name).read_text() == "of yesterday"
        assert (tmp_path / f"{name}.part{number}").stat().st_size
    assert f"Warning: {tmp_path / name}.part1 has rows of a run" in result.stderr
    (tmp_path / name).chmod(0o604)
    assert run_score(*options, stdin=rows.encode()).exit_code == 0
    assert (tmp_path / name).read_bytes() != b"of yesterday"
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o604
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.part1", f"{name}.part2"}


def test_a_run_without_rows_leaves_nothing_beside(run_score, tmp_path, stdin_is_a_pipe):
    options = ["-c", "-", "--input-format", "csv", "-o", tmp_path / "out.csv"]
    assert run_score(*options, stdin=b"candidate,reference\nalone\n").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
@pytest.mark.parametrize("piped", [False, True])
def test_all_rows_have_the_best_reference_wherever_the_row_with_several_references_is(
    run_score, write, tmp_path, name, piped, monkeypatch
):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    if piped:
        monkeypatch.setattr(
            "typer.testing.make_input_stream", lambda content, charset: Pipe(content)
        )
    one, several = (
        {"candidate": "a cat", "references": ["a dog", "a cat"][:number]} for number in (1, 2)
    )
    for rows in ([several] + [one] * 19, [one] * 19 + [several]):
        table = write("in.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
        source = ["-c", "-", "--input-format", "jsonl"] if piped else ["-c", table]
        result = run_score(*source, "-o", tmp_path / name, stdin=table.read_bytes())
        assert result.exit_code == 0, result.stderr
        read = {
            ".csv": pd.read_csv,
            ".parquet": pd.read_parquet,
            ".jsonl": partial(pd.read_json, lines=True),
        }
        best = read[(tmp_path / name).suffix](tmp_path / name)["best_reference"]
        assert best.tolist() == [len(row["references"]) - 1 for row in rows]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="needs names of descriptors")
def test_names_of_open_files_and_of_standard_output_are_written_to_themselves(
    run_score, columns, tmp_path
):
    arguments = [*columns("pairs.tsv"), "-o"]
    printed = run_score(*arguments, "-")
    for name in ("/dev/stdout", "/dev/fd/1"):
        result = run_score(*arguments, name)
        assert (result.stdout, result.stderr) == (printed.stdout, printed.stderr)
    reading, writing = os.pipe()
    with (
        os.fdopen(reading, encoding="utf-8", newline="") as pipe,
        (tmp_path / "log").open("w+b", buffering=0) as log,
    ):
        log.write(b"before\n")
        for descriptor in (writing, log.fileno()):
            result = run_score(*arguments, f"/dev/fd/{descriptor}", "--format", "tsv")
            assert (result.exit_code, result.stdout) == (0, printed.stderr)
        log.write(b"after\n")
        os.close(writing)
        assert pipe.read() == printed.stdout
    assert (tmp_path / "log").read_bytes().decode() == f"before\n{printed.stdout}after\n"
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []
