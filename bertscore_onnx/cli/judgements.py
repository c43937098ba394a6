"""A table in memory, whose columns are asked for as texts or as numbers."""

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.readers import Dialect, read_rows
from bertscore_onnx.tables.sources import InputFormat, Source, format_of, open_source

if TYPE_CHECKING:
    import pyarrow


NOTHING = {"", "na", "nan", "none", "null"}
"""What stands for a number that is missing, in any case of letters."""

_ABSENT = object()


class Table:
    """Rows of named values; every error says the line and the column."""

    def __init__(self, title: str, names: Sequence[str], rows: Sequence[tuple[str, dict[str, object]]]) -> None:
        """Take what was read.

        Args:
            title: what to call the table in a message.
            names: of the columns, in their order; a row may lack some.
            rows: where each row stands, for a message, and its values by column.
        """
        self.title = title
        self.names = list(names)
        self._rows = rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def place(self, row: int) -> str:
        """Return where a row stands, such as `scores.tsv, line 12`; rows are counted from 0."""
        return self._rows[row][0]

    def find(self, names: str | Iterable[str], option: str, advice: str = "") -> str:
        """Return the first of some names that a column has.

        Args:
            names: what the column may be called.
            option: the option that names it, for the message.
            advice: what else to do where there is none, for the message.

        Raises:
            InputError: there is none, with the nearest name, or more than one.
        """
        alternatives = (names,) if isinstance(names, str) else tuple(names)
        return Column(alternatives, option).find(self.names, self.title, advice)

    def is_blank(self, column: str) -> bool:
        """Return whether no row has anything in a column."""
        return all(values.get(column) in (None, "") for _, values in self._rows)

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column.

        Raises:
            InputError: a value is missing, or no text.
        """
        return [self._checked(Column((column,), ""), row)[0] for row in range(len(self))]

    def lists(self, column: str, *, may_be_empty: bool = False) -> list[list[str]]:
        """Return the texts of a column whose values may be lists of one or more; a single text is a list of one.

        Args:
            column: its name.
            may_be_empty: whether a list may hold no text.

        Raises:
            InputError: a value is missing, an empty list where there is to be a text, or holds something else than
                texts.
        """
        texts = Column((column,), "", may_hold_lists=True)
        is_empty = [may_be_empty and self._value(column, row) == [] for row in range(len(self))]
        return [[] if empty else self._checked(texts, row) for row, empty in enumerate(is_empty)]

    def keys(self, column: str) -> list[str]:
        """Return names, such as those of systems or segments, which may be written as whole numbers.

        Raises:
            InputError: a value is missing, empty, or neither.
        """
        return [self._key(column, row) for row in range(len(self))]

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return the numbers of a column, (rows,); NaN where there is none: an empty value, null, None, NA or NaN.

        Raises:
            InputError: a value is something else than a finite number.
        """
        return np.array([self._number(column, row) for row in range(len(self))], dtype=np.float64)

    def _value(self, column: str, row: int) -> object:
        place, values = self._rows[row]
        value = values.get(column, _ABSENT)
        if value is _ABSENT:
            raise InputError(f"{place}: there is no {column!r} here, which other rows have. Add it.")
        return value

    def _checked(self, column: Column, row: int) -> list[str]:
        [name] = column.names
        return column.texts_of(self._value(name, row), name, self.place(row))

    def _key(self, column: str, row: int) -> str:
        value = self._value(column, row)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return value
        raise InputError(
            f"{self.place(row)}: the column {column!r} holds {value!r}; expected a name, or a whole number."
        )

    def _number(self, column: str, row: int) -> float:
        value = self._value(column, row)
        if value is None or (isinstance(value, str) and value.strip().lower() in NOTHING):
            return math.nan
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            try:
                number = float(value)
            except (ValueError, OverflowError):
                number = math.inf
            if not math.isinf(number):
                return number
        shown = value if not isinstance(value, str) or len(value) <= 40 else value[:37] + "..."
        advice = " Write decimals with a point." if re.fullmatch(r"\s*[+-]?\d*,\d+\s*", str(value)) else ""
        raise InputError(
            f"{self.place(row)}: the column {column!r} holds {shown!r}; expected a number, or nothing where there is "
            f"none.{advice}"
        )


# Reads a whole table: TSV, CSV, JSON lines or Parquet, each but Parquet perhaps packed with gzip.


Record = tuple[str, dict[str, object]]
"""Where a row stands, and its values by column."""


def read_table(
    name: str, input_format: InputFormat | None = None, *, has_header: bool = True, has_quotes: bool | None = None
) -> Table:
    """Read a table to its end.

    Args:
        name: the file, or `-` for standard input.
        input_format: None for the one that the end of the name says, before `.gz`.
        has_header: whether the first line of TSV and CSV has the names; else they are 1, 2, and so on.
        has_quotes: whether a field of TSV and CSV may be in double quotes; None to find out. They are characters like
            others in TSV that cannot be read with quotes, or has a row in each line only without.

    Raises:
        InputError: it cannot be read, has no rows, or is not what its format says.
        MissingExtraError: it is Parquet, and pyarrow is not installed.
    """
    if Path(name).is_dir():
        raise InputError(f"{name!r} is a folder; expected a table, which is a file.")
    chosen = input_format or format_of(name)
    if chosen == "text":
        raise InputError(
            f"{name!r} says no format of a table. Name it .tsv, .csv, .jsonl or .parquet, perhaps with .gz after that, "
            "or add --input-format."
        )
    with open_source(name, to_read_again=True) as source:
        match chosen:
            case "tsv":
                names, rows = _tsv(source, has_header, has_quotes)
            case "csv":
                names, rows = _delimited(source, Dialect(",", has_header, has_quotes is not False))
            case "jsonl":
                names, rows = _json_lines(source)
            case "parquet":
                names, rows = _parquet(source)
    if not rows:
        raise InputError(f"{source.title} has no rows; expected one for each judgement.")
    return Table(source.title, names, rows)


def _tsv(source: Source, has_header: bool, has_quotes: bool | None) -> tuple[list[str], list[Record]]:
    quoted, plain = Dialect("\t", has_header), Dialect("\t", has_header, has_quotes=False)
    if has_quotes is not None:
        return _delimited(source, quoted if has_quotes else plain)
    try:
        names, rows = _delimited(source, plain)
    except InputError:
        return _delimited(source, quoted)
    try:
        as_quoted = _delimited(source, quoted)
    except InputError:
        return names, rows
    return as_quoted if len(as_quoted[1]) == len(rows) else (names, rows)


def _delimited(source: Source, dialect: Dialect) -> tuple[list[str], list[Record]]:
    _, names, rows = read_rows(source, dialect)
    return names, [(place, dict(zip(names, fields, strict=True))) for place, fields in rows]


def _json_lines(source: Source) -> tuple[list[str], list[Record]]:
    """Return the names that any object has, and the objects."""
    from bertscore_onnx.tables.readers import read_objects

    rows = list(read_objects(source))
    return [*dict.fromkeys(name for _, fields in rows for name in fields)], rows


def _parquet(source: Source) -> tuple[list[str], list[Record]]:
    from bertscore_onnx.tables.readers import read_values

    names: list[str] = []

    def choose(schema: "pyarrow.Schema") -> list[str]:
        names.extend(schema.names)
        return names

    return names, [(place, dict(zip(names, values, strict=True))) for place, values in read_values(source, choose)]
