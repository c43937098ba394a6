"""`bertscore-onnx batch`: what it prints, and what it takes."""

import json
from types import SimpleNamespace

import pytest

from bertscore_onnx_service.jobs.job import PartWriter

TABLE = "id,candidate,reference\n1,the cat sat,a cat sat\n2,a house,the red house\n3,it,a\n"


@pytest.fixture
def batch(run, write, tmp_path, tiny_bundle):
    path = write("pairs.csv", TABLE)

    def batch(*options, inputs=(path,), model=tiny_bundle):
        return run(
            "batch",
            "-m",
            model,
            "--device",
            "cpu",
            "-i",
            *inputs,
            "-o",
            tmp_path / "scores",
            *options,
        )

    return batch


def test_it_prints_rows_failures_and_means_with_the_signature(batch, scorer, tmp_path):
    result = batch()
    f1 = scorer.score(
        ["the cat sat", "a house", "it"], ["a cat sat", "the red house", "a"]
    ).F.mean()
    first, second = result.stdout.splitlines()
    assert first == f"{tmp_path / 'scores'}: 3 rows in 1 part; 0 without scores"
    assert second.startswith(f"{scorer.hash} P: 0.")
    assert second.endswith(f" F1: {f1:.6f}")


def test_as_json_the_summary_is_one_object(batch, scorer, tmp_path):
    summary = json.loads(batch("--format", "json").stdout)
    assert (summary["signature"], summary["output"]) == (scorer.hash, str(tmp_path / "scores"))
    assert (summary["rows"], summary["failures"], summary["parts"], summary["parts_before"]) == (
        3,
        0,
        1,
        0,
    )
    assert set(summary) > {"precision", "recall", "f1"}


def test_several_inputs_and_columns_follow_one_option(batch, write, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    batch("--keep", "id", "reference", inputs=[write("a.csv", TABLE), write("b.csv", TABLE)])
    parts = sorted((tmp_path / "scores").glob("part-*"))
    assert [pq.read_schema(part).names[:3] for part in parts] == [
        ["id", "reference", "precision"]
    ] * 2


@pytest.mark.filterwarnings("default::UserWarning")
def test_score_names_rename_and_add_truncated_texts(batch, write, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    long = "the cat sat on the mat " * 20
    rows = [
        ("the cat", "a cat", False),
        (long, "a cat", True),
        ("a", long, True),
        ("", "the dog", False),
    ] * 3
    table = "candidate,reference\n" + "".join(
        f"{candidate},{reference}\n" for candidate, reference, _ in rows
    )
    options = ("--part-rows", 5, "--columns", "precision=p", "recall=r", "f1=f", "truncated=cut")
    result = batch(*options, inputs=[write("in.csv", table)])
    assert result.exit_code == 0, result.stderr
    scored = pq.read_table(tmp_path / "scores").to_pydict()
    assert list(scored) == [
        "candidate",
        "reference",
        "p",
        "r",
        "f",
        "cut",
        "unknown",
        "best_reference",
    ]
    assert scored["cut"] == [expected for *_, expected in rows]
    assert f"F1: {sum(scored['f']) / len(rows):.6f}" in result.stdout
    assert "in 3 parts; 0 without scores, 6 with a truncated text" in result.stdout
    again = batch(*options, inputs=[tmp_path / "in.csv"]).stdout
    assert "in 3 parts (3 complete before); 0 without scores, 6 with a truncated text" in again
    assert batch(inputs=[tmp_path / "in.csv"]).exit_code == 2


def test_tables_and_columns_are_named_as_for_score(
    run, refused, write, tiny_bundle, tmp_path, read_parts
):
    path = write("pairs.csv", "id;mt;gold;other\n007;the cat;a cat;the cat\n")
    options = ["--columns", "candidate=mt", "reference=gold+other"]
    assert (
        run("batch", "-m", tiny_bundle, "-c", path, "-o", tmp_path / "scores", *options).exit_code
        == 0
    )
    [row] = read_parts()
    assert (row["id"], row["best_reference"], row["f1"]) == ("007", 1, pytest.approx(1, abs=1e-6))
    path = write("other.csv", "mt|gold\nthe cat|a cat\n")
    options = ["--columns", "candidate=mt", "reference=gold"]
    assert "delimiter=CHARACTER in --input-format" in refused(
        "batch", "-m", tiny_bundle, "-c", path, "-o", tmp_path / "other", *options
    )
    options += ["--input-format", "delimiter=pipe"]
    assert (
        run("batch", "-m", tiny_bundle, "-c", path, "-o", tmp_path / "other", *options).exit_code
        == 0
    )


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "no rows"),
        (["", "  "], "no rows"),
        (['{"candidate": 1, "reference": "a"}'] * 2, "every row failed"),
    ],
)
def test_a_job_without_a_score_fails(batch, write, rows, reason):
    result = batch("--errors", "null", inputs=[write("pairs.jsonl", "\n".join(rows))])
    assert result.exit_code == 1
    assert reason in result.stderr


@pytest.fixture
def read_parts(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    return lambda: [
        row
        for part in sorted((tmp_path / "scores").glob("part-*"))
        for row in pq.read_table(part).to_pylist()
    ]


def test_an_interruption_reports_what_is_kept_and_lost_and_that_the_command_resumes(
    batch, write, monkeypatch
):
    add = PartWriter.add

    def interrupt(self, scored):
        if scored["id"][0].as_py() == "75":
            raise KeyboardInterrupt
        return add(self, scored)

    monkeypatch.setattr(PartWriter, "add", interrupt)
    path = write(
        "long.csv",
        "id,candidate,reference\n" + "".join(f"{row},the cat,a cat\n" for row in range(100)),
    )
    result = batch("--part-rows", 43, inputs=[path])
    assert result.exit_code == 130
    assert (
        "43 of 100 rows are kept, in 1 of 3 parts; 32 rows of an unfinished part are lost. Run the"
        in result.stderr
    )


@pytest.mark.parametrize(
    ("is_terminal", "options", "shown"),
    [(True, (), True), (True, ("-q",), False), (False, (), False)],
)
def test_a_terminal_gets_a_bar_of_rows(batch, monkeypatch, is_terminal, options, shown):
    monkeypatch.setattr("bertscore_onnx.scoring.progress.PATIENCE", 0)
    terminal = SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: is_terminal))
    monkeypatch.setattr("bertscore_onnx.scoring.progress.sys", terminal)
    # a slow machine draws the last state twice
    assert ("| 3/3 [" in batch(*options).stderr) == shown
