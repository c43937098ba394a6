"""A format of tables that a row of `FORMATS` adds."""

import json

import pandas as pd
import pytest

from bertscore_onnx.tables.formats import FORMATS, FileFormat, format_of
from bertscore_onnx.tables.readers import TableReader
from bertscore_onnx.tables.sources import read_lines

pytest.importorskip("pyarrow", reason="needs the extra parquet")

ROWS = {
    "id": ["1", "2", "3"],
    "candidate": ["the cat sat", "a red house", "it"],
    "reference": ["a cat sat", "the blue house", "the dog"],
    "reference2": ["the cat", "a red house", "it"],
}


class BlocksReader(TableReader):
    """Blocks of lines `name: value`, which a `%` ends."""

    def __init__(self, source, name, dialect, keep_faults):
        self.place = source.title
        self._source = source
        self.names = list(next(self.records())[1])

    def records(self):
        record = {}
        for line in read_lines(self._source):
            name, _, value = line.partition(": ")
            if name != "%":
                record[name] = value
                continue
            yield self.place, record
            record = {}


class BlocksWriter:
    """Writes blocks."""

    head = ""

    def __init__(self, rows, name):
        self._rows = rows

    def line(self, row, score):
        values = {**self._rows.record(row), "f1": score.F}
        return "".join(f"{name}: {value}\n" for name, value in values.items()) + "%\n"


@pytest.fixture
def blocks(monkeypatch, tmp_path):
    added = FileFormat(
        name="blocks",
        suffixes=(".blocks",),
        reader=f"{__name__}:BlocksReader",
        writer=f"{__name__}:BlocksWriter",
        is_seekable=True,
    )
    monkeypatch.setitem(FORMATS, "blocks", added)
    path = tmp_path / "t.blocks"
    records = pd.DataFrame(ROWS).to_dict("records")
    lines = ["".join(f"{name}: {row[name]}\n" for name in row) + "%\n" for row in records]
    path.write_text("".join(lines))
    return path


@pytest.fixture
def expected(scorer):
    return scorer.score_frame(pd.DataFrame(ROWS))["f1"].tolist()


def test_it_is_read_from_a_file_and_a_pipe(run_score, blocks, expected, tmp_path):
    assert format_of("T.BLOCKS.gz") == "blocks"
    out = tmp_path / "out.jsonl"
    piped = ["-c", "-", "--input-format", "blocks"]
    for inputs in (["-c", blocks], ["-c", blocks, "-r", blocks], piped):
        stdin = blocks.read_text() if inputs is piped else None
        run_score(*inputs, "-o", out, stdin=stdin)
        rows = list(map(json.loads, out.read_text().splitlines()))
        assert [row["f1"] for row in rows] == pytest.approx(expected)
        assert [row["id"] for row in rows] == ROWS["id"]


def test_it_is_written(run_score, blocks, expected):
    out = blocks.with_name("out.blocks")
    run_score("-c", blocks, "-o", out)
    scores = [line.removeprefix("f1: ") for line in out.read_text().splitlines() if "f1" in line]
    assert list(map(float, scores)) == pytest.approx(expected)


def test_it_is_scored_in_parts(run, blocks, tiny_bundle, expected, tmp_path):
    run("batch", "-m", tiny_bundle, "-c", blocks, "-o", tmp_path / "job", "--part-rows", "2")
    scored = pd.read_parquet(sorted((tmp_path / "job").glob("*.parquet")))
    assert scored["f1"].tolist() == pytest.approx(expected)
    assert scored["id"].tolist() == ROWS["id"]


def test_its_systems_are_compared(run, blocks):
    pytest.importorskip("sacrebleu")
    systems = ["--systems", "candidate", "reference2", "--metric", "chrf", "--format", "json"]
    found = run("compare", "-c", blocks, *systems)
    assert found.exit_code == 0, found.stderr
