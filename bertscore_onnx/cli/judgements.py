"""Tables of judgements and of scores in memory, whose columns are read as texts or as numbers."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, shortened
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.readers import Row, open_table, read_whole
from bertscore_onnx.tables.sources import Dialect, InputFormat, format_of, open_source, refuse_spreadsheet

NOTHING = {"", "na", "nan", "none", "null"}
"""The values of a missing number, in any case of letters."""

_ABSENT = object()


class Table:
    """Rows of named values; every error names the line and the column."""

    def __init__(self, title: str, names: Sequence[str], rows: Sequence[Row]) -> None:
        """Wrap the rows of a file, which may lack some of the columns."""
        self.title = title
        """The name of the file in messages."""
        self.names = list(names)
        """The columns, in their order."""
        self._rows = rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def place(self, row: int) -> str:
        """Return the place of a row, counted from 0, such as `scores.tsv, line 12`."""
        return self._rows[row][0]

    def find(self, names: str | Iterable[str], option: str, advice: str = "") -> str:
        """Return the first of the possible names of a column that the table has; raise InputError if it has none."""
        alternatives = (names,) if isinstance(names, str) else tuple(names)
        return Column(alternatives, option).find(self.names, self.title, advice)

    def is_blank(self, column: str) -> bool:
        """Return whether all rows are empty in a column."""
        return all(values.get(column) in (None, "") for _, values in self._rows)

    def holds_numbers(self, column: str) -> bool:
        """Return whether a column holds a number, or none, in its first row."""
        try:
            self._number(column, 0)
        except InputError:
            return False
        return True

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column; raise InputError if a value is missing, or is not a text."""
        return [self._checked(Column((column,), ""), row)[0] for row in range(len(self))]

    def lists(self, column: str, *, may_be_empty: bool = False) -> list[list[str]]:
        """Return the texts of a column whose values may be lists; a single text is a list of one.

        InputError is raised if a value is missing or holds anything else, or is an empty list that may not be.
        """
        texts = Column((column,), "", may_hold_lists=True)
        is_empty = [may_be_empty and self._value(column, row) == [] for row in range(len(self))]
        return [[] if empty else self._checked(texts, row) for row, empty in enumerate(is_empty)]

    def keys(self, column: str) -> list[str]:
        """Return names, such as those of systems; raise InputError unless they are texts or whole numbers."""
        return [self._key(column, row) for row in range(len(self))]

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return the numbers of a column, (rows,); NaN for an empty value, null, None, NA or NaN.

        InputError is raised if a value is anything else than a finite number.
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
        shown = shortened(value) if isinstance(value, str) else value
        advice = " Write decimals with a point." if re.fullmatch(r"\s*[+-]?\d*,\d+\s*", str(value)) else ""
        raise InputError(
            f"{self.place(row)}: the column {column!r} holds {shown!r}; expected a number, or nothing where there is "
            f"none.{advice}"
        )


# Reading a whole table.


def read_table(
    name: str, input_format: InputFormat | None = None, *, has_header: bool = True, has_quotes: bool | None = None
) -> Table:
    """Read a file, or `-` for standard input, to its end as a table; raise InputError if it has no rows.

    The format is by default that of the suffix. Without `has_quotes` the quoting of TSV is detected: double quotes are
    ordinary characters if the file cannot be read with quotes, or has a row in each line only without.
    """
    if Path(name).is_dir():
        raise InputError(f"{name!r} is a folder; expected a table, which is a file.")
    refuse_spreadsheet(name)
    table_format = input_format or format_of(name)
    if table_format == "text":
        raise InputError(
            f"{name!r} has no suffix of a table. Name it .tsv, .csv, .jsonl or .parquet, perhaps with .gz after that, "
            "or add --input-format."
        )
    with open_source(name, to_read_again=True) as source:

        def read(*, has_quotes: bool) -> Table:
            reader = open_table(source, table_format, Dialect(has_header, has_quotes))
            rows = read_whole(reader)
            names = reader.names or [*dict.fromkeys(column for _, values in rows for column in values)]
            return Table(source.title, names, rows)

        sniffs = table_format == "tsv" and has_quotes is None
        table = _sniffed(read) if sniffs else read(has_quotes=has_quotes is not False)
    if not len(table):
        raise InputError(f"{source.title} has no rows; expected one for each judgement.")
    return table


def _sniffed(read: Callable[..., Table]) -> Table:
    """Return a TSV as it is read with quotes, or without."""
    try:
        plain = read(has_quotes=False)
    except InputError:
        return read(has_quotes=True)
    try:
        quoted = read(has_quotes=True)
    except InputError:
        return plain
    return quoted if len(quoted) == len(plain) else plain


# Scores that were computed elsewhere.

SEGMENT_COLUMNS = {"segment", "seg_id", "id", "line", "index", "document", "doc_id", "doc"}
"""Columns that name a row, and are no system."""


def read_scores(files: Sequence[str]) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return by metric the scores of each system; raise InputError for a table of another form."""
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for file in files:
        table = read_table(file)
        name = PurePath(file.removesuffix(".gz")).stem
        metrics = _long_scores(table, name) if "system" in table.names else {name: _wide_scores(table)}
        for metric, scores in metrics.items():
            if metric in found:
                raise InputError(f"{table.title} has scores of {metric}, which another file has too. Rename one.")
            found[metric] = scores
    return found


def _wide_scores(table: Table) -> dict[str, NDArray[np.float64]]:
    columns = [name for name in table.names if name.lower() not in SEGMENT_COLUMNS and table.holds_numbers(name)]
    if len(columns) < 2:
        raise InputError(
            f"{table.title} has {len(columns)} columns of numbers; expected one for each of at least two systems, or "
            "the columns system, segment and score."
        )
    return {name: table.numbers(name) for name in columns}


def _long_scores(table: Table, name: str) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return the scores of a table with a row for each system and segment, and perhaps for each metric."""
    segment = table.find(["segment", "seg_id", "id", "line"], "")
    values, systems, segments = table.numbers(table.find("score", "")), table.keys("system"), table.keys(segment)
    metrics = table.keys("metric") if "metric" in table.names else [name] * len(table)
    cells: dict[str, dict[str, dict[str, float]]] = {}
    for row, (metric, system, at) in enumerate(zip(metrics, systems, segments, strict=True)):
        of_system = cells.setdefault(metric, {}).setdefault(system, {})
        if at in of_system:
            raise InputError(f"{table.place(row)}: the system {system} has a score of segment {at} already.")
        of_system[at] = values[row]
    order = list(dict.fromkeys(segments))
    return {
        metric: {
            system: np.array([of_segments.get(at, math.nan) for at in order]) for system, of_segments in rows.items()
        }
        for metric, rows in cells.items()
    }
