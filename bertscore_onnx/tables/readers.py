"""Reads tables in TSV, CSV, JSON lines and Parquet row by row; a few rows are in memory at a time."""

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.sources import MAX_LINE_BYTES, InputFormat, Source, read_lines

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

Record = dict[str, object]
"""The values of a row by column."""

Row = tuple[str, Record]
"""The place of a row, such as `pairs.tsv, line 3`, and its values."""


class TableReader(ABC):
    """The rows of an open table, which can be read once."""

    names: list[str] | None
    """The columns; None in JSON lines, where each object has its own."""

    place: str
    """The place of the names, for messages."""

    @abstractmethod
    def records(self) -> Iterator[Row]:
        """Yield the rows."""

    @abstractmethod
    def texts(self, columns: Sequence[Column]) -> Iterator[list[str]]:
        """Yield the texts of some columns, row by row; raise InputError if one is missing, or holds no texts."""


def open_table(
    source: Source, table_format: InputFormat, *, has_header: bool = True, has_quotes: bool = True
) -> TableReader:
    """Open a table; Parquet needs a seekable source.

    In TSV and CSV without a header the columns are called 1, 2, and so on. A field may be in double quotes, with those
    in it doubled, unless quotes are characters like others.
    """
    if table_format == "jsonl":
        return _JsonLines(source)
    if table_format == "parquet":
        return _Parquet(source)
    return _Delimited(source, "\t" if table_format == "tsv" else ",", has_header=has_header, has_quotes=has_quotes)


def read_batches(table: TableReader, max_rows: int, max_size: int) -> Iterator[list[Record]]:
    """Yield the rows in batches of at most `max_rows`, and of about `max_size` characters if there are several rows."""
    batch: list[Record] = []
    size = 0
    for _, record in table.records():
        batch.append(record)
        size += sum(len(value) for value in record.values() if isinstance(value, str | list))
        if len(batch) == max_rows or size >= max_size:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# TSV and CSV.


class _Delimited(TableReader):
    def __init__(self, source: Source, delimiter: str, *, has_header: bool, has_quotes: bool) -> None:
        self._delimiter, self._has_header, self._has_quotes = delimiter, has_header, has_quotes
        self._fields = self._read(source)
        self.place, self._first = next(self._fields)
        self.names: list[str] = self._first if has_header else [str(n) for n in range(1, len(self._first) + 1)]

    def records(self) -> Iterator[Row]:
        for place, fields in self._rows():
            yield place, dict(zip(self.names, fields, strict=True))

    def texts(self, columns: Sequence[Column]) -> Iterator[list[str]]:
        advice = ", or add --no-header where the first line is none" if self._has_header else ""
        positions = [self.names.index(column.find(self.names, self.place, advice)) for column in columns]
        for _, fields in self._rows():
            yield [fields[position] for position in positions]

    def _rows(self) -> Iterator[tuple[str, list[str]]]:
        first = [] if self._has_header else [(self.place, self._first)]
        for place, fields in chain(first, self._fields):
            if len(fields) != len(self.names):
                raise InputError(
                    f"{place}: there {'is 1 field' if len(fields) == 1 else f'are {len(fields)} fields'}; expected "
                    f"{len(self.names)}, as in the first line.{self._hint(fields)}"
                )
            yield place, fields

    def _read(self, source: Source) -> Iterator[tuple[str, list[str]]]:
        """Yield the place where each row begins, and its fields."""
        csv.field_size_limit(MAX_LINE_BYTES)  # of the process; it is 131,072 otherwise
        lines = _Lines(source, f"{'a header and ' if self._has_header else ''}a row of fields for each text")
        reader = csv.reader(
            lines,
            delimiter=self._delimiter,
            quoting=csv.QUOTE_MINIMAL if self._has_quotes else csv.QUOTE_NONE,
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

    def _hint(self, fields: Sequence[str]) -> str:
        other = next((name for character, name in _DELIMITERS.items() if character in self._first[0]), "")
        if other and len(self._first) == 1:
            return f" The first line has {other}; expected {_DELIMITERS[self._delimiter]} between the fields."
        return _QUOTES if self._has_quotes and any('"' in field or "\n" in field for field in fields) else ""


_QUOTES = (
    " A field in double quotes has those in it doubled. Where quotes are characters of the texts, add --no-quotes."
)

_DELIMITERS = {";": "semicolons", "\t": "tabs", ",": "commas"}


class _Lines:
    """The lines of a source; the lines of one row may have `MAX_LINE_BYTES` characters together."""

    def __init__(self, source: Source, expected: str) -> None:
        self._title = source.title
        self._lines = read_lines(source, expected, keep_ends=True)
        self._number = 0
        self._row_size = 0

    def begin_row(self) -> str:
        """Return the place where the next row begins."""
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
                f"{self._title} has a row of more than {MAX_LINE_BYTES:,} characters, which continues in line "
                f"{self._number}. Is a quote not closed?{_QUOTES}"
            )
        return line


# JSON lines: one object per line.


class _JsonLines(TableReader):
    names = None

    def __init__(self, source: Source) -> None:
        self._source = source
        self.place = source.title

    def records(self) -> Iterator[Row]:
        for number, line in enumerate(read_lines(self._source, "a JSON object a line", may_be_empty=True), 1):
            if line.strip():
                place = f"{self.place}, line {number}"
                yield place, _decoded(line, place)

    def texts(self, columns: Sequence[Column]) -> Iterator[list[str]]:
        for place, values in self.records():
            names = [column.find([*values], place) for column in columns]
            yield [
                text
                for column, name in zip(columns, names, strict=True)
                for text in column.texts_of(values[name], name, place)
            ]


def _decoded(line: str, place: str) -> Record:
    try:
        return _OBJECTS.decode(line)
    except msgspec.ValidationError as error:
        raise InputError(f"{place}: expected a JSON object.{_ONE_PER_LINE}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{place}: expected a JSON object ({error}).{_ONE_PER_LINE}") from error


_OBJECTS = msgspec.json.Decoder(dict[str, object])

_ONE_PER_LINE = " Write one object per line; `jq -c '.[]' FILE > NEW_FILE` does so for an array."


# Parquet, with the extra `parquet`.

_ROWS_AT_ONCE = 1024


class _Parquet(TableReader):
    def __init__(self, source: Source) -> None:
        self.place = source.title
        self._num_read = 0
        with needs_extra("parquet,cpu", "Reading Parquet"):
            import pyarrow  # noqa: F401 -- whether it is installed
        with parquet_errors(self._progress):
            self._file = open_parquet(source.raw())
            self._schema = self._file.schema_arrow
        self.names: list[str] = self._schema.names

    def records(self) -> Iterator[Row]:
        for place, values in self._rows(self.names):
            yield place, dict(zip(self.names, values, strict=True))

    def texts(self, columns: Sequence[Column]) -> Iterator[list[str]]:
        names = find_texts(self._schema, columns, self.place)
        for place, values in self._rows(names):
            yield [
                text
                for column, name, value in zip(columns, names, values, strict=True)
                for text in column.texts_of(value, name, place)
            ]

    def _rows(self, names: Sequence[str]) -> Iterator[tuple[str, tuple[object, ...]]]:
        with parquet_errors(self._progress):
            for batch in self._file.iter_batches(_ROWS_AT_ONCE, columns=names, use_threads=False):
                for values in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                    self._num_read += 1
                    yield f"{self.place}, row {self._num_read}", values

    def _progress(self) -> str:
        return f"{self.place}, after row {self._num_read},"


def open_parquet(file: object) -> "parquet.ParquetFile":
    """Open a path or a file; without these two settings it would read a whole row group at a time."""
    from pyarrow import parquet

    return parquet.ParquetFile(file, buffer_size=1_000_000, pre_buffer=False)


@contextmanager
def parquet_errors(place: Callable[[], str]) -> Iterator[None]:
    """Translate errors of a file that is damaged, or is not Parquet, to InputError."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"{place()} cannot be read as Parquet: {reason}. Write or copy it again.") from error


def find_texts(schema: "pyarrow.Schema", columns: Sequence[Column], title: str) -> list[str]:
    """Return the names of some columns in a schema; raise InputError if one is missing, or not of texts."""
    names = [column.find(schema.names, title) for column in columns]
    for column, name in zip(columns, names, strict=True):
        _check_type(schema.field(name).type, column, name, title)
    return names


def _check_type(given: "pyarrow.DataType", column: Column, name: str, title: str) -> None:
    from pyarrow import types

    item = given
    if column.may_hold_lists and (types.is_list(item) or types.is_large_list(item) or types.is_fixed_size_list(item)):
        item = item.value_type
    if types.is_dictionary(item):
        item = item.value_type
    if not (types.is_string(item) or types.is_large_string(item) or types.is_string_view(item)):
        expected = "string, or a list of that" if column.may_hold_lists else "string"
        raise InputError(f"{title}: the column {name!r} is of type {given}; expected {expected}.")
