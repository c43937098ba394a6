"""Reading columns of CSV and TSV."""

import csv
import gzip
import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.cli.inputs import candidate_column, reference_columns
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.readers import Dialect, read_delimited
from bertscore_onnx.tables.sources import Source

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_columns_are_found_by_their_names_in_any_order(write, read_rows):
    path = write("pairs.csv", "id,reference,candidate\n1,a cat,the cat\n2,,a dog\n")
    assert read_rows(path) == [["the cat", "a cat"], ["a dog", ""]]


def test_several_columns_are_several_references(write, read_rows):
    path = write("pairs.tsv", "mt\tref1\tref2\nthe cat\ta cat\tsome cat\n")
    assert read_rows(path, "mt", ["ref2", "ref1"]) == [["the cat", "some cat", "a cat"]]


def test_quoted_fields_keep_delimiters_quotes_and_line_ends(write, read_rows):
    path = write("pairs.csv", 'candidate,reference\r\n"one, ""two""\r\nthree",x\r\n')
    assert read_rows(path) == [['one, "two"\r\nthree', "x"]]


def test_quotes_within_a_field_are_characters(write, read_rows):
    assert read_rows(write("pairs.tsv", "candidate\treference\n6\" nails\tit's\n")) == [['6" nails', "it's"]]


def test_without_quotes_all_of_them_are_characters(write, read_rows):
    path = write("pairs.tsv", 'candidate\treference\n"Hello," he said.\t"x\n')
    assert read_rows(path, has_quotes=False) == [['"Hello," he said.', '"x']]


def test_columns_without_a_header_go_by_number(write, read_rows):
    path = write("pairs.tsv", "the cat\ta cat\na dog\tthe dog\n")
    assert read_rows(path, "2", ["1"], has_header=False) == [["a cat", "the cat"], ["the dog", "a dog"]]


def test_packed_files_with_a_mark_are_read(write, read_rows):
    path = write("pairs.csv.gz", gzip.compress(b"\xef\xbb\xbfcandidate,reference\na,b\n"))
    assert read_rows(path) == [["a", "b"]]


def test_empty_lines_of_one_column_are_empty_texts(write):
    with write("texts.csv", "candidate\na\n\nb\n").open("rb") as file:
        rows = read_delimited(Source("texts.csv", file), [candidate_column()], Dialect(","))
        assert list(rows) == [["a"], [""], ["b"]]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "mt,ref\na,b\n",
            "line 1: there is no column 'candidate', only 'mt', 'ref'. Name one with --candidate-column, or",
        ),
        (
            "candidate\na\n",
            "line 1: there is no column 'reference' or 'references', only 'candidate'. Name one with --ref",
        ),
        ("candidate,candidate,reference\na,b,c\n", "line 1: there are 2 columns 'candidate'; expected one."),
        ("candidate,reference\na,b\nc\n", "line 3: there is 1 field; expected 2, as in the first line."),
        ("candidate,reference\na,b\n\nc,d\n", "line 3: there is 1 field; expected 2, as in the first line."),
        ('candidate,reference\n"a\nb",c\nd,e,f\n', "line 4: there are 3 fields; expected 2, as in the first line."),
        ('candidate,reference\n"Hello," he said.,b\n', "line 2: ',' expected after '\"'. .* add --no-quotes."),
        ('candidate,reference\na,b\n"c,d\n', "line 3: unexpected end of data. .* add --no-quotes."),
        ("candidate,reference\n", " has no rows; expected one for each text."),
        ("", " is empty; expected a header and a row of fields for each text."),
        (b"candidate,reference\na,b\nZ\xfcrich,c\n", " is not UTF-8: line 3 has the byte 0xFC at offset 25."),
    ],
)
def test_what_is_wrong_is_told_with_its_place(write, read_rows, content, told):
    with pytest.raises(InputError, match=rf"pairs\.csv(, )?{told}"):
        read_rows(write("pairs.csv", content))


def test_a_row_of_many_lines_is_bounded(monkeypatch, tmp_path, read_rows):
    monkeypatch.setattr("bertscore_onnx.tables.readers.MAX_LINE_BYTES", 1000)
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    endless = os.open(path, os.O_RDWR)
    try:
        os.write(endless, b'candidate,reference\n"a\n' + b"line\n" * 1000)
        with pytest.raises(InputError, match=r"more than 1,000 characters, .* Is a quote not closed\?"):
            read_rows(path)
    finally:
        os.close(endless)


def test_fields_may_be_as_long_as_lines(write, read_rows):
    long = "x" * 200_000  # beyond the limit that the csv module has by itself
    assert read_rows(write("pairs.csv", f"candidate,reference\n{long},b\n")) == [[long, "b"]]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.sampled_from([",", "\t"]))
def test_what_the_csv_module_writes_is_read_as_it_was(rows, delimiter):
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([("candidate", "reference"), *rows])
    source = Source("rows", io.BytesIO(written.getvalue().encode()))
    columns = [candidate_column(), *reference_columns()]
    assert list(read_delimited(source, columns, Dialect(delimiter))) == [list(row) for row in rows]
