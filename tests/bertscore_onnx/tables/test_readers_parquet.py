"""Reading columns of Parquet, with its extra."""

import sys

import pytest

from bertscore_onnx.errors import InputError, MissingExtraError

pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def write_table(tmp_path):
    """Write a Parquet file, in row groups of two rows, and return its path."""

    def write_table(columns, name="pairs.parquet"):
        parquet.write_table(pyarrow.table(columns), tmp_path / name, row_group_size=2)
        return tmp_path / name

    return write_table


STRINGS = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]


@pytest.mark.parametrize("as_type", [*STRINGS, pyarrow.dictionary(pyarrow.int8(), pyarrow.string())], ids=str)
def test_columns_of_all_string_types_are_read(write_table, read_rows, as_type):
    texts = pyarrow.array(["a", "b", "a"], pyarrow.string()).cast(as_type)
    path = write_table({"id": [1, 2, 3], "reference": ["x", "", "zwölf"], "candidate": texts})
    assert read_rows(path) == [["a", "x"], ["b", ""], ["a", "zwölf"]]


@pytest.mark.parametrize(
    "as_type",
    [pyarrow.list_(pyarrow.string()), pyarrow.large_list(pyarrow.large_string()), pyarrow.list_(pyarrow.string(), 2)],
)
def test_lists_are_several_references(write_table, read_rows, as_type):
    references = pyarrow.array([["x", "y"], ["z", "w"]], as_type)
    path = write_table({"candidate": ["a", "b"], "references": references})
    assert read_rows(path) == [["a", "x", "y"], ["b", "z", "w"]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"mt": ["a"]}, ": there is no column 'candidate', only 'mt'. Name one with --columns candidate=NAME."),
        ({"candidate": [1], "reference": ["b"]}, ": the column 'candidate' is of type int64; expected string."),
        ({"candidate": ["a"], "reference": [[1]]}, ": the column 'reference' is of type list<.*int64>; expected "),
        ({"candidate": [["a"]], "reference": ["b"]}, ": the column 'candidate' is of type list<.*>; expected string."),
        ({"candidate": ["a", "b", None], "reference": ["x"] * 3}, ", row 3: the column 'candidate' holds null"),
        (
            {"candidate": ["a"], "reference": pyarrow.array([[]], pyarrow.list_(pyarrow.string()))},
            ", row 1: .* an empty list",
        ),
    ],
)
def test_faults_of_parquet_are_reported_with_their_row(write_table, read_rows, columns, message):
    with pytest.raises(InputError, match=rf"pairs\.parquet{message}"):
        read_rows(write_table(columns))


def test_damaged_files_are_refused(write_table, write, read_rows):
    content = write_table({"candidate": ["a"], "reference": ["b"]}, "sound.parquet").read_bytes()
    for damaged in (b"", b"text\n", content[:-8], content[:4] + bytes(len(content) - 12) + content[-8:]):
        with pytest.raises(InputError, match=r"damaged\.parquet, after row 0, cannot be read as Parquet"):
            read_rows(write("damaged.parquet", damaged))


def test_a_missing_extra_is_named(write_table, read_rows, monkeypatch):
    path = write_table({"candidate": ["a"], "reference": ["b"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="Install the extras parquet and cpu: `pip install"):
        read_rows(path)
