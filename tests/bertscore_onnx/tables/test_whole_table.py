import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.whole_table import read_table


def table(write, name, content):
    return read_table(str(write(name, content)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "system\thuman\nA\t0.5\nB\t\n"),
        ("a.csv", 'system,human\n"A",0.5\nB,NA\n'),
        ("a.jsonl", '{"system": "A", "human": 0.5}\n\n{"system": "B", "human": null}\n'),
    ],
)
def test_each_format_gives_the_same_columns(write, name, content):
    read = table(write, name, content)
    assert len(read) == 2
    assert read.names == ["system", "human"]
    assert read.keys("system") == ["A", "B"]
    np.testing.assert_array_equal(read.numbers("human"), [0.5, np.nan])


def test_parquet_gives_them_too(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"segment": [7, 8], "human": [0.5, None], "reference": [["a", "b"], ["c"]]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    read = read_table(str(tmp_path / "a.parquet"))
    assert read.keys("segment") == ["7", "8"]
    assert read.lists("reference") == [["a", "b"], ["c"]]
    np.testing.assert_array_equal(read.numbers("human"), [0.5, np.nan])


def test_a_column_that_occurs_again_is_refused(write, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table([[1], [2]], names=["s", "s"]), tmp_path / "a.parquet")
    for file in (
        write("a.csv", "id,s,s\n1,2,3\n"),
        write("a.tsv", "s\tid\ts\n1\t2\t3\n"),
        tmp_path / "a.parquet",
    ):
        with pytest.raises(InputError, match="there are 2 columns 's'; expected one"):
            read_table(str(file))


@pytest.mark.parametrize(
    ("field", "read"),
    [
        ('"Hello," he said.', '"Hello," he said.'),
        ('"to the end', '"to the end'),
        ('"one ""two"""', 'one "two"'),
        ('"one\ntwo"', "one\ntwo"),
        ('"one\ttwo"', "one\ttwo"),
    ],
)
def test_quoted_fields_of_a_tsv_are_detected(write, field, read):
    assert table(write, "a.tsv", f"text\thuman\n{field}\t1\n").texts("text") == [read]


def test_quotes_that_would_join_rows_are_characters(write):
    read = table(write, "a.tsv", 'a\tb\n"x\ty\nz\tw"\n')
    assert read.texts("a") == ['"x', "z"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"system": "A", "human": 1}\n{"human": "good"}\n', "line 2: .*'human' holds 'good'"),
        ('{"human": "-86,1"}\n', "line 1: .* holds '-86,1'"),
        *(
            (f'{{"human": {value}}}\n', "line 1")
            for value in ('"inf"', "1e999", "[1]", '""x"', '"1_5"')
        ),
        ('{"human": 1}\n{"system": "A"}\n', "line 2: .*'human'"),
    ],
)
def test_what_is_no_number_is_named_with_line_and_column(write, content, message):
    with pytest.raises(InputError, match=rf"a\.jsonl, {message}"):
        table(write, "a.jsonl", content).numbers("human")


@pytest.mark.parametrize("value", ['""', "1.5", "true", "[]"])
def test_a_name_is_a_text_or_a_whole_number(write, value):
    with pytest.raises(InputError, match=r"line 1: .*'system'"):
        table(write, "a.jsonl", f'{{"system": {value}}}\n').keys("system")


def test_a_table_without_rows_and_a_folder_are_refused(write, tmp_path):
    with pytest.raises(InputError, match="no rows"):
        table(write, "a.tsv", "system\thuman\n")
    with pytest.raises(InputError, match="folder"):
        read_table(str(tmp_path))
    (tmp_path / "state.json").touch()
    with pytest.raises(InputError, match=r"load_from_disk\(.*to_parquet"):
        read_table(str(tmp_path))
    with pytest.raises(InputError, match="binary"):
        read_table(str(write("a.arrow", "ARROW1\0\0")))
