import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.formats import format_of
from bertscore_onnx.tables.readers import open_table
from bertscore_onnx.tables.sources import Source

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PAIR = '{"candidate": "a", "reference": "b"}\n'


def read_values(content, table_format):
    table = open_table(Source("rows", io.BytesIO(content.encode())), table_format)
    return table.names, [list(values.values()) for _, values in table.records()]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (
            "id,reference,candidate\n1,a cat,the cat\n2,,a dog\n",
            [["the cat", "a cat"], ["a dog", ""]],
        ),
        ('candidate,reference\r\n"one, ""two""\r\nthree",x\r\n', [['one, "two"\r\nthree', "x"]]),
        ("candidate,reference\n6\" nails,it's\n", [['6" nails', "it's"]]),
        (gzip.compress(2 * b"\xef\xbb\xbf" + b"candidate,reference\na,b\n"), [["a", "b"]]),
    ],
    ids=[
        "columns in any order",
        "quoted fields",
        "quotes within fields",
        "gzip with byte order marks",
    ],
)
def test_rows_of_delimited_files(write, read_rows, content, rows):
    assert read_rows(write("pairs.csv", content)) == rows


@pytest.mark.parametrize(
    ("content", "columns", "dialect", "rows"),
    [
        ("mt\tref1\tref2\nc\tr\ts\n", ["mt", "ref2", "ref1"], {}, [["c", "s", "r"]]),
        (
            'candidate\treference\n"Hello," he said.\t"x\n',
            [],
            {"has_quotes": False},
            [['"Hello," he said.', '"x']],
        ),
        ("r\tc\ns\td\n", ["2", "1"], {"has_header": False}, [["c", "r"], ["d", "s"]]),
        ("candidate|reference\na;b|c\td\n", [], {"delimiter": "|"}, [["a;b", "c\td"]]),
    ],
    ids=["several references", "no quotes", "no header", "delimiter"],
)
def test_columns_and_dialects_can_be_chosen(write, read_rows, content, columns, dialect, rows):
    assert read_rows(write("pairs.tsv", content), *columns, **dialect) == rows


@pytest.mark.parametrize(
    ("content", "names", "row"),
    [
        (
            'id;candidate;reference\n1;"a;b, c";d\n',
            ["id", "candidate", "reference"],
            ["1", "a;b, c", "d"],
        ),
        ('"id";"text"\n1;2\n', ["id", "text"], ["1", "2"]),
        ("id\tcandidate\n1\ta, b\n", ["id", "candidate"], ["1", "a, b"]),
        ("a;b;c,d\n1,2\n", ["a;b;c", "d"], ["1", "2"]),
        ('"a;b"\nc;d\n', ["a;b"], ["c;d"]),
    ],
    ids=["semicolons", "all in quotes", "tabs", "commas beside them", "one column"],
)
def test_the_delimiter_of_a_csv_is_that_of_its_header(content, names, row):
    assert read_values(content, "csv") == (names, [row])


@pytest.mark.parametrize("end", ["\n", "\r\n\n", "\n\n\n"])
def test_blank_lines_at_the_end_of_a_table_are_no_rows(write, read_rows, end):
    assert read_rows(write("pairs.csv", "candidate,reference\na,b\nc,d\n" + end)) == [
        ["a", "b"],
        ["c", "d"],
    ]


def test_empty_lines_of_one_column_are_empty_texts():
    assert read_values("candidate\na\n\nb\n", "csv") == (["candidate"], [["a"], [""], ["b"]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('candidate,reference\n"a\nb",c\nd,e,f\n', "line 4: there are 3 fields"),
        ('candidate,reference\n"Hello," he said.,b\n', "line 2: .* quotes=no"),
        (b"candidate,reference\na,b\nZ\xfcrich,c\n", "line 3 .* offset 25"),
    ],
)
def test_faults_of_delimited_files_are_reported_with_their_line(write, read_rows, content, message):
    with pytest.raises(InputError, match=rf"pairs\.csv.*{message}"):
        read_rows(write("pairs.csv", content))


def test_a_row_of_many_lines_is_bounded(monkeypatch, endless, read_rows):
    monkeypatch.setattr("bertscore_onnx.tables.delimited.MAX_LINE_BYTES", 1000)
    with pytest.raises(InputError, match="1,000 characters"):
        read_rows(endless("pipe.csv", b'candidate,reference\n"a\n' + b"line\n" * 1000))


def test_fields_may_be_as_long_as_lines(write, read_rows):
    long = "x" * 200_000  # beyond the limit that the csv module has by itself
    assert read_rows(write("pairs.csv", f"candidate,reference\n{long},b\n")) == [[long, "b"]]


# JSON lines.


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (
            f'{PAIR}{{"candidate": "c", "id": 1, "references": ["d", "e", "f"]}}\n',
            [["a", "b"], ["c", "d", "e", "f"]],
        ),
        (f"\n{PAIR}\r\n \n{PAIR}\n", [["a", "b"], ["a", "b"]]),
        *((content, []) for content in (b"", b"\n \n", b"\xef\xbb\xbf")),
    ],
)
def test_rows_of_json_lines(write, read_rows, content, rows):
    assert read_rows(write("pairs.jsonl", content)) == rows


def test_fields_may_have_other_names(write, read_rows):
    path = write("pairs.ndjson", '{"output": "a", "gold": "b", "more": ["c"]}\n')
    assert read_rows(path, "output", "gold", "more") == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2", "one object per line; `jq"),
        (
            '{"candidate": "a", "reference": "b", "loss": Infinity}',
            "holds Infinity, which JSON does not have",
        ),
        (
            '{"candidate": "a", "reference": "b", "losses": [1, {"of": NaN}]}',
            "holds NaN, which JSON does not have",
        ),
        (
            '{"candidate": "a", "reference": "NaN", "loss": -1e999}',
            "holds -1e999, a number out of range",
        ),
        (
            '{"candidate": "a", "reference": "b", "loss": ' + "7" * 5000 + "}",
            r"holds 7{37}\.\.\., a number out of range",
        ),
        ('{"candidate": ' + "[" * 100_000, "is no JSON"),
        (r'{"candidate": "\ud800 and more"}', r"holds \\ud800, half of a pair of surrogates"),
        ('{"candidate": "a"}', "no column 'reference' or 'references'"),
        ('{"candidate": "a", "reference": {}}', "'reference' holds an object"),
        ('{"candidate": "a", "reference": ["b", null]}', "'reference' holds a list with null"),
        ('{"candidate": "a", "reference": true}', "'reference' holds true or false"),
    ],
)
def test_faults_of_json_lines_are_reported_with_their_line(write, read_rows, line, message):
    with pytest.raises(InputError, match=rf"pairs\.jsonl, line 3: .*{message}"):
        read_rows(write("pairs.jsonl", f"{PAIR}\n{line}\n"))


def test_many_columns_are_named_in_part(write, read_rows):
    names = {f"{'x' * 50}{number}": "" for number in range(30)}
    with pytest.raises(InputError, match=r"'x{37}\.\.\.', .* 18 more") as caught:
        read_rows(write("pairs.jsonl", json.dumps(names)))
    assert len(str(caught.value)) < 1000


@given(
    st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=5),
    st.booleans(),
)
def test_objects_of_the_json_module_are_read_as_they_were(pairs, ascii_only):
    lines = [
        json.dumps({"candidate": one, "references": more}, ensure_ascii=ascii_only)
        for one, more in pairs
    ]
    assert read_values("\n".join(lines), "jsonl")[1] == [[one, more] for one, more in pairs]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "id,candidate\n,\n\n1,\n,a\n\n,\n"),
        ("t.tsv", 'id\tcandidate\n\n\t\n1\t\n\ta\n""\t\n'),
        ("t.jsonl", '{}\n{"id": "1", "candidate": ""}\n\n{"id": null}\n\ufeff{"candidate": "a"}\n'),
    ],
)
def test_a_row_without_any_cell_is_no_row(name, content):
    _, rows = read_values(content, format_of(name))
    assert [row[-1] for row in rows] == ["", "a"]
