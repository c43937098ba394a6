"""`bertscore-onnx score -o`: the rows of a table come back as they were, beside their scores."""

import csv
import json
from datetime import date

import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow", reason="needs the extra parquet")
pq = pytest.importorskip("pyarrow.parquet")

NUMBER = 30
SCORES = ["precision", "recall", "f1"]
ODD = [
    "007",
    "",
    '"quoted", and more',
    "a\nline\r\nand another",
    " spaces ",
    "1e5",
    "NULL",
    "café\u2028",
    "\ttab",
    "=1+1",
]
CELLS = {
    "id": [f"{row:05d}" for row in range(NUMBER)],
    "prediction": [f"the cat sat {'on the mat ' * (row % 4)}, {row}" for row in range(NUMBER)],
    "gold": [["a cat sat", 'the "dog" ran', "it"][row % 3] for row in range(NUMBER)],
    "day": [str(date(2026, 1, 1 + row)) for row in range(NUMBER)],
    **{
        f"other {column}": [ODD[(row * column) % len(ODD)] for row in range(NUMBER)]
        for column in range(1, 37)
    },
}
"""A table of 40 columns."""

COLUMNS = ["--columns", "candidate=prediction", "reference=gold"]


@pytest.fixture
def write_table(tmp_path):
    """Write `CELLS` in a format; in JSON lines and Parquet, with values of other types."""

    def write_table(name):
        path = tmp_path / name
        kind = path.suffix.removeprefix(".")
        if kind == "parquet":
            pq.write_table(typed(), path, row_group_size=7)
        elif kind == "jsonl":
            path.write_text("".join(f"{line}\n" for line in json_lines()), encoding="utf-8")
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                delimiter = "\t" if kind == "tsv" else ";" if "semicolon" in name else ","
                csv.writer(file, delimiter=delimiter).writerows(
                    [CELLS, *zip(*CELLS.values(), strict=True)]
                )
        return path

    return write_table


def typed():
    table = pa.table(CELLS)
    others = {
        "int": pa.array([None, 2**60] * 15),
        "float": pa.array([0.1, None, float("nan")] * 10),
        "date": pa.array([date(2026, 1, 1), None] * 15),
        "time": pa.array([1, None] * 15, pa.timestamp("ns", "Europe/Berlin")),
        "kind": pa.array(["a", "b", None] * 10).dictionary_encode(),
        "list": pa.array([[1, 2], [], None] * 10),
        "struct": pa.array([{"lp": "de-en"}, None] * 15),
        "bytes": pa.array([b"\xff", None] * 15),
    }
    for name, values in others.items():
        table = table.append_column(name, values)
    return table.replace_schema_metadata(
        {"pandas": json.dumps({"columns": [], "index_columns": []}), "mine": "yes"}
    )


def json_lines():
    """Yield objects whose numbers, spaces and escapes a JSON library would write in another way."""
    for row in range(NUMBER):
        cells = json.dumps(
            {name: values[row] for name, values in CELLS.items()}, ensure_ascii=bool(row % 2)
        )
        yield cells[:-1] + f', "n": 1.50, "big": {2**53 + row}, "none": null , "list":[1,2] }}'


def read_cells(path, delimiter):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter, strict=True))


@pytest.fixture
def scored(run_score, tmp_path):
    def scored(path, output, *options, **streams):
        result = run_score("-c", path, *COLUMNS, "-o", tmp_path / output, *options, **streams)
        assert (result.exit_code, result.stderr) == (0, "")
        return tmp_path / output

    return scored


@pytest.fixture
def f1(scorer):
    return scorer.score(CELLS["prediction"], CELLS["gold"]).F.tolist()


@pytest.mark.parametrize(
    ("name", "delimiter"), [("in.csv", ","), ("in.tsv", "\t"), ("semicolon.csv", ";")]
)
def test_a_delimited_table_comes_back_with_its_bytes_and_three_columns(
    write_table, scored, f1, name, delimiter
):
    path = write_table(name)
    output = scored(path, f"out{path.suffix}")
    rows = read_cells(output, delimiter)
    assert [row[:-3] for row in rows] == read_cells(path, delimiter)
    assert rows[0][-3:] == SCORES
    assert [float(row[-1]) for row in rows[1:]] == pytest.approx(f1, abs=1e-6)
    frame = pd.read_csv(output, sep=delimiter, dtype=str, keep_default_na=False)
    assert frame.drop(columns=SCORES).to_dict("list") == CELLS


def test_json_lines_come_back_as_text(write_table, scored, f1):
    output = scored(write_table("in.jsonl"), "out.jsonl")
    for line, before, expected in zip(
        output.read_text("utf-8").split("\n"), json_lines(), f1, strict=False
    ):
        assert line.startswith(before.removesuffix(" }") + ', "precision": ')
        assert json.loads(line)["f1"] == expected
        assert list(json.loads(line))[-3:] == SCORES
    assert len(pd.read_json(output, lines=True)) == NUMBER


def test_parquet_comes_back_with_its_values_types_and_metadata(write_table, scored, f1):
    path = write_table("in.parquet")
    before, after = pq.read_table(path), pq.read_table(scored(path, "out.parquet"))
    assert after.drop(SCORES).schema.equals(before.schema)
    for name in before.column_names:
        assert after[name].type == before[name].type
        # NaN is no equal of itself
        assert str(after[name].to_pylist()) == str(before[name].to_pylist())
    assert after["f1"].to_pylist() == f1
    assert after.schema.field("f1").type == pa.float32()
    assert after.schema.metadata[b"mine"] == b"yes"
    assert b"tiny-bert" in after.schema.metadata[b"bertscore_onnx.signature"]


@pytest.mark.parametrize("source", ["in.csv", "in.tsv", "in.jsonl", "in.parquet"])
@pytest.mark.parametrize("target", ["out.csv", "out.tsv", "out.jsonl", "out.parquet", "out.json"])
def test_any_table_may_be_written_in_any_format(write_table, scored, f1, source, target):
    output = scored(write_table(source), target)
    if target.endswith(".parquet"):
        columns = pq.read_table(output).to_pydict()
    elif target.endswith("v"):
        head, *rows = read_cells(output, "," if target == "out.csv" else "\t")
        columns = dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))
    else:
        text = output.read_text("utf-8")
        rows = (
            json.loads(text)["segments"]
            if target == "out.json"
            else [*map(json.loads, text.split("\n")[:-1])]
        )
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert {name: columns[name] for name in CELLS} == CELLS
    assert list(map(float, columns["f1"])) == pytest.approx(f1, abs=1e-6)
    if target == "out.csv" and source == "in.parquet":
        assert columns["date"] == ["2026-01-01", ""] * 15
        assert columns["list"] == ["[1,2]", "[]", ""] * 10


def test_a_pipe_keeps_its_rows_too(write_table, scored, stdin_is_a_pipe):
    path = write_table("in.jsonl")
    expected = scored(path, "expected.csv").read_bytes()
    assert (
        scored("-", "out.csv", "--input-format", "jsonl", stdin=path.read_bytes()).read_bytes()
        == expected
    )


def test_rows_are_kept_over_many_chunks_and_with_idf(write_table, scored, small_chunks):
    rows = read_cells(scored(write_table("in.csv"), "out.csv", "--idf"), ",")
    assert [row[:-3] for row in rows] == read_cells(write_table("in.csv"), ",")


def test_the_last_row_may_lack_its_end_and_quotes_may_be_ordinary_characters(
    run_score, write, tmp_path
):
    path = write("in.tsv", 'candidate\tnote\treference\r\n"a cat\t"\tthe "cat\r\nthe dog\t\ta dog')
    run_score("-c", path, "--input-format", "quotes=no", "-o", tmp_path / "out.tsv")
    head, first, second, rest = (tmp_path / "out.tsv").read_bytes().split(b"\r\n")
    assert head == b"candidate\tnote\treference\tprecision\trecall\tf1"
    assert first.startswith(b'"a cat\t"\tthe "cat\t0.')
    assert second.startswith(b"the dog\t\ta dog\t0.")
    assert rest == b""


def test_the_byte_order_mark_of_a_spreadsheet_stays(run_score, write, tmp_path):
    path = write("in.csv", "\ufeffcandidate;reference\r\nein Mädchen;ein Mädchen\r\n".encode())
    run_score("-c", path, "-o", tmp_path / "out.csv")
    assert (
        (tmp_path / "out.csv")
        .read_bytes()
        .startswith("\ufeffcandidate;reference;precision;".encode())
    )
    run_score("-c", path, "-o", tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_bytes().startswith(b"candidate\treference\tprecision\t")


def test_a_table_without_a_header_stays_one(run_score, write, tmp_path):
    path = write("in.csv", "1,a cat,the cat\n")
    options = ["--input-format", "header=no", "--columns", "candidate=2", "reference=3"]
    run_score("-c", path, *options, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("1,a cat,the cat,0.")


def test_references_and_the_context_may_be_written_in_another_way(run_score, write):
    tables = [
        "-c",
        write("c.csv", "1|a cat\n"),
        "-r",
        write("r.txt", "reference\tby\nthe cat\tA\n"),
    ]
    formats = ["--input-format", "header=no,delimiter=|", "tsv", "--columns", "candidate=2"]
    texts = ["-c", write("c.txt", "a cat\n"), "-r", write("t.txt", "the cat\n")]
    assert run_score(*tables, *formats).stdout == run_score(*texts).stdout
    context = ["--context", write("before.csv", "the dog|1\n")]
    before = ["--context", write("before.txt", "the dog\n")]
    scores = run_score(*tables, *context, *formats, "context=1").stdout
    assert scores == run_score(*texts, *before).stdout


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.parquet"])
def test_a_column_with_the_name_of_a_score_is_an_error_unless_scores_have_other_names(
    refused, run_score, write_table, tmp_path, name
):
    path = write_table(name)
    options = [
        "-c",
        path,
        "--columns",
        "candidate=prediction",
        "reference=gold",
        "-o",
        tmp_path / "out.csv",
    ]
    message = refused("score", "-m", "no-such-model", *options, "--columns", "recall=day")
    assert "there is a column 'day' already" in message
    assert "--columns f1=NAME" in message
    assert run_score(*options, "--columns", "precision=p", "recall=r", "f1=f").exit_code == 0
    assert read_cells(tmp_path / "out.csv", ",")[0][-3:] == ["p", "r", "f"]
    assert "--columns" in refused("score", "-m", "x", *options, "--columns", "recall=f1")


def test_a_table_that_was_scored_may_be_read_again(run, refused, write, tiny_bundle, tmp_path):
    path = write("in.csv", "candidate,reference,f1,best_reference\na cat,the cat,0.5,0\n")
    options = ["score", "-m", tiny_bundle, "-c", path, "--columns", "reference=reference"]
    assert run(*options).exit_code == run(*options, "-s").exit_code == 0
    assert run(*options, "-o", tmp_path / "out.csv", "--columns", "f1=f").exit_code == 0
    message = refused(*options, "reference=candidate", "f1=f", "-o", tmp_path / "out.csv")
    assert "there is a column 'best_reference' already" in message


@pytest.mark.parametrize("suffix", ["jsonl", "tsv", "parquet"])
@pytest.mark.parametrize("name", ["best_reference", r"best_\u0072eference"])
def test_json_lines_get_no_second_column_of_the_best_reference(
    refused, write, tiny_bundle, tmp_path, suffix, name
):
    path = write(
        "in.jsonl", f'{{"candidate": "a cat", "references": ["a", "the cat"], "{name}": 7}}\n'
    )
    message = refused("score", "-m", tiny_bundle, "-c", path, "-o", tmp_path / f"out.{suffix}")
    assert "there is a column 'best_reference' already" in message


def test_seg_level_writes_scores_alone(run_score, scored, write_table):
    path = write_table("in.parquet")
    printed = run_score("-c", path, *COLUMNS, "-s").stdout
    assert printed.startswith("precision\trecall\tf1\n0.")
    assert scored(path, "out.tsv", "-s").read_text() == printed
    assert pq.read_schema(scored(path, "out.parquet", "-s")).names == SCORES


def test_references_in_files_of_their_own_leave_the_table_of_candidates_as_it_is(
    run_score, write, tmp_path
):
    run_score("-c", write("c.csv", "id,candidate\n01,a cat\n"), "-r", write("r.txt", "the cat\n"),
        "-o", tmp_path / "out.csv")  # fmt: skip
    assert (
        (tmp_path / "out.csv")
        .read_text()
        .startswith("id,candidate,precision,recall,f1\n01,a cat,0.")
    )


@pytest.mark.slow  # it starts a process
def test_a_full_disk_is_named_and_leaves_whole_rows(run_process, write, tiny_bundle, tmp_path):
    pytest.importorskip("resource", reason="needs limits of a process")
    path = write("in.csv", "candidate,reference,note\n" + f"a cat,the cat,{'x' * 100}\n" * 50)
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (1050, 1050)); "
    output = tmp_path / "out.csv"
    result = run_process("score", "-m", tiny_bundle, "-c", path, "-o", output, setup=limit)
    assert result.returncode == 2
    assert f"Error: Cannot write '{output}' to its end (File too large)." in result.stderr.decode()
    part = tmp_path / "out.csv.part1"
    assert f"The rows so far are in {part}; there is no {output} yet." in result.stderr.decode()
    assert not output.exists()
    rows = read_cells(part, ",")
    assert {len(row) for row in rows} == {6}
    assert len(rows) > 3
    assert part.read_bytes().endswith(b"\n")
    assert part.stat().st_size <= 1050


def test_after_an_error_parquet_has_the_rows_before(run_score, tmp_path, stdin_is_a_pipe):
    options = ["-c", "-", "--input-format", "csv", "-o", tmp_path / "out.parquet"]
    rows = "id,candidate,reference\n" + "".join(f"0{row},a cat,the cat\n" for row in range(5))
    result = run_score(*options, stdin=f"{rows}06,a cat\n".encode())
    assert result.exit_code == 2
    assert "line 7: there are 2 fields; expected 3" in result.stderr
    assert pq.read_table(tmp_path / "out.parquet.part1")["id"].to_pylist() == [
        f"0{row}" for row in range(5)
    ]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_numbered_columns_are_further_references_in_every_format(run_score, scorer, tmp_path, kind):
    further = {"Reference_3": CELLS["prediction"], "reference2": CELLS["gold"][::-1]}
    pairs = {"response": CELLS["prediction"], **further, "reference": CELLS["gold"]}
    names = ["reference", "reference2", "Reference_3"]
    expected = scorer.score(CELLS["prediction"], list(zip(*map(pairs.get, names), strict=True)))
    for name, columns in {"one": [*pairs], "cands": ["response"], "refs": names[::-1]}.items():
        frame = pd.DataFrame({column: pairs[column] for column in columns})
        path = tmp_path / f"{name}.{kind}"
        if kind == "parquet":
            frame.to_parquet(path)
        elif kind == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    files = {name: tmp_path / f"{name}.{kind}" for name in ("one", "cands", "refs")}
    for inputs in (["-c", files["one"]], ["-c", files["cands"], "-r", files["refs"]]):
        found = run_score(*inputs, "--format", "json")
        assert json.loads(found.stdout)["f1"] == pytest.approx(expected.F.mean(), rel=1e-6)
        assert "references:3" in found.stdout
    scored = scorer.score_frame(pd.DataFrame(pairs))
    assert scored["best_reference"].tolist() == expected.best_reference.tolist()
