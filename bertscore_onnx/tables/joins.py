"""Evidence in the values of two tables that their rows belong together.

Rows of two tables belong together by their ids, or else by position. Columns of any name may show
that this is right, or contradict it; docs/tables.md has the law as users read it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

MIN_SHARED_VALUES = 5
"""Different values that two columns hold equally often; fewer coincide by chance, five in .0003."""

BLANK: int = np.iinfo(np.int64).min
"""The key of a blank cell or null, which is no evidence."""

_BLANK_TEXTS = {"", "[]", "n/a", "na", "nan", "none", "null"}
_FIRST_OF_SPECIAL = frozenset("+-.0123456789[")
_MARKS_OF_LISTS = re.compile(r"[\s'\"\[\],]+")


def column_keys(values: Sequence[object]) -> NDArray[np.int64]:
    """Return an integer for each cell, (rows,), equal for cells that read alike.

    7, 7.0, "007" and " 7 " read alike, and so do "Text" and "text", and a list however it is
    written. Keys are those of this process alone.
    """
    types = set(map(type, values))
    if types == {str}:
        return _keys_of_texts([value.strip().casefold() for value in values])  # type: ignore[attr-defined]
    keys = map(hash, values) if types <= {int, float} else map(_key_of_value, values)
    array = np.fromiter(keys, np.int64, len(values))
    if float in types:
        array[np.fromiter((value != value for value in values), np.bool_, len(values))] = BLANK
    return array


def _keys_of_texts(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the keys of stripped texts in lower case; only special texts take more than a hash."""
    keys = np.fromiter(map(hash, texts), np.int64, len(texts))
    for row, text in enumerate(texts):
        if text in _BLANK_TEXTS or text[0] in _FIRST_OF_SPECIAL:
            keys[row] = _key_of_text(text)
    return keys


def _key_of_value(value: object) -> int:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return hash(value)
    return _key_of_text(str(value).strip().casefold())


def _key_of_text(text: str) -> int:
    if text in _BLANK_TEXTS:
        return BLANK
    if text[0] == "[":
        return hash(_MARKS_OF_LISTS.sub(" ", text))
    if text[0] not in _FIRST_OF_SPECIAL or "_" in text:  # Python would skip the underscore of 1_0
        return hash(text)
    try:
        return hash(int(text) if text.isdecimal() else float(text))
    except ValueError:
        return hash(text)


class ColumnKeys:
    """The keys of a column, and how often each value occurs."""

    def __init__(self, keys: NDArray[np.int64], *, counts_rows: bool | None = None) -> None:
        """Count the keys, (rows,).

        Args:
            keys: of the rows that were joined.
            counts_rows: whether the column counts the rows of its own file, from 0 or 1; None to
                ask the keys.
        """
        values, rows, counts = np.unique(keys, return_index=True, return_counts=True)
        is_value = values != BLANK
        self.keys = keys
        self.values = values[is_value]
        self.counts = counts[is_value]
        self.single_values = values[is_value & (counts == 1)]
        self.rows_of_singles = rows[is_value & (counts == 1)]
        self.counts_rows = _counts_rows(keys) if counts_rows is None else counts_rows

    def at(self, rows: NDArray[np.intp]) -> "ColumnKeys":
        """Return the keys of some rows, in their order."""
        return ColumnKeys(self.keys[rows], counts_rows=self.counts_rows)


def _counts_rows(keys: NDArray[np.int64]) -> bool:
    positions = np.arange(len(keys))
    return bool(np.array_equal(keys, positions) or np.array_equal(keys, positions + 1))


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table in the order in which its rows are joined with those of another."""

    columns: Mapping[str, ColumnKeys]
    """The keys of its columns, without scores, what comes with scores, and runs."""
    outputs: frozenset[str] = field(default_factory=frozenset)
    """The columns of a system's outputs, which differ between systems."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A value that two tables have in rows that do not belong together."""

    column: str
    other_column: str
    row: int
    """Its row in the first table, among the joined rows from 0."""
    other_row: int
    """Its row in the second table."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the values of two tables say about how their rows were joined."""

    moved: Moved | None = None
    """The contradiction, if there is one."""
    shown_by: str | None = None
    """A column that shows the order, if there is one; several together are called by the first."""
    unsettled: tuple[str, str] | None = None
    """A column of each table that could show the order, where nothing does."""


def evidence_of(first: JoinedTable, second: JoinedTable) -> Evidence:
    """Compare all columns of two tables whose rows were joined, the same number in both.

    - A column *has the values of* another if more than half of the rows have a value that both hold
      exactly once, or if both hold the same `MIN_SHARED_VALUES` values or more, equally often.
      Such values have to stand in the same rows, or the columns contradict the join.
    - A column *shows* the order if it agrees with another in rows with more than n/2 different
      values. Columns that agree in all rows count together.
    - Constants tell nothing, nor do columns that count the rows of their file. Columns that agree
      in all rows are *settled*: they are not compared with further columns.
    """
    columns = _telling(first)
    other_columns = _telling(second)
    equal = [
        (name, other)
        for (name, column), (other, other_column) in product(columns.items(), other_columns.items())
        if _are_equal(column, other_column)
    ]
    settled = {name for name, _ in equal}
    other_settled = {other for _, other in equal}
    for (name, column), (other, other_column) in product(columns.items(), other_columns.items()):
        if name in settled or other in other_settled:
            continue
        if column.counts_rows and other_column.counts_rows:
            continue
        rows = _moved_rows(column, other_column)
        if rows is not None:
            return Evidence(moved=Moved(name, other, *rows))

    shown_by = _shown_by(columns, other_columns, equal)
    open_columns = _able_to_show(first, columns, settled)
    other_open = _able_to_show(second, other_columns, other_settled)
    if shown_by is None and open_columns and other_open:
        return Evidence(unsettled=_namesakes(open_columns, other_open))
    return Evidence(shown_by=shown_by)


def _telling(table: JoinedTable) -> dict[str, ColumnKeys]:
    """Return the columns that are not constant."""
    return {name: column for name, column in table.columns.items() if len(column.values) > 1}


def _are_equal(first: ColumnKeys, second: ColumnKeys) -> bool:
    """Return whether columns agree in all rows where both have a value, which are most rows."""
    agree = _agree(first, second)
    are_blank = (first.keys == BLANK) | (second.keys == BLANK)
    return 2 * int(agree.sum()) > len(agree) and bool((agree | are_blank).all())


def _agree(first: ColumnKeys, second: ColumnKeys) -> NDArray[np.bool_]:
    """Return whether two columns have the same value, (rows,)."""
    agree: NDArray[np.bool_] = (first.keys == second.keys) & (first.keys != BLANK)
    return agree


def _moved_rows(first: ColumnKeys, second: ColumnKeys) -> tuple[int, int] | None:
    """Return the rows of a value that two columns have in different rows; None if there is none."""
    _, places, other_places = np.intersect1d(
        first.single_values, second.single_values, assume_unique=True, return_indices=True
    )
    rows = first.rows_of_singles[places]
    other_rows = second.rows_of_singles[other_places]
    if 2 * len(rows) > len(first.keys):
        moved = rows != other_rows
        if not moved.any():
            return None
        earliest = np.argmin(np.where(moved, rows, len(first.keys)))
        return int(rows[earliest]), int(other_rows[earliest])
    have_same_values = np.array_equal(first.values, second.values) and np.array_equal(first.counts, second.counts)
    if len(first.values) < MIN_SHARED_VALUES or not have_same_values:
        return None
    # The same values equally often: if a row differs, its value stands in another row of the second.
    differing = np.flatnonzero((first.keys != second.keys) & (first.keys != BLANK))
    if not len(differing):
        return None
    row = int(differing[0])
    has_value = (second.keys == first.keys[row]) & (first.keys != first.keys[row])
    return row, int(np.argmax(has_value))


def _shown_by(
    columns: Mapping[str, ColumnKeys], other_columns: Mapping[str, ColumnKeys], equal: Sequence[tuple[str, str]]
) -> str | None:
    """Return the column that shows the order of the rows, or the first of several; None if none does."""
    equal = [pair for pair in equal if not columns[pair[0]].counts_rows and not other_columns[pair[1]].counts_rows]
    if equal:
        together = np.zeros(len(columns[equal[0][0]].keys), np.int64)
        for name, _ in equal:
            together = 31 * together + columns[name].keys  # as a hash of several values, modulo 2^64
        if _are_most(len(np.unique(together)), len(together)):
            return equal[0][0]
    for (name, column), (_, other_column) in product(columns.items(), other_columns.items()):
        if column.counts_rows or other_column.counts_rows:
            continue
        num_values = len(np.unique(column.keys[_agree(column, other_column)]))
        if _are_most(num_values, len(column.keys)):
            return name
    return None


def _are_most(number: int, total: int) -> bool:
    return 2 * number > total


def _able_to_show(table: JoinedTable, columns: Mapping[str, ColumnKeys], settled: set[str]) -> list[str]:
    """Return the columns that could show the order: none that is settled, an output or a counter."""
    return [
        name
        for name, column in columns.items()
        if name not in settled and name not in table.outputs and not column.counts_rows
    ]


def _namesakes(names: Sequence[str], other_names: Sequence[str]) -> tuple[str, str]:
    """Return a column of each table, of the same name if both have one."""
    shared = next((name for name in names if name in other_names), None)
    return (names[0], other_names[0]) if shared is None else (shared, shared)
