"""Reads the columns of CSV and TSV."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bertscore_onnx.cli.inputs.lines import MAX_LINE_BYTES, read_lines
from bertscore_onnx.cli.inputs.sources import Source
from bertscore_onnx.cli.inputs.tables.columns import Column
from bertscore_onnx.errors import InputError


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
    rows = _rows(source, dialect)
    place, header = next(rows)
    names = header if dialect.has_header else [str(number) for number in range(1, len(header) + 1)]
    advice = ", or add --no-header where the first line is none" if dialect.has_header else ""
    positions = [names.index(column.find(names, place, advice)) for column in columns]
    if not dialect.has_header:
        yield [header[position] for position in positions]
    for place, fields in rows:
        if len(fields) != len(header):
            raise InputError(
                f"{place}: there {'is 1 field' if len(fields) == 1 else f'are {len(fields)} fields'}; expected "
                f"{len(header)}, as in the first line.{_hint(fields, dialect)}"
            )
        yield [fields[position] for position in positions]


def _rows(source: Source, dialect: Dialect) -> Iterator[tuple[str, list[str]]]:
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


def _hint(fields: Sequence[str], dialect: Dialect) -> str:
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
