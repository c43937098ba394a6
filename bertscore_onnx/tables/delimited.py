"""TSV and CSV: rows of fields between delimiters."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from bertscore_onnx.errors import InputError
from bertscore_onnx.scores import Score
from bertscore_onnx.tables.columns import UnreadableRow
from bertscore_onnx.tables.formats import Dialect
from bertscore_onnx.tables.readers import HeadedReader, RawRow, Record, check_header
from bertscore_onnx.tables.sources import (
    BYTE_ORDER_MARK,
    MAX_LINE_BYTES,
    VALUE_BYTES,
    Source,
    read_lines,
    utf8_fault,
)
from bertscore_onnx.tables.writers import RowsToWrite

_Fields = list[str] | InputError
"""The fields of a row, or the reason why it has none."""


class DelimitedReader(HeadedReader):
    """A TSV or CSV."""

    def __init__(self, source: Source, name: str, dialect: Dialect, keep_faults: bool) -> None:
        self.format = name
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
        lines = read_lines(source, expected, as_they_stand=True, keep_faults=keep_faults)
        marked = next(lines)
        first = marked.lstrip(BYTE_ORDER_MARK)
        csv.field_size_limit(MAX_LINE_BYTES)  # of the process; it is 131,072 otherwise
        default = self._default_delimiter(first)
        self.delimiter = dialect.delimiter or default
        self._fields = self._read(chain([first], lines))
        number, fields = next(self._fields)
        self.names = self._checked(number, fields, None)
        self.place = self._place(number)
        self.header = marked.removesuffix(first) + self._row
        """The first row as the file has it, without its line end."""
        last = self._parts[-1]
        self.line_end = last[len(last.rstrip("\r\n")) :] or "\n"
        if self.has_header:
            self.advice = ", or set header=no in --input-format if the first line is not a header"
        else:
            self._fields = chain([(number, self.names)], self._fields)
            self.names = [str(position) for position in range(1, len(self.names) + 1)]
        if len(self.names) == 1:
            self.advice += ", or set delimiter=CHARACTER in --input-format"

    def _default_delimiter(self, first_line: str) -> str:
        if self.format == "tsv":
            return "\t"
        return _delimiter_of(first_line) if self.has_header else ","

    def values(
        self, names: Sequence[str], *, keeps_rows: bool = False
    ) -> Iterator[tuple[str, Sequence[object] | UnreadableRow, RawRow]]:
        """Yield the place of each row, its values in some columns, and the row if it is kept."""
        positions = list(map(self.names.index, names))
        if not keeps_rows:
            self._parts = None
        num_fields = len(self.names)
        row = ""
        for number, fields in self._fields:
            # Blank lines, and rows of a spreadsheet without a cell. In a single column they are
            # empty texts.
            is_row = isinstance(fields, InputError) or any(fields)
            if not is_row and num_fields > 1:
                continue
            self.size = self._num_characters + VALUE_BYTES * self._num_lines * num_fields
            place = self._place(number)
            try:
                checked = self._checked(number, fields, num_fields)
            except InputError as error:
                if not self._keep_faults:
                    raise
                yield place, UnreadableRow(str(error).removeprefix(place).lstrip(": ")), None
                continue
            if names is not self.names:  # a copy of all values would take time
                checked = [checked[position] for position in positions]
            if keeps_rows:
                row = self._row
            yield place, checked, row

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
        return "".join(self._parts or ()).rstrip("\r\n")

    def _checked(self, number: int, fields: "_Fields", num_fields: int | None) -> list[str]:
        """Return the fields of a row; raise InputError for a fault, or another number of fields."""
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
        """Yield the number of the line where each row begins, the header too, and its fields, none
        in a blank line, or its fault, after which a row begins with the next line.
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
        """Yield the lines; raise InputError if those of a row have more than `MAX_LINE_BYTES`."""
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
    """Return the delimiter that the first line of a CSV shows: a comma if there are any, or else a
    semicolon or a tab.
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


class DelimitedWriter:
    """Writes TSV or CSV.

    Rows of an input of the same format are copied as they stand.
    """

    head = ""

    def __init__(self, rows: RowsToWrite, name: str) -> None:
        table = rows.table if rows.with_texts else None
        self._rows = rows
        self._source: DelimitedReader | None = None
        self._delimiter = "\t" if name == "tsv" else ","
        if isinstance(table, DelimitedReader) and table.format == name:
            self._source = table
            self._delimiter = table.delimiter
        self._names: list[str] = []
        if table is not None:
            self._names = table.names or list(rows.columns)
        elif rows.with_texts:
            self._names = ["candidate", "reference"]
        added = delimited(rows.added.names, self._delimiter)
        if self._source is None:
            self.head = delimited([*self._names, *rows.added.names], self._delimiter) + "\n"
        elif self._source.has_header:
            self.head = f"{self._source.header}{self._delimiter}{added}{self._source.line_end}"

    def line(self, row: RawRow, score: Score) -> str:
        """Return a row, with numbers of six decimals."""
        precision, recall, f1, *flags = self._rows.added.row(score)
        scores = [f"{precision:.6f}", f"{recall:.6f}", f"{f1:.6f}", *map(_cell, flags)]
        if self._source is not None:
            return f"{row}{self._delimiter}{self._delimiter.join(scores)}{self._source.line_end}"
        return delimited([*self._cells(row, score), *scores], self._delimiter) + "\n"

    def _cells(self, row: RawRow, score: Score) -> list[str]:
        if not self._rows.with_texts:
            return []
        table = self._rows.table
        if table is None:
            candidate, references = row
            return [candidate, references[score.best_reference]]
        if isinstance(table, DelimitedReader):
            return table.fields_of(row)
        record = table.record_of(row)
        return [_cell(record.get(name)) for name in self._names]


def delimited(cells: Sequence[object], delimiter: str) -> str:
    """Return a row of TSV or CSV without its line end.

    A cell is in quotes if it needs them; None is an empty cell.
    """
    row = io.StringIO()
    # This line end, so that \r is quoted too.
    csv.writer(row, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return row.getvalue().removesuffix("\r\n")


def _cell(value: object) -> str:
    """Return a value of JSON or Parquet as text: null is empty, lists and objects are JSON."""
    if isinstance(value, str):
        return value
    encoded = msgspec.json.encode(value, enc_hook=str).decode()
    if encoded == "null":
        return ""
    if encoded[0] == '"':
        return str(msgspec.json.decode(encoded))
    return encoded
