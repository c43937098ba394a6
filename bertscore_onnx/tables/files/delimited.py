"""Reads the columns of CSV and TSV."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.files.lines import MAX_LINE_BYTES, read_lines
from bertscore_onnx.tables.files.sources import Source

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
