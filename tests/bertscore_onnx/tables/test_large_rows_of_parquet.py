"""Rows of Parquet are bounded, however few bytes of the file they come from."""

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables import readers

pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
parquet = pytest.importorskip("pyarrow.parquet")

LIMIT, DECODED = 1000, 5000


@pytest.fixture
def write_table(tmp_path, monkeypatch):
    """Write a Parquet file and return its path; a row may have 1,000 bytes, and 5,000 are decoded at a time."""
    monkeypatch.setattr(readers, "MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr(readers, "MAX_DECODED_BYTES", DECODED)

    def write_table(candidates, references, **options):
        path = tmp_path / "pairs.parquet"
        table = pyarrow.table({"candidate": candidates, "reference": references})
        parquet.write_table(table, path, compression="zstd", **options)
        return path

    return write_table


@pytest.mark.parametrize(
    "options",
    [{}, {"use_dictionary": False}, {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}],
    ids=str,
)
@pytest.mark.parametrize("large", [["x" * 5000] * 20, ["x" * 1001, *["a"] * 19], ["a", "x" * 900 + "é" * 101]])
def test_a_row_of_too_many_bytes_is_refused(write_table, read_rows, options, large):
    for columns in ((large, ["b"] * len(large)), (["b"] * len(large), [[text] for text in large])):
        with pytest.raises(
            InputError, match=r"has (more than 1,000 bytes in a? ?row|a dictionary of more than 5,000 bytes)"
        ):
            read_rows(write_table(*columns, **options))


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=str)
def test_large_rows_are_decoded_a_few_at_a_time(write_table, read_rows, monkeypatch, options):
    sizes = []
    check = readers.check_row_sizes
    monkeypatch.setattr(
        readers, "check_row_sizes", lambda batch, *place: (sizes.append(batch.nbytes), check(batch, *place))
    )
    texts = ["x" * 900] * 50
    assert read_rows(write_table(texts, ["b"] * 50, **options)) == [[text, "b"] for text in texts]
    assert max(sizes) < 1.1 * DECODED
    sizes.clear()
    assert len(read_rows(write_table(["a"] * 50, [["x" * 400, "y" * 400]] * 50, **options))) == 50
    assert max(sizes) < 1.1 * DECODED


def test_small_rows_are_decoded_together(write_table, read_rows, monkeypatch):
    monkeypatch.setattr(readers, "MAX_DECODED_BYTES", 64_000_000)
    counts = []
    monkeypatch.setattr(readers, "check_row_sizes", lambda batch, *_: counts.append(batch.num_rows))
    texts = [f"the cat number {number} sat on the mat" for number in range(3000)]
    assert len(read_rows(write_table(texts, texts))) == 3000
    assert counts == [1024, 1024, 952]


def test_a_large_dictionary_and_many_values_are_refused(write_table, read_rows, monkeypatch):
    texts = [f"{number} {'x' * 900}" for number in range(20)] + ["a"] * 20
    with pytest.raises(InputError, match="a dictionary of more than 5,000 bytes"):
        read_rows(write_table(texts, ["b"] * 40))
    monkeypatch.setattr(readers, "MAX_VALUES", 10)
    with pytest.raises(InputError, match="more than 10 values in a row group"):
        read_rows(write_table(["a"], [["b"] * 11]))
