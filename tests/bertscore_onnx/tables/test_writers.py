import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.scores import Score
from bertscore_onnx.tables.columns import TextColumn
from bertscore_onnx.tables.formats import FORMATS, Dialect
from bertscore_onnx.tables.readers import open_table
from bertscore_onnx.tables.score_columns import ScoreColumns
from bertscore_onnx.tables.sources import Source
from bertscore_onnx.tables.writers import RowsToWrite

CELLS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
    | st.sampled_from('",;\t\r\n '),
    max_size=6,
)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS).filter(any), min_size=1, max_size=4)
NAMES = ("id", "text", "more")
SCORE = Score(0.5, -0.25, 0.125, 2)
ADDED = ("p", "r", "f")
COLUMNS = ScoreColumns(scores=ADDED, has_best=False)


def written(content, source, target, dialect):
    """Return the bytes of a table with the same scores in each row."""
    table = open_table(Source("table", io.BytesIO(content)), source, dialect, added=ADDED)
    rows = RowsToWrite(table, COLUMNS)
    writer = FORMATS[target].load_writer()(rows, target)
    lines = [writer.line(row, SCORE) for _, row in table.rows([TextColumn(("text",), "")])]
    return "".join([writer.head, *lines]).encode()


@given(
    ROWS,
    st.sampled_from([("csv", ","), ("csv", ";"), ("tsv", "\t"), ("csv", "|")]),
    st.sampled_from(["csv", "tsv", "jsonl"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_cells_of_delimited_tables_come_back(rows, dialect, target, line_end, quoting):
    source, delimiter = dialect
    lines = []
    for row in [NAMES, *rows]:
        line = io.StringIO(newline="")
        # quotes \r, too
        csv.writer(line, delimiter=delimiter, lineterminator="\r\n", quoting=quoting).writerow(row)
        lines.append(line.getvalue().removesuffix("\r\n") + line_end)
    output = written("".join(lines).encode(), source, target, Dialect(delimiter=delimiter)).decode()
    if target == "jsonl":
        objects = [json.loads(line) for line in output.split("\n")[:-1]]
        assert [tuple(one.values()) for one in objects] == [
            (*row, 0.5, -0.25, 0.125) for row in rows
        ]
    else:
        used = delimiter if source == target else "\t" if target == "tsv" else ","
        read = [
            tuple(row)
            for row in csv.reader(io.StringIO(output, newline=""), delimiter=used, strict=True)
        ]
        assert read == [
            (*NAMES, *ADDED),
            *((*row, "0.500000", "-0.250000", "0.125000") for row in rows),
        ]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | CELLS,
    lambda values: st.lists(values, max_size=2) | st.dictionaries(CELLS, values, max_size=2),
    max_leaves=4,
)


@given(
    st.lists(
        st.fixed_dictionaries({"text": CELLS, "id": VALUES, "more": VALUES}), min_size=1, max_size=3
    )
)
def test_objects_come_back_as_they_stand(objects):
    lines = [json.dumps(one, ensure_ascii=False) for one in objects]
    output = (
        written("\n".join(lines).encode(), "jsonl", "jsonl", Dialect()).decode().split("\n")[:-1]
    )
    assert output == [line[:-1] + ', "p": 0.5, "r": -0.25, "f": 0.125}' for line in lines]


@pytest.mark.parametrize("value", [None, 1.5, 10, True, "a", [1, "b"], {"c": None}])
def test_values_of_objects_are_text_in_a_csv(value):
    content = json.dumps({"text": "x", "value": value}).encode()
    table = open_table(Source("table", io.BytesIO(content)), "jsonl")
    rows = RowsToWrite(table, COLUMNS, ["text", "value", "absent"])
    writer = FORMATS["csv"].load_writer()(rows, "csv")
    [(_, row)] = table.rows([TextColumn(("text",), "")])
    [cells] = csv.reader([writer.line(row, SCORE)])
    assert cells[2] == ""
    assert cells[1] == (
        "" if value is None else "a" if value == "a" else json.dumps(value, separators=(",", ":"))
    )
