"""Reads tables in TSV, CSV, JSON lines and Parquet row by row.

A few rows are in memory at a time.
"""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from bertscore_onnx.errors import InputError, needs_extra, shortened
from bertscore_onnx.tables.batches import SIGNATURE
from bertscore_onnx.tables.columns import (
    Column,
    UnreadableRow,
    check_free,
    find_columns,
    texts_of_row,
)
from bertscore_onnx.tables.sources import (
    BYTE_ORDER_MARK,
    DEFAULT_DIALECT,
    MAX_HELD_BYTES,
    MAX_LINE_BYTES,
    VALUE_BYTES,
    Dialect,
    InputFormat,
    Source,
    read_lines,
    too_long,
    utf8_fault,
)

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet

Record = dict[str, object]
"""The values of a row by column."""

_Fields = list[str] | InputError
"""The fields of a row of a TSV or CSV, or the reason why it has none."""

Row = tuple[str, Record]
"""The place of a row, such as `pairs.tsv, line 3`, and its values."""

RawRow = Any
"""A row as the file has it: its text without the line end, or in Parquet a batch and the number of
its row.
"""


class TableReader(ABC):
    """The rows of an open table, which can be read once."""

    names: list[str] | None
    """The columns; None in JSON lines, where each object has its own."""

    size = 0
    """About the bytes of memory that all rows so far take."""

    place: str
    """The place of the names, for messages."""

    advice = ""
    """Extra advice in the error for a missing column."""

    signature = ""
    """The signature of the scores, if the file has one."""

    @abstractmethod
    def records(self) -> Iterator[Row]:
        """Yield the rows."""

    def texts(self, columns: Sequence[Column]) -> Iterator[list[str]]:
        """Yield the texts of some columns, row by row.

        Raise InputError if one is missing, or holds no texts.
        """
        return (texts for texts, _ in self.rows(columns, keeps_rows=False))

    @abstractmethod
    def rows(
        self, columns: Sequence[Column], *, keeps_rows: bool = True
    ) -> Iterator[tuple[list[str], RawRow]]:
        """Yield the texts of some columns, as `texts` does, and the rows.

        A row is as the file has it, if rows are kept.
        """

    @abstractmethod
    def record_of(self, row: RawRow) -> Record:
        """Return the values of a row that was read."""


def open_table(
    source: Source,
    table_format: InputFormat,
    dialect: Dialect = DEFAULT_DIALECT,
    *,
    added: Collection[str] = (),
    keep_faults: bool = False,
) -> TableReader:
    """Open a table.

    Parquet needs a seekable source. InputError is raised if it has a column that is to be added.

    With `keep_faults` the records of text formats have an `UnreadableRow` for a row that cannot be
    read.
    """
    if table_format == "jsonl":
        return JsonLinesReader(source, added, keep_faults)
    if table_format == "parquet":
        return ParquetReader(source, added)
    return DelimitedReader(source, table_format, dialect, added, keep_faults)


MAX_ROWS = 256
"""The most rows of a batch; batches are small, since a row may be large."""

MAX_BATCH_SIZE = 8_000_000
"""About how many characters, or bytes in Parquet, a batch may have, if it has more than one row."""


def read_batches(table: TableReader, max_rows: int, max_size: int) -> Iterator[list[Record]]:
    """Yield the rows in batches.

    A batch has at most `max_rows`, and about `max_size` characters if it has several rows.
    """
    batch: list[Record] = []
    start = table.size
    for _, record in table.records():
        batch.append(record)
        if len(batch) == max_rows or table.size - start >= max_size:
            yield batch
            batch = []
            start = table.size
    if batch:
        yield batch


def read_whole(table: TableReader) -> list[Row]:
    """Return all rows.

    Raise InputError if they would take more memory than `MAX_HELD_BYTES`.
    """
    rows = []
    for row in table.records():
        rows.append(row)
        if table.size > MAX_HELD_BYTES:
            raise too_long(table.place)
    return rows


def check_header(names: Sequence[str], place: str) -> None:
    """Raise InputError for a column that occurs again.

    A row by columns has one value of each.
    """
    for name, number in Counter(names).items():
        if number > 1:
            raise InputError(
                f"{place}: there are {number} columns {name!r}; expected one. Rename them."
            )


# TSV and CSV.


class DelimitedReader(TableReader):
    """A TSV or CSV."""

    def __init__(
        self,
        source: Source,
        table_format: InputFormat,
        dialect: Dialect,
        added: Collection[str],
        keep_faults: bool = False,
    ) -> None:
        self.format = table_format
        self._keep_faults = keep_faults
        self.has_header = dialect.has_header
        self._has_quotes = dialect.has_quotes
        self._title = source.title
        self._num_lines = self._num_characters = self._row_start = 0
        self._parts: list[str] | None = []
        """The lines of the current row, if rows are kept as they stand."""
        expected = "a row of fields for each text"
        if self.has_header:
            expected = f"a header and {expected}"
        lines = read_lines(
            source, expected, keep_ends=True, keep_marks=True, keep_faults=keep_faults
        )
        marked = next(lines)
        first = marked.lstrip(BYTE_ORDER_MARK)
        csv.field_size_limit(MAX_LINE_BYTES)  # of the process; it is 131,072 otherwise
        default = self._default_delimiter(first)
        self.delimiter = dialect.delimiter or default
        self._fields = self._read(chain([first], lines))
        number, fields = next(self._fields)
        self._first = self._checked(number, fields, None)
        self.place = self._place(number)
        self.header = marked.removesuffix(first) + self._row
        """The first row as the file has it, without its line end."""
        last = self._parts[-1]
        self.line_end = last[len(last.rstrip("\r\n")) :] or "\n"
        self.names: list[str]
        if self.has_header:
            self.names = self._first
            self.advice = ", or set header=no in --input-format if the first line is not a header"
        else:
            self.names = list(map(str, range(1, len(self._first) + 1)))
        if len(self.names) == 1:
            self.advice += ", or set delimiter=CHARACTER in --input-format"
        check_free(self.names, added, self.place)

    def _default_delimiter(self, first_line: str) -> str:
        if self.format == "tsv":
            return "\t"
        return _delimiter_of(first_line) if self.has_header else ","

    def records(self) -> Iterator[Row]:
        """Yield the rows with their places."""
        self._parts = None
        check_header(self.names, self.place)
        for number, fields in self._rows():
            self.size = self._num_characters + VALUE_BYTES * self._num_lines * len(self.names)
            place = self._place(number)
            record: Record
            try:
                checked = self._checked(number, fields, len(self.names))
                record = dict(zip(self.names, checked, strict=True))
            except InputError as error:
                if not self._keep_faults:
                    raise
                record = UnreadableRow(str(error).removeprefix(place).lstrip(": "))
            yield place, record

    def rows(
        self, columns: Sequence[Column], *, keeps_rows: bool = True
    ) -> Iterator[tuple[list[str], RawRow]]:
        """Yield the texts of some columns, and the rows."""
        found = find_columns(columns, self.names, self.place, self.advice)
        positions = [self.names.index(column.name) for column in found]
        if not keeps_rows:
            self._parts = None
        for number, fields in self._rows():
            checked = self._checked(number, fields, len(self.names))
            values = [checked[position] for position in positions]
            yield texts_of_row(found, values, self._place(number)), self._row

    def record_of(self, row: RawRow) -> Record:
        """Return the values of a row."""
        check_header(self.names, self.place)
        return dict(zip(self.names, self.fields_of(row), strict=True))

    def fields_of(self, row: RawRow) -> list[str]:
        """Return the fields of a row that was read."""
        return next(self._parsed([row]), None) or [""]

    @property
    def _row(self) -> str:
        """The current row as the file has it, without its line end."""
        *parts, last = self._parts or [""]
        return "".join(parts) + last.rstrip("\r\n")

    def _rows(self) -> "Iterator[tuple[int, _Fields]]":
        """Yield the rows below the header.

        These are the number of the line where each begins, and its fields or its fault.
        """
        num_fields = len(self.names)
        first = [] if self.has_header else [(1, self._first)]
        for number, fields in chain(first, self._fields):
            # Blank lines, and rows of a spreadsheet without a cell. In a single column they are
            # empty texts.
            is_row = isinstance(fields, InputError) or any(fields)
            if is_row or num_fields == 1:
                yield number, fields

    def _checked(self, number: int, fields: "_Fields", num_fields: int | None) -> list[str]:
        """Return the fields of a row.

        Raise InputError for a fault, or unless they are as many as given.
        """
        if isinstance(fields, InputError):
            raise fields
        fields = fields or [""]
        if num_fields is not None and len(fields) != num_fields:
            there_are = f"there are {len(fields)} fields"
            if len(fields) == 1:
                there_are = "there is 1 field"
            whole = "".join(fields)
            has_marks = self._has_quotes and ('"' in whole or "\n" in whole)
            advice = _QUOTES if has_marks else ""
            raise InputError(
                f"{self._place(number)}: {there_are}; expected {num_fields}, as in the first line."
                f"{advice}"
            )
        if self._keep_faults:
            fault = utf8_fault("".join(fields))
            if fault:
                raise InputError(f"{self._place(number)}: {fault}")
        return fields

    def _read(self, lines: Iterator[str]) -> "Iterator[tuple[int, _Fields]]":
        """Yield the rows, the header too.

        These are the number of the line where each begins, and its fields or its fault; a blank
        line has no fields. The row after a fault begins with the next line. A quote that is not
        closed has no next line.
        """
        number = 1
        rows = self._parsed(self._bounded(lines))
        fields: _Fields | None
        while True:
            try:
                fields = next(rows, None)
            except csv.Error as error:
                place = self._place(number)
                if "end of data" in str(error):
                    raise InputError(f"{place}: a quote is not closed.{_QUOTES}") from error
                fields = InputError(
                    f"{place}: a character follows the end of a field in quotes.{_QUOTES}"
                )
            if fields is None:
                return
            yield number, fields
            self._row_start = self._num_characters
            number = self._num_lines + 1
            if self._parts:
                self._parts.clear()

    def _parsed(self, lines: Iterable[str]) -> "Iterator[list[str]]":
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quoting=csv.QUOTE_MINIMAL if self._has_quotes else csv.QUOTE_NONE,
            strict=True,
        )

    def _bounded(self, lines: Iterator[str]) -> Iterator[str]:
        """Yield the lines.

        The lines of one row may have `MAX_LINE_BYTES` characters together.
        """
        for line in lines:
            self._num_lines += 1
            self._num_characters += len(line)
            if self._num_characters - self._row_start > MAX_LINE_BYTES + len("\r\n"):
                raise InputError(
                    f"{self._title} has a row of more than {MAX_LINE_BYTES:,} characters, which "
                    f"continues in line {self._num_lines}. Is a quote not closed?{_QUOTES}"
                )
            if self._parts is not None:
                self._parts.append(line)
            yield line

    def _place(self, number: int) -> str:
        return f"{self._title}, line {number}"


def _delimiter_of(header: str) -> str:
    """Return the delimiter that the first line of a CSV shows.

    It is a comma, unless that leaves the line in one piece.
    """

    def count(delimiter: str) -> int:
        return len(next(csv.reader([header], delimiter=delimiter), ()))

    if count(",") > 1:
        return ","
    other = max(";\t", key=count)
    return other if count(other) > 1 else ","


_QUOTES = (
    " A field in double quotes has those in it doubled. Where quotes are characters of the "
    "texts, set quotes=no in --input-format."
)


# JSON lines: one object per line.


class JsonLinesReader(TableReader):
    """JSON lines."""

    names = None

    def __init__(self, source: Source, added: Collection[str], keep_faults: bool = False) -> None:
        self._source = source
        self._added = added
        self._keep_faults = keep_faults
        self.place = source.title

    def records(self) -> Iterator[Row]:
        """Yield the rows with their places."""
        for place, values, _ in self._rows():
            yield place, values

    def rows(
        self, columns: Sequence[Column], *, keeps_rows: bool = True
    ) -> Iterator[tuple[list[str], RawRow]]:
        """Yield the texts of some columns, and the rows."""
        available: list[str] | None = None
        for place, record, line in self._rows():
            # Most rows have the columns of the row before.
            if list(record) != available:
                available = list(record)
                found = find_columns(columns, available, place)
            values = [record.get(column.name) for column in found]
            yield texts_of_row(found, values, place), line

    def record_of(self, row: RawRow) -> Record:
        """Return the values of a row."""
        return _OBJECTS.decode(row)

    def _rows(self) -> Iterator[tuple[str, Record, str]]:
        lines = read_lines(
            self._source,
            "one JSON object per line",
            may_be_empty=True,
            keep_faults=self._keep_faults,
        )
        for number, line in enumerate(lines, 1):
            self.size += len(line) + VALUE_BYTES * (line.count(",") + 1)
            if not line.strip():
                continue
            place = f"{self.place}, line {number}"
            try:
                values = _decoded(line, place)
            except InputError as error:
                if not self._keep_faults:
                    raise
                values = UnreadableRow(str(error).removeprefix(f"{place}: "))
            has_cell = any(value is not None for value in values.values())
            if not has_cell and not isinstance(values, UnreadableRow):
                continue
            if self._added:
                check_free(values, self._added, place)
            yield place, values, line


def _decoded(line: str, place: str) -> Record:
    try:
        values = _OBJECTS.decode(line)
        if line.count(":") > len(values):  # a colon in a text, or a key that occurs again
            json.loads(
                line, object_pairs_hook=lambda pairs: unique_keys(pairs, place), parse_int=str
            )
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError) as error:
        fault = utf8_fault(line) or _fault_of_value(line)
        if not fault:
            fault = "expected a JSON object. Write one object per line"
            if not isinstance(error, msgspec.ValidationError):
                fault = f"{shortened(line.strip())!r} is no JSON; {fault}"
            if line.lstrip().startswith("["):
                fault += "; `jq -c '.[]' FILE > NEW_FILE` does so for an array"
            fault += "."
        raise InputError(f"{place}: {fault}") from error
    if values and all(isinstance(value, dict) for value in values.values()):
        raise InputError(
            f"{place}: it is an object of objects; expected a row. Write one object per line; "
            "`jq -c 'to_entries[] | {id: .key} + .value' FILE > NEW_FILE` does so."
        )
    return values


def _fault_of_value(line: str) -> str:
    """Return a sentence on a value that only Python's json reads.

    Empty if there is none.
    """
    faults = []

    def read_number(text: str) -> None:
        try:
            msgspec.json.decode(text)
        except msgspec.MsgspecError:
            faults.append(
                f"it holds {shortened(text)}, a number out of range. Write null, or a text."
            )

    def read_constant(name: str) -> None:
        faults.append(f"it holds {name}, which JSON does not have. Write null.")

    try:
        values = json.loads(
            line, parse_float=read_number, parse_int=read_number, parse_constant=read_constant
        )
        text = json.dumps(values, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
    if faults:
        return faults[0]
    # Python reads and writes half of a pair of surrogates, which has no UTF-8.
    half = re.search("[\ud800-\udfff]", text)
    if half:
        return f"it holds \\u{ord(half[0]):04x}, half of a pair of surrogates. Remove it."
    return ""


def unique_keys(pairs: list[tuple[str, object]], place: str) -> Record:
    """Return the pairs of a JSON object as a dict.

    Raise an InputError for a key that occurs again.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        [(twice, number)] = Counter(key for key, _ in pairs).most_common(1)
        raise InputError(f"{place}: the key {twice!r} occurs {number} times; expected once.")
    return values


_OBJECTS = msgspec.json.Decoder(dict[str, object])


# Parquet, with the extra `parquet`.

_ROWS_AT_ONCE = 1024

MAX_DECODED_BYTES = 64_000_000
"""About the most that rows of Parquet take which are decoded at a time."""


class ParquetReader(TableReader):
    """Parquet."""

    def __init__(self, source: Source, added: Collection[str]) -> None:
        self.place = source.title
        self._num_read = 0
        with needs_extra("parquet,cpu", "Reading Parquet"):
            import pyarrow  # noqa: F401 -- whether it is installed
        with parquet_errors(self._progress):
            self._file = open_parquet(source.raw())
            self.schema = self._file.schema_arrow
        self.names: list[str] = self.schema.names
        self.signature = (self.schema.metadata or {}).get(SIGNATURE, b"").decode(errors="replace")
        check_free(self.names, added, self.place)

    def records(self) -> Iterator[Row]:
        """Yield the rows with their places."""
        check_header(self.names, self.place)
        for place, values, _ in self._rows(self.names, self.names):
            yield place, dict(zip(self.names, values, strict=True))

    def rows(
        self, columns: Sequence[Column], *, keeps_rows: bool = True
    ) -> Iterator[tuple[list[str], RawRow]]:
        """Yield the texts of some columns, and the rows."""
        found = find_columns(columns, self.names, self.place)
        check_types(self.schema, found, self.place)
        names = [column.name for column in found]
        for place, values, row in self._rows(names, self.names if keeps_rows else names):
            yield texts_of_row(found, values, place), row

    def record_of(self, row: RawRow) -> Record:
        """Return the values of a row."""
        batch, position = row
        [record] = batch.slice(position, 1).to_pylist()
        return dict(record)

    def _rows(
        self, names: Sequence[str], kept: Sequence[str]
    ) -> Iterator[tuple[str, tuple[object, ...], RawRow]]:
        """Yield the values of some columns, and each row with columns to keep."""
        with parquet_errors(self._progress):
            for batch in self._batches(kept):
                columns = (batch.column(name).to_pylist() for name in names)
                for position, values in enumerate(zip(*columns, strict=True)):
                    self._num_read += 1
                    yield f"{self.place}, row {self._num_read}", values, (batch, position)

    def _batches(self, names: Sequence[str]) -> Iterator["pyarrow.RecordBatch"]:
        for group in range(self._file.metadata.num_row_groups):
            size = rows_at_once(self._file, group, names, _ROWS_AT_ONCE)
            for batch in self._file.iter_batches(
                size, row_groups=[group], columns=names, use_threads=False
            ):
                check_row_sizes(batch, self.place, self._num_read)
                self.size += batch.nbytes + VALUE_BYTES * batch.num_rows * batch.num_columns
                yield batch

    def _progress(self) -> str:
        return f"{self.place}, after row {self._num_read},"


def open_parquet(file: object, **options: object) -> "parquet.ParquetFile":
    """Open a path or a file.

    Without these two settings it would read a whole row group at a time.
    """
    from pyarrow import parquet

    return parquet.ParquetFile(file, buffer_size=1_000_000, pre_buffer=False, **options)


def rows_at_once(
    file: "parquet.ParquetFile", group: int, names: Sequence[str], max_rows: int
) -> int:
    """Return how many rows of a row group to decode at a time.

    They are `max_rows`, or fewer where the named columns are large.
    """
    metadata = file.metadata.row_group(group)
    starts = tuple(f"{name}." for name in names)
    size = 0
    for chunk in map(metadata.column, range(metadata.num_columns)):
        if f"{chunk.path_in_schema}.".startswith(starts):
            size += chunk.total_uncompressed_size
    num_rows = metadata.num_rows
    return max(1, min(max_rows, MAX_DECODED_BYTES * num_rows // max(size, 1)))


def check_row_sizes(batch: "pyarrow.RecordBatch", title: str, num_read: int) -> None:
    """Raise InputError if a row has more than `MAX_LINE_BYTES` characters.

    `num_read` rows are before the batch.
    """
    if batch.nbytes <= MAX_LINE_BYTES:
        return
    columns = [column.to_pylist() for column in batch.columns]
    for row, values in enumerate(zip(*columns, strict=True), num_read + 1):
        if sum(map(_size, values)) > MAX_LINE_BYTES:
            raise InputError(
                f"{title} has more than {MAX_LINE_BYTES:,} bytes in row {row}; texts of that size "
                "are not scored."
            )


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value))
    return 0


@contextmanager
def parquet_errors(place: Callable[[], str]) -> Iterator[None]:
    """Raise InputError for a file that is damaged, or is not Parquet."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{place()} cannot be read as Parquet: it is damaged, or in another format. Write or "
            "copy it again."
        ) from error


def check_types(schema: "pyarrow.Schema", columns: Iterable[Column], title: str) -> None:
    """Raise InputError if one of these columns of a schema is not of texts."""
    for column in columns:
        _check_type(schema.field(column.name).type, column, title)


def _check_type(kind: "pyarrow.DataType", column: Column, title: str) -> None:
    from pyarrow import types

    item = kind
    lists = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    if column.may_hold_lists and any(is_kind(item) for is_kind in lists):
        item = item.value_type
    if types.is_dictionary(item):
        item = item.value_type
    if column.is_id or (column.may_be_empty and types.is_null(item)):
        return
    if not (types.is_string(item) or types.is_large_string(item) or types.is_string_view(item)):
        expected = "string, or a list of that" if column.may_hold_lists else "string"
        raise InputError(
            f"{title}: the column {column.name!r} is of type {kind}; expected {expected}."
        )
