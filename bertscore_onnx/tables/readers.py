"""Reads the columns of CSV and TSV."""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.sources import MAX_LINE_BYTES, Source, read_lines

if TYPE_CHECKING:
    import pyarrow


Row = tuple[str, list[str]]
"""Where a row begins, and its fields."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How fields are written."""

    delimiter: str
    has_header: bool = True
    """Whether the first line has the names of the columns; without it they are called 1, 2, and so on."""

    has_quotes: bool = True
    """Whether a field may be in double quotes, with those in it doubled; otherwise they are characters like others."""


def read_delimited(source: Source, columns: Sequence[Column], dialect: Dialect) -> Iterator[list[str]]:
    """Yield the texts of some columns, row by row.

    Args:
        source: what to read; the lines and their errors are those of `read_lines`.
        columns: the columns.
        dialect: how fields are written; within quotes they may have line ends.

    Raises:
        InputError: a column is missing, a row has more or fewer fields than the first one, or quotes do not match.
    """
    place, names, rows = read_rows(source, dialect)
    advice = ", or add --no-header where the first line is none" if dialect.has_header else ""
    positions = [names.index(column.find(names, place, advice)) for column in columns]
    for _, fields in rows:
        yield [fields[position] for position in positions]


def read_rows(source: Source, dialect: Dialect) -> tuple[str, list[str], Iterator[Row]]:
    """Return where the first line stands, the names of the columns, and the rows with as many fields each.

    Args:
        source: what to read.
        dialect: how fields are written.

    Raises:
        InputError: there are no lines; as the rows are read, those of `read_delimited`.
    """
    rows = _rows(source, dialect)
    place, header = next(rows)
    if dialect.has_header:
        return place, header, _even_rows(rows, header, dialect)
    names = [str(number) for number in range(1, len(header) + 1)]
    return place, names, chain([(place, header)], _even_rows(rows, header, dialect))


def _even_rows(rows: Iterator[Row], header: Sequence[str], dialect: Dialect) -> Iterator[Row]:
    for place, fields in rows:
        if len(fields) != len(header):
            raise InputError(
                f"{place}: there {'is 1 field' if len(fields) == 1 else f'are {len(fields)} fields'}; expected "
                f"{len(header)}, as in the first line.{_hint(fields, header, dialect)}"
            )
        yield place, fields


def _rows(source: Source, dialect: Dialect) -> Iterator[Row]:
    """Yield the fields of each row, and the place where it begins."""
    csv.field_size_limit(MAX_LINE_BYTES)  # of the process; it is 131,072 otherwise
    lines = _Lines(source, f"{'a header and ' if dialect.has_header else ''}a row of fields for each text")
    reader = csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.has_quotes else csv.QUOTE_NONE,
        strict=True,
    )
    while True:
        place = lines.begin_row()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{place}: {error}.{_QUOTES}") from error
        yield place, fields or [""]  # an empty line is one empty field


_QUOTES = (
    " A field in double quotes has those in it doubled. Where quotes are characters of the texts, add --no-quotes."
)


_DELIMITERS = {";": "semicolons", "\t": "tabs", ",": "commas"}


def _hint(fields: Sequence[str], header: Sequence[str], dialect: Dialect) -> str:
    other = next((name for character, name in _DELIMITERS.items() if character in header[0]), "")
    if other and len(header) == 1:
        return f" The first line has {other}; expected {_DELIMITERS[dialect.delimiter]} between the fields."
    return _QUOTES if dialect.has_quotes and any('"' in field or "\n" in field for field in fields) else ""


class _Lines:
    """The lines of a source; one row may take lines of `MAX_LINE_BYTES` characters together."""

    def __init__(self, source: Source, expected: str) -> None:
        self._title = source.title
        self._lines = read_lines(source, expected, keep_ends=True)
        self._number = 0
        self._row_size = 0

    def begin_row(self) -> str:
        """Return where the next row begins."""
        self._row_size = 0
        return f"{self._title}, line {self._number + 1}"

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._number += 1
        self._row_size += len(line)
        if self._row_size > MAX_LINE_BYTES + len("\r\n"):
            raise InputError(
                f"{self._title} has a row of more than {MAX_LINE_BYTES:,} characters, which goes on in line "
                f"{self._number}. Is a quote not closed?{_QUOTES}"
            )
        return line


# Reads fields of JSON lines: one object a line.


def read_json_lines(source: Source, columns: Sequence[Column]) -> Iterator[list[str]]:
    """Yield the texts of some fields, object by object; blank lines are skipped.

    Args:
        source: what to read; the lines and their errors are those of `read_lines`.
        columns: the fields.

    Raises:
        InputError: a line is not an object, or one of its fields is missing, or no text.
    """
    for place, fields in read_objects(source):
        names = [column.find([*fields], place) for column in columns]
        yield [
            text
            for column, name in zip(columns, names, strict=True)
            for text in column.texts_of(fields[name], name, place)
        ]


def read_objects(source: Source) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield where each object stands, and its fields; blank lines are skipped.

    Raises:
        InputError: a line is not an object; the lines and their errors are those of `read_lines`.
    """
    for number, line in enumerate(read_lines(source, "a JSON object a line"), 1):
        if line.strip():
            place = f"{source.title}, line {number}"
            yield place, _decoded(line, place)


def _decoded(line: str, place: str) -> dict[str, object]:
    try:
        return _OBJECTS.decode(line)
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: expected a JSON object.{_ONE_A_LINE}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{place}: expected a JSON object ({error}).{_ONE_A_LINE}") from error


_OBJECTS = msgspec.json.Decoder(dict[str, object])

_ONE_A_LINE = " Objects stand one a line; `jq -c '.[]' FILE > NEW_FILE` writes those of an array so."


# Reads columns of Parquet, with the extra `parquet`.


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
