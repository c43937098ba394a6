import sys

import pytest

from bertscore_onnx.errors import InputError, MissingExtraError
from bertscore_onnx.tables import parquet as parquet_files
from bertscore_onnx.tables.readers import open_table
from bertscore_onnx.tables.sources import open_source

pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def write_table(tmp_path):
    def write_table(columns, name="pairs.parquet", row_group_size=2, **options):
        parquet.write_table(
            pyarrow.table(columns), tmp_path / name, row_group_size, compression="zstd", **options
        )
        return tmp_path / name

    return write_table


STRINGS = [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()]


@pytest.mark.parametrize(
    "as_type", [*STRINGS, pyarrow.dictionary(pyarrow.int8(), pyarrow.string())], ids=str
)
def test_columns_of_all_string_types_are_read(write_table, read_rows, as_type):
    texts = pyarrow.array(["a", "b", "a"], as_type)
    try:
        path = write_table({"id": [1, 2, 3], "reference": ["x", "", "zwölf"], "candidate": texts})
    except pyarrow.ArrowNotImplementedError:
        pytest.skip(f"pyarrow {pyarrow.__version__} does not write {as_type}")
    assert read_rows(path) == [["a", "x"], ["b", ""], ["a", "zwölf"]]


@pytest.mark.parametrize(
    "as_type",
    [
        pyarrow.list_(pyarrow.string()),
        pyarrow.large_list(pyarrow.large_string()),
        pyarrow.list_(pyarrow.string(), 2),
    ],
)
def test_lists_are_several_references(write_table, read_rows, as_type):
    references = pyarrow.array([["x", "y"], ["z", "w"]], as_type)
    path = write_table({"candidate": ["a", "b"], "references": references})
    assert read_rows(path) == [["a", "x", "y"], ["b", "z", "w"]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"candidate": [1], "reference": ["b"]}, "'candidate' is of type int64"),
        ({"candidate": ["a"], "reference": [[1]]}, "'reference' is of type list<.*int64>"),
        ({"candidate": [["a"]], "reference": ["b"]}, "'candidate' is of type list<"),
        ({"candidate": ["a", "b", None], "reference": ["x"] * 3}, "row 3: .*'candidate'"),
        (
            {"candidate": ["a"], "reference": pyarrow.array([[]], pyarrow.list_(pyarrow.string()))},
            "row 1: .* empty list",
        ),
    ],
)
def test_faults_of_parquet_are_reported_with_their_row(write_table, read_rows, columns, message):
    with pytest.raises(InputError, match=rf"pairs\.parquet.*{message}"):
        read_rows(write_table(columns))


def test_a_missing_extra_is_named(write_table, read_rows, monkeypatch):
    path = write_table({"candidate": ["a"], "reference": ["b"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="parquet"):
        read_rows(path)


# Rows of a bounded size.

LIMIT, DECODED = 1000, 5000


@pytest.fixture
def write_pairs(write_table, monkeypatch):
    """Write candidates and references; a row may have 1,000 bytes."""
    monkeypatch.setattr(parquet_files, "MAX_LINE_BYTES", LIMIT)

    def write_pairs(candidates, references, **options):
        return write_table(
            {"candidate": candidates, "reference": references}, row_group_size=None, **options
        )

    return write_pairs


def test_a_row_of_too_many_bytes_is_refused(write_pairs, read_rows):
    large = ["a", "x" * 900 + "é" * 101]
    for columns in ((large, ["b"] * 2), (["b"] * 2, [[text] for text in large])):
        with pytest.raises(InputError, match=r"1,000 bytes .*row 2"):
            read_rows(write_pairs(*columns))


@pytest.mark.parametrize(("size", "expected"), [(DECODED, 5), (8_000_000, 256)])
def test_rows_are_decoded_together_up_to_a_size(write_pairs, monkeypatch, size, expected):
    monkeypatch.setattr(parquet_files, "MAX_BATCH_SIZE", size)
    texts = [f"{number:03}" * 300 for number in range(300)]
    with open_source(str(write_pairs(texts, ["b"] * 300))) as source:
        batches = list(open_table(source, "parquet").batches(["candidate"]))
    assert max(len(rows) for _, rows in batches) in range(expected // 2, expected + 1)
    assert [text for _, rows in batches for text in rows.values("candidate")] == texts
