"""Reading tables of judgements, and asking for their columns."""

import gzip

import numpy as np
import pytest

from bertscore_onnx.cli.judgements import read_table
from bertscore_onnx.errors import InputError


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


def test_gzip_is_decompressed(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"human\n1\n2\n"))
    np.testing.assert_array_equal(read_table(str(path)).numbers("human"), [1, 2])


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


def test_a_number_that_is_none_is_named_with_line_and_column(write):
    with pytest.raises(InputError, match=r"a\.tsv, line 3: the column 'human' holds 'good'; expected a number"):
        table(write, "a.tsv", "system\thuman\nA\t1\nB\tgood\n").numbers("human")


def test_a_decimal_comma_is_reported(write):
    with pytest.raises(InputError, match=r"a\.tsv, line 2: .* holds '-86,1'; expected a number, .* with a point\."):
        table(write, "a.tsv", "human\n-86,1\n").numbers("human")


def test_a_folder_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"is a folder; expected a table"):
        read_table(str(tmp_path))


def test_semicolons_instead_of_commas_are_reported(write):
    with pytest.raises(InputError, match=r"line 2: .* The first line has semicolons; expected commas between"):
        table(write, "a.csv", 'system;human;text\nA;1,5;"a, b"\n')


@pytest.mark.parametrize("value", ["true", '"inf"', "1e999", "[1]", '""x"'])
def test_other_values_are_no_numbers(write, value):
    with pytest.raises(InputError, match=r"a\.jsonl, line 1"):
        table(write, "a.jsonl", f'{{"human": {value}}}\n').numbers("human")


def test_a_column_that_is_missing_is_reported_with_the_nearest(write):
    read = table(write, "a.tsv", "system\thuman_score\nA\t1\n")
    with pytest.raises(InputError, match=r"no column 'human_scores', .*Did you mean 'human_score'\? .*--human-column"):
        read.find("human_scores", "--human-column")
    assert read.find(("human", "human_score"), "--human-column") == "human_score"


def test_a_column_that_is_there_twice_is_refused(write):
    with pytest.raises(InputError, match="2 columns 'human'"):
        table(write, "a.tsv", "human\thuman\n1\t2\n").find("human", "--human-column")


def test_an_object_without_a_field_that_others_have_is_named(write):
    with pytest.raises(InputError, match=r"line 2: there is no 'human' here"):
        table(write, "a.jsonl", '{"human": 1}\n{"system": "A"}\n').numbers("human")


@pytest.mark.parametrize("value", ["null", '""', "1.5", "true"])
def test_a_name_is_a_text_or_a_whole_number(write, value):
    with pytest.raises(InputError, match=r"line 1: the column 'system' holds"):
        table(write, "a.jsonl", f'{{"system": {value}}}\n').keys("system")


def test_rows_are_expected(write):
    with pytest.raises(InputError, match="has no rows"):
        table(write, "a.tsv", "system\thuman\n")


def test_a_name_without_a_format_is_refused(write):
    with pytest.raises(InputError, match="has no suffix of a table"):
        table(write, "a.txt", "system\thuman\nA\t1\n")
