"""Tables that are held whole.

`read_table` reads a file, `WholeTable.of_frame` a data frame; the columns of a `WholeTable` are
read as texts, names or numbers.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, shortened
from bertscore_onnx.tables.batches import adapt
from bertscore_onnx.tables.columns import TextColumn, is_null, number_text
from bertscore_onnx.tables.formats import (
    DEFAULT_DIALECT,
    FORMATS,
    TEXT,
    Dialect,
    format_of,
    refuse_other_formats,
)
from bertscore_onnx.tables.readers import PlacedRecord, TableReader, open_table
from bertscore_onnx.tables.sources import MAX_HELD_BYTES, open_source, too_long

_ABSENT = object()


class WholeTable:
    """Rows of named values; every error names the line and the column."""

    def __init__(self, title: str, names: Sequence[str], rows: Sequence[PlacedRecord]) -> None:
        """Wrap the rows of a file, which may lack some of the columns."""
        self.title = title
        """The name of the file in messages."""
        self.names = list(names)
        self._rows = rows
        self.labels: list[Hashable] | None = None
        """The index of the rows, if they came from pandas."""
        self.levels: Sequence[str] = ()
        """The columns that were levels of this index."""
        self.signature = ""
        """The signature of scores in a Parquet file, if it has one."""

    @classmethod
    def of_frame(cls, frame: Any, title: str) -> "WholeTable":
        """Return the rows of a data frame, or of a mapping of columns, in any form of `adapt`.

        InputError is raised if a column occurs twice; InputTypeError for anything else.
        """
        # pandas may hold the ids in the index.
        levels = getattr(getattr(frame, "index", None), "names", ())
        index = [name for name in levels if name is not None]
        has_index = bool(index) and not set(index) & set(frame.columns)
        batch = adapt(frame.reset_index() if has_index else frame, title)
        columns = list(map(batch.values, batch.names))
        names = list(map(str, batch.names))
        for name in names:
            number = names.count(name)
            if number > 1:
                raise InputError(f"{title}: there are {number} columns {name!r}; expected one.")
        rows: list[PlacedRecord] = []
        for number, values in enumerate(zip(*columns, strict=True)):
            rows.append((f"{title}, row {number}", dict(zip(names, values, strict=True))))
        table = cls(title, names, rows)
        table.labels = row_labels(frame)
        table.levels = list(map(str, index)) if has_index else []
        return table

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def place(self, row: int) -> str:
        """Return the place of a row from 0, such as `scores.tsv, line 12`."""
        return self._rows[row][0]

    def find(self, names: str | Iterable[str], option: str | Argument, advice: str = "") -> str:
        """Return the first of the possible names of a column that the table has.

        Raise InputError if it has none.
        """
        alternatives = (names,) if isinstance(names, str) else tuple(names)
        return TextColumn(alternatives, option).find(self.names, self.title, advice)

    def find_references(self, option: str | Argument) -> list[str]:
        """Return the columns of references by their usual names.

        Raise InputError if there are none.
        """
        column = TextColumn((), option, role="reference")
        names = []
        for found in column.find_all(self.names, self.title):
            names.append(found.name)
        return names

    def values(self, column: str) -> list[object]:
        """Return the values of a column as they are; None where a row lacks it."""
        return [values.get(column) for _, values in self._rows]

    def is_blank(self, column: str) -> bool:
        """Return whether all rows are null or blank in a column."""
        return all(is_null(value, "name") for value in self.values(column))

    def is_nested(self, column: str) -> bool:
        """Return whether a column holds lists or objects."""
        return any(isinstance(value, list | dict | np.ndarray) for value in self.values(column))

    def shown(self, column: str) -> str:
        """Return the name of a column as messages show it.

        A word is added if it holds lists or objects.
        """
        return f"{column} (nested)" if self.is_nested(column) else column

    def content(self, column: str) -> set[Literal["numbers", "texts", "blanks"]]:
        """Return the kinds of values in a column.

        Blanks are texts such as "" and "NA", and nulls are of no kind.
        """
        kinds: set[Literal["numbers", "texts", "blanks"]] = set()
        for value in self.values(column):
            if is_null(value):
                continue
            if _as_number(value) is not None:
                kinds.add("numbers")
            elif is_null(value, "number"):
                kinds.add("blanks")
            else:
                kinds.add("texts")
        return kinds

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column.

        Raise InputError if a value is missing, or is not a text.
        """
        texts = TextColumn((column,), "")
        return [self._checked(texts, row)[0] for row in range(len(self))]

    def lists(self, column: str, *, may_be_empty: bool = False) -> list[list[str]]:
        """Return the texts of a column whose values may be lists.

        A single text is a list of one.

        InputError is raised if a value is missing or holds anything else, or is an empty list that
        may not be.
        """
        texts = TextColumn((column,), "", may_hold_lists=True, may_be_empty=may_be_empty)
        return [self._checked(texts, row) for row in range(len(self))]

    def without_nulls(
        self, column: str, *, are_texts: bool = False
    ) -> tuple["WholeTable", list[int]]:
        """Return the rows that have a value in a column, and their positions.

        The positions are among all rows. A blank value counts as null, as CSV has no other, unless
        it is one of texts, where it is an empty text.
        """
        kind: Literal["text", "name"] = "text" if are_texts else "name"
        rows = []
        positions = []
        for position, row in enumerate(self._rows):
            _, values = row
            if not is_null(values.get(column), kind):
                rows.append(row)
                positions.append(position)
        return WholeTable(self.title, self.names, rows), positions

    def keys(self, column: str) -> list[str]:
        """Return names, such as systems' names.

        Raise InputError unless they are texts or whole numbers.
        """
        return [self._key(column, row) for row in range(len(self))]

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return the numbers of a column, (rows,): 1 for true, 0 for false.

        NaN for an empty value, null, NA or NaN.

        InputError is raised if a value is anything else than a finite number.
        """
        values = self.values(column)
        if set(map(type, values)) <= {float, int, bool, str}:
            try:
                floats = [float(number_text(value)) for value in values]  # type: ignore[arg-type]
                numbers = np.array(floats, dtype=np.float64)
            except (ValueError, OverflowError):
                pass  # a missing value, or an error to find
            else:
                if not np.isinf(numbers).any():
                    return numbers
        checked = [self._number(column, row) for row in range(len(self))]
        return np.array(checked, dtype=np.float64)

    def _value(self, column: str, row: int) -> object:
        place, values = self._rows[row]
        value = values.get(column, _ABSENT)
        if value is _ABSENT:
            raise InputError(
                f"{place}: there is no {column!r} here, which other rows have. Add it."
            )
        return value

    def _checked(self, column: TextColumn, row: int) -> list[str]:
        return column.texts_of(self._value(column.name, row), self.place(row))

    def _key(self, column: str, row: int) -> str:
        value = self._value(column, row)
        # A frame with a missing value has no integers.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return value
        raise InputError(
            f"{self.place(row)}: the column {column!r} holds {value!r}; expected a name, or a "
            "whole number."
        )

    def _number(self, column: str, row: int) -> float:
        value = self._value(column, row)
        if is_null(value, "number"):
            return math.nan
        number = _as_number(value)
        if number is not None:
            return number
        shown = shortened(value) if isinstance(value, str) else value
        has_comma = re.fullmatch(r"\s*[+-]?\d*,\d+\s*", str(value))
        advice = " Write decimals with a point." if has_comma else ""
        raise InputError(
            f"{self.place(row)}: the column {column!r} holds {shown!r}; expected a number, or "
            f"nothing where there is none.{advice}"
        )


def is_frame(value: object) -> bool:
    """Return whether a value is a table or a data frame."""
    if isinstance(value, WholeTable):
        return True
    is_mapping = isinstance(value, Mapping)
    return not is_mapping and (hasattr(value, "columns") or hasattr(value, "column_names"))


def row_labels(values: object) -> list[Hashable] | None:
    """Return the index of the rows of a series or data frame of pandas; None for anything else."""
    index: Any = getattr(values, "index", None)
    return index.tolist() if hasattr(index, "tolist") else None


_TRUTH = {"true": 1.0, "false": 0.0}


def _as_number(value: object) -> float | None:
    """Return a finite number, 1 for true and 0 for false; None for anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    try:
        number = float(number_text(value))
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


# Reading a whole table.


def read_table(name: str, dialect: Dialect = DEFAULT_DIALECT) -> WholeTable:
    """Read a file, or `-` for standard input, to its end as a table.

    Raise InputError if it has no rows.

    The format is by default the suffix's. If a TSV may have quotes, it is found out whether it
    does: double quotes are ordinary characters if the file cannot be read with quotes, or has a row
    in each line only without.
    """
    refuse_other_formats(name)
    table_format = dialect.format or format_of(name)
    with open_source(name, to_read_again=True) as source:
        if table_format == TEXT:
            source.decompressed()  # which refuses binary files
            raise InputError(
                f"{name!r} has no suffix of a table. Name it .tsv, .csv, .jsonl or .parquet, "
                "perhaps with .gz after that, or add --input-format."
            )

        def read(has_quotes: bool) -> WholeTable:
            quoted = replace(dialect, has_quotes=has_quotes)
            return whole_table(open_table(source, table_format, quoted), source.title)

        # Quotes of a TSV may be characters of its texts, which only reading it shows.
        if FORMATS[table_format].may_lack_quotes and dialect.has_quotes:
            table = _sniffed(read)
        else:
            table = read(dialect.has_quotes)
    if not len(table):
        raise InputError(f"{source.title} has no rows; expected one or more below its header.")
    return table


def whole_table(reader: TableReader, title: str) -> WholeTable:
    """Read an open table to its end, within `MAX_HELD_BYTES`."""
    rows = []
    for row in reader.records():
        rows.append(row)
        if reader.size > MAX_HELD_BYTES:
            raise too_long(reader.place)
    names = dict.fromkeys(reader.names or ())
    if not names:
        for _, values in rows:
            names |= dict.fromkeys(values)
    table = WholeTable(title, list(names), rows)
    table.signature = reader.signature
    return table


def _sniffed(read: Callable[[bool], WholeTable]) -> WholeTable:
    """Return a TSV as it is read with quotes, or without."""
    try:
        plain = read(False)
    except InputError:
        return read(True)
    try:
        quoted = read(True)
    except InputError:
        return plain
    return quoted if len(quoted) == len(plain) else plain
