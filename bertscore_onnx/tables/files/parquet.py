"""Reads columns of Parquet, with the extra `parquet`."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.files.sources import Source

if TYPE_CHECKING:
    import pyarrow

_ROWS_AT_ONCE = 1024


def read_parquet(source: Source, columns: Sequence[Column]) -> Iterator[list[str]]:
    """Yield the texts of some columns, row by row; a few rows are in memory at a time.

    Args:
        source: what to read, which must be rereadable.
        columns: the columns.

    Raises:
        InputError: it is not Parquet, or damaged; or a column is missing, or holds other things than texts.
        MissingExtraError: pyarrow is not installed.
    """
    names: list[str] = []

    def choose(schema: "pyarrow.Schema") -> list[str]:
        names.extend(column.find(schema.names, source.title) for column in columns)
        for column, name in zip(columns, names, strict=True):
            check_type(schema.field(name).type, column, name, source.title)
        return names

    for place, values in read_values(source, choose):
        yield [
            text
            for column, name, value in zip(columns, names, values, strict=True)
            for text in column.texts_of(value, name, place)
        ]


def read_values(
    source: Source, choose: Callable[["pyarrow.Schema"], Sequence[str]]
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield where each row stands, and its values in some columns; a few rows are in memory at a time.

    Args:
        source: what to read, which must be rereadable.
        choose: says which columns, once it is known which there are.

    Raises:
        InputError: it is not Parquet, or damaged.
        MissingExtraError: pyarrow is not installed.
    """
    with needs_extra("parquet,cpu", "Reading Parquet"):
        import pyarrow
        from pyarrow import parquet
    number = 0
    try:
        # Without these two settings it would read a whole row group at a time.
        file = parquet.ParquetFile(source.raw(), buffer_size=1_000_000, pre_buffer=False)
        names = choose(file.schema_arrow)
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=names, use_threads=False):
            for values in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                number += 1
                yield f"{source.title}, row {number}", values
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(f"{source.title}, after row {number},", error) from error


def unreadable(place: str, error: Exception) -> InputError:
    """Return the error that says that a file is no Parquet or damaged, and where."""
    return InputError(f"{place} cannot be read as Parquet: {str(error).rstrip('.')}. Write or copy it again.")


def check_type(given: "pyarrow.DataType", column: Column, name: str, title: str) -> None:
    """Raise an InputError where a column of this type holds no texts.

    Args:
        given: the type.
        column: what the column is for.
        name: its name.
        title: the file.
    """
    from pyarrow import types

    item = given
    if column.may_hold_lists and (types.is_list(item) or types.is_large_list(item) or types.is_fixed_size_list(item)):
        item = item.value_type
    if types.is_dictionary(item):
        item = item.value_type
    if not (types.is_string(item) or types.is_large_string(item) or types.is_string_view(item)):
        expected = "string, or a list of that" if column.may_hold_lists else "string"
        raise InputError(f"{title}: the column {name!r} is of type {given}; expected {expected}.")
