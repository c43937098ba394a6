import sys

import pytest

from bertscore_onnx.errors import InputError, MissingExtraError
from bertscore_onnx.tables import readers

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
    """Write candidates and references; a row may have 1,000 bytes, and 5,000 are decoded at a
    time.
    """
    monkeypatch.setattr(readers, "MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr(readers, "MAX_DECODED_BYTES", DECODED)

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


def test_large_rows_are_decoded_a_few_at_a_time(write_pairs, read_rows, monkeypatch):
    sizes = []
    check = readers.check_row_sizes
    monkeypatch.setattr(
        readers,
        "check_row_sizes",
        lambda batch, *place: (sizes.append(batch.nbytes), check(batch, *place)),
    )
    texts = [f"{number:03}" * 300 for number in range(50)]
    assert read_rows(write_pairs(texts, ["b"] * 50)) == [[text, "b"] for text in texts]
    assert max(sizes) < 1.1 * DECODED


def test_small_rows_are_decoded_together(write_pairs, read_rows, monkeypatch):
    monkeypatch.setattr(readers, "MAX_DECODED_BYTES", 64_000_000)
    counts = []
    monkeypatch.setattr(readers, "check_row_sizes", lambda batch, *_: counts.append(batch.num_rows))
    texts = [f"the cat number {number} sat on the mat" for number in range(3000)]
    assert len(read_rows(write_pairs(texts, texts))) == 3000
    assert counts == [1024, 1024, 952]
