"""Joins of tables.

Here is decided which rows belong together, and what their values say about it.

Rows of two tables belong together by their ids, or else by position. Columns of any name may show
that this is right, or contradict it; docs/tables.md has the law as users read it. `join_tables`
joins two whole tables; `evidence_of` compares the columns of rows that were joined.
"""

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, shortened
from bertscore_onnx.tables.columns import (
    BEST,
    SCORE_NAMES,
    UNKNOWN,
    check_order_of_ids,
    id_columns,
    id_text,
)
from bertscore_onnx.tables.table import natural_key, plural
from bertscore_onnx.tables.whole_table import WholeTable

BY_PRODUCTS = (*SCORE_NAMES, "score", BEST, "truncated", UNKNOWN)
"""Scores, and the columns that stand beside scores of ours, which say nothing of a segment."""

NAMED_IDS = Argument("columns", {"segment": "NAME"})
BY_POSITION = Argument("columns", {"segment": "none"})
WAYS_OUT = ("or name the column of ids, ", NAMED_IDS, ", or join by position, ", BY_POSITION, ".")
"""What to do where ids do not fit."""

MIN_SHARED_VALUES = 5
"""Different values that two columns hold equally often; fewer coincide by chance, five in .0003."""

BLANK: int = np.iinfo(np.int64).min
"""The key of a blank cell or null, which is no evidence."""

_BLANK_TEXTS = {"", "[]", "n/a", "na", "nan", "none", "null"}
_FIRST_OF_SPECIAL = frozenset("+-.0123456789[")
_MARKS_OF_LISTS = re.compile(r"[\s'\"\[\],]+")


def column_keys(values: Sequence[object]) -> NDArray[np.int64]:
    """Return an integer for each cell, equal for cells that read alike.

    7, 7.0, "007" and " 7 " read alike, and so do "Text" and "text", and a list however it is
    written. Keys are those of this process alone.
    """
    types = set(map(type, values))
    if types == {str}:
        texts = [value.strip().casefold() for value in values]  # type: ignore[attr-defined]
        return _keys_of_texts(texts)
    key_of = hash if types <= {int, float} else _key_of_value
    array = np.fromiter(map(key_of, values), np.int64, len(values))
    if float in types:
        is_nan = np.fromiter((value != value for value in values), np.bool_, len(values))
        array[is_nan] = BLANK
    return array


def _keys_of_texts(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the keys of stripped texts in lower case.

    Only special texts take more than a hash.
    """
    keys = np.fromiter(map(hash, texts), np.int64, len(texts))
    for row, text in enumerate(texts):
        if text in _BLANK_TEXTS or text[0] in _FIRST_OF_SPECIAL:
            keys[row] = _key_of_text(text)
    return keys


def _key_of_value(value: object) -> int:
    if isinstance(value, np.generic):
        value = value.item()
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
        number = int(text) if text.isdecimal() else float(text)
        return hash(number)
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
        is_single = is_value & (counts == 1)
        self.single_values = values[is_single]
        self.rows_of_singles = rows[is_single]
        self.counts_rows = _counts_rows(keys) if counts_rows is None else counts_rows


def _counts_rows(keys: NDArray[np.int64]) -> bool:
    positions = np.arange(len(keys))
    return bool(np.array_equal(keys, positions) or np.array_equal(keys, positions + 1))


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table in the order in which its rows are joined with those of another."""

    columns: Mapping[str, ColumnKeys]
    """The keys of the columns that may say something of a segment."""
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
    """Compare all columns of two tables whose rows were joined.

    Both have the same number of rows.

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
    equal = []
    settled = set()
    other_settled = set()
    for (name, column), (other, other_column) in product(columns.items(), other_columns.items()):
        if _are_equal(column, other_column):
            equal.append((name, other))
            settled.add(name)
            other_settled.add(other)
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
    """Return whether columns agree in all rows where both have a value.

    Only columns that agree in more than half of the rows are equal.
    """
    agree = _agree(first, second)
    are_blank = (first.keys == BLANK) | (second.keys == BLANK)
    return 2 * int(agree.sum()) > len(agree) and bool((agree | are_blank).all())


def _agree(first: ColumnKeys, second: ColumnKeys) -> NDArray[np.bool_]:
    """Return whether two columns have the same value, (rows,)."""
    agree: NDArray[np.bool_] = (first.keys == second.keys) & (first.keys != BLANK)
    return agree


def _moved_rows(first: ColumnKeys, second: ColumnKeys) -> tuple[int, int] | None:
    """Return the rows of a value that two columns have in different rows.

    The first is its row in the first column. None is returned if there is no such value.
    """
    _, places, first_uses = np.intersect1d(
        first.single_values, second.single_values, assume_unique=True, return_indices=True
    )
    rows = first.rows_of_singles[places]
    other_rows = second.rows_of_singles[first_uses]
    if 2 * len(rows) > len(first.keys):
        moved = rows != other_rows
        if not moved.any():
            return None
        earliest = np.argmin(np.where(moved, rows, len(first.keys)))
        return int(rows[earliest]), int(other_rows[earliest])
    if len(first.values) < MIN_SHARED_VALUES:
        return None
    have_same_values = np.array_equal(first.values, second.values)
    if not have_same_values or not np.array_equal(first.counts, second.counts):
        return None
    # Both hold each value equally often: if a row differs, the second has its value elsewhere.
    differing = np.flatnonzero((first.keys != second.keys) & (first.keys != BLANK))
    if not len(differing):
        return None
    row = int(differing[0])
    has_value = (second.keys == first.keys[row]) & (first.keys != first.keys[row])
    return row, int(np.argmax(has_value))


def _shown_by(
    columns: Mapping[str, ColumnKeys],
    other_columns: Mapping[str, ColumnKeys],
    equal: Sequence[tuple[str, str]],
) -> str | None:
    """Return the column that shows the order of the rows; None if none does.

    Of several columns that show it together this is the first.
    """
    names = []
    for name, other in equal:
        if not columns[name].counts_rows and not other_columns[other].counts_rows:
            names.append(name)
    if names:
        together = np.zeros(len(columns[names[0]].keys), np.int64)
        for name in names:
            # A hash of several values, modulo 2^64.
            together = 31 * together + columns[name].keys
        if _are_most(len(np.unique(together)), len(together)):
            return names[0]
    for (name, column), (_, other_column) in product(columns.items(), other_columns.items()):
        if column.counts_rows or other_column.counts_rows:
            continue
        num_values = len(np.unique(column.keys[_agree(column, other_column)]))
        if _are_most(num_values, len(column.keys)):
            return name
    return None


def _are_most(number: int, total: int) -> bool:
    return 2 * number > total


def _able_to_show(
    table: JoinedTable,
    columns: Mapping[str, ColumnKeys],
    settled: set[str],
) -> list[str]:
    """Return the columns that could show the order.

    Columns that are settled, outputs and counters of rows could not.
    """
    return [
        name
        for name, column in columns.items()
        if name not in settled and name not in table.outputs and not column.counts_rows
    ]


def _namesakes(names: Sequence[str], other_names: Sequence[str]) -> tuple[str, str]:
    """Return a column of each table, of the same name if both have one."""
    for name in names:
        if name in other_names:
            return name, name
    return names[0], other_names[0]


# Rows of inputs, joined by their ids or by position.


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of an input, each of a segment.

    The input is a list, a table, or the rows of a system in a long table.
    """

    title: str
    """The input in messages."""
    number: int
    place: Callable[[int], str]
    """The place of a row, counted from 0, in messages."""
    unit: str = "row"
    """What a row is in messages, such as a line."""
    ids: Sequence[str] | None = None
    """The id of each row, (rows,); None if rows have none."""
    id_columns: tuple[str, ...] = ()
    """The columns of the ids, or of the index."""
    labels: Sequence[Hashable] | None = None
    """The index of the rows in pandas, (rows,); None for other forms."""
    table: WholeTable | None = None
    at: Sequence[int] = ()
    """The row in the table of each row, (rows,)."""

    @property
    def is_indexed(self) -> bool:
        """Whether pandas' index holds ids: another than 0, 1, 2 and so on."""
        if self.ids is not None or self.labels is None:
            return False
        positions = list(map(str, range(self.number)))
        return list(map(id_text, self.labels)) != positions

    def by_label(self) -> "Rows":
        """Return the rows with the labels of pandas as ids, if they have labels."""
        if self.labels is None:
            return self
        return replace(self, ids=list(map(id_text, self.labels)))

    def part(self, rows: Sequence[int]) -> "Rows":
        """Return only these of the rows, which have ids."""
        all_ids = self.ids or ()
        ids = [all_ids[row] for row in rows]
        table_rows = [self.at[row] for row in rows]

        def place(row: int) -> str:
            return self.place(rows[row])

        return replace(self, number=len(rows), place=place, ids=ids, labels=None, at=table_rows)

    def by_id(self) -> "RowsOfSegments":
        """Return the row of each id; raise InputError for an id that occurs again."""
        rows: dict[str | int, int] = {}
        for row, name in enumerate(self.ids or ()):
            earlier = rows.setdefault(name, row)
            if earlier != row:
                first_use = self.place(earlier)
                raise InputError(
                    f"{self.place(row)}: segment {name!r} occurs again; it is in {first_use} too. ",
                    *self._remedy_of_repeats(),
                    *WAYS_OUT,
                )
        return rows

    def _remedy_of_repeats(self) -> tuple[str | Argument, ...]:
        """Return what to do about ids that occur again.

        A second column is named if it tells them apart.
        """
        ids = self.ids or ()
        table = self.table
        if table is None:
            return ("Leave one out, ",)
        for name in table.names:
            if name in self.id_columns or name in BY_PRODUCTS:
                continue
            keys = column_keys(table.values(name))[self.at].tolist()
            is_key = len(set(zip(ids, keys, strict=True))) == len(ids)
            # A column that is a key alone may be a counter of rows.
            if is_key and len(set(keys)) < len(ids):
                key = "+".join((name, *self.id_columns))
                return ("Name a key of two columns, ", Argument("columns", {"segment": key}), ", ")
        return ("Leave one out, ",)


RowsOfSegments = Mapping[str | int, int]
"""The row of each segment, by its id, or by its number from 1."""


def rows_of_segments(inputs: Sequence[Rows]) -> dict[Rows, RowsOfSegments]:
    """Return the row of each segment in each input.

    Segments are joined by their ids, or by position if no input has ids.

    Inputs without ids are joined with others by position. The rows of a table are those of the
    first input with ids, at the same positions. A list has nothing that could show its order: it is
    that of the ids, in which all inputs with ids have to be then.
    """
    by_id = {rows: rows.by_id() for rows in inputs if rows.ids is not None}
    plain = [rows for rows in inputs if rows.ids is None]
    for rows in plain[1:]:
        if rows.number != plain[0].number:
            raise _unequal(plain[0], rows)
    names: Sequence[str | int] = ()
    if by_id and plain:
        names = _segments_by_position(by_id, plain)
    elif plain:
        names = range(1, plain[0].number + 1)
    by_position = {name: row for row, name in enumerate(names)}
    return {rows: by_id.get(rows, by_position) for rows in inputs}


def _segments_by_position(
    by_id: Mapping[Rows, RowsOfSegments],
    plain: Sequence[Rows],
) -> list[str | int]:
    """Return the ids of the rows of inputs without ids, (rows,).

    Raises InputError if they are not clear.
    """
    first = next(iter(by_id))
    lists = [rows for rows in plain if rows.table is None]
    if lists:
        for rows in by_id:
            _check_order(rows, lists[0])
    segments: dict[str | int, None] = {}
    for rows, rows_of_ids in by_id.items():
        if lists or rows.table is first.table:
            segments |= dict.fromkeys(rows_of_ids)
    names = list(segments)
    if len(names) != plain[0].number:
        title = plain[0].title
        raise InputError(
            f"{title} has {plural(plain[0].number, plain[0].unit)} without ids, "
            f"and {first.title} has {plural(len(names), 'segment')}; expected as many. "
            f"Give {title} as a table with a column of ids."
        )
    return sorted(names, key=natural_key) if lists else names


def _check_order(rows: Rows, plain: Rows) -> None:
    """Raise InputError if rows with ids are not in the order of these.

    `plain` are rows without ids beside them.
    """
    places = map(rows.place, range(rows.number))
    check_order_of_ids(zip(places, rows.ids or (), strict=True), rows.title, plain.title)


def _unequal(first: Rows, second: Rows) -> InputError:
    longer = first if first.number > second.number else second
    first_without_partner = min(first.number, second.number)
    return InputError(
        f"{first.title} has {plural(first.number, first.unit)} and "
        f"{second.title} has {plural(second.number, second.unit)}; expected as many in each, "
        "in the same order, or a column of ids in both: "
        f"{longer.place(first_without_partner)} has no partner."
    )


def _joined_rows(first: RowsOfSegments, second: RowsOfSegments) -> NDArray[np.intp]:
    """Return the rows of the segments that two inputs have, (segments, 2)."""
    pairs = [(row, second[name]) for name, row in first.items() if name in second]
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def lacks_segment(place: str, name: str | int, title: str) -> str:
    """Return the beginning of the error for a segment that an input lacks."""
    return f"{place}: segment {name!r} is not in {title}. Add it there, "


# Tables, of which some rows were joined.


@dataclass(frozen=True, slots=True, eq=False)
class TablePart:
    """Rows of a table that are a table by themselves, such as a system's."""

    table: WholeTable
    rows: Rows
    outputs: frozenset[str] = frozenset()
    """The columns of outputs of systems."""
    left_out: frozenset[str] = frozenset()
    """The columns that say nothing of a segment.

    They hold scores, or the names of systems, metrics and runs.
    """


class JoinCheck:
    """Asks the values of tables whether their rows were joined rightly.

    Each column is read once.
    """

    def __init__(self, rows_of: Mapping[Rows, RowsOfSegments]) -> None:
        """Check rows that were joined so."""
        self._rows_of = rows_of
        self._keys: dict[tuple[WholeTable, str], NDArray[np.int64]] = {}

    def of_tables(self, tables: Sequence[Sequence[TablePart]]) -> dict[WholeTable, str]:
        """Return what an output says of tables that were joined by position.

        The further parts of a table are compared with its first part, and the first parts with each
        other. InputError is raised as by `how`.
        """
        said: dict[WholeTable, str] = {}
        for first, *further in tables:
            for other in further:
                self.how(first, other)
        for (first, *_), (second, *_) in combinations(tables, 2):
            how = self.how(first, second)
            if first.rows.ids is None or second.rows.ids is None:
                said.setdefault(first.table, how)
                said.setdefault(second.table, how)
        return said

    def how(self, first: TablePart, second: TablePart) -> str:
        """Return what an output says of a join, such as "by id".

        Ids that one of the tables has beside one without have to be in order, unless a column shows
        the order of the rows. InputError is raised if the join may be wrong.
        """
        positions = _joined_rows(self._rows_of[first.rows], self._rows_of[second.rows])
        rows = np.asarray(first.rows.at, dtype=np.intp)[positions[:, 0]]
        other_rows = np.asarray(second.rows.at, dtype=np.intp)[positions[:, 1]]
        are_ids = first.rows.ids is not None and second.rows.ids is not None
        # Ids that do not follow the positions of rows were not made by counting rows.
        if are_ids and not np.array_equal(np.argsort(rows), np.argsort(other_rows)):
            return "by id"
        evidence = evidence_of(self._joined(first, rows), self._joined(second, other_rows))
        tables = (first.table, second.table)
        if evidence.moved is not None:
            raise _contradiction(evidence.moved, tables, rows, other_rows)
        if are_ids:
            return "by id"
        if evidence.unsettled is not None:
            name, other = evidence.unsettled
            keys = self._column(first.table, name)[rows]
            other_keys = self._column(second.table, other)[other_rows]
            differing = int(np.argmax(keys != other_keys))
            raise _unshown(name, other, tables, rows[differing])
        if evidence.shown_by is not None:
            return f"by position: {evidence.shown_by!r} agrees"
        if first.rows.ids is not None:
            _check_order(first.rows, second.rows)
        if second.rows.ids is not None:
            _check_order(second.rows, first.rows)
        return "by position: nothing contradicts it"

    def _joined(self, table: TablePart, rows: NDArray[np.intp]) -> JoinedTable:
        columns = {}
        in_order = np.sort(np.asarray(table.rows.at, dtype=np.intp))
        for name in table.table.names:
            if name in table.left_out or name in BY_PRODUCTS:
                continue
            keys = self._column(table.table, name)
            columns[name] = ColumnKeys(keys[rows], counts_rows=_counts_rows(keys[in_order]))
        return JoinedTable(columns, table.outputs)

    def _column(self, table: WholeTable, name: str) -> NDArray[np.int64]:
        if (table, name) not in self._keys:
            self._keys[table, name] = column_keys(table.values(name))
        return self._keys[table, name]


def _contradiction(
    moved: Moved,
    tables: tuple[WholeTable, WholeTable],
    rows: NDArray[np.intp],
    other_rows: NDArray[np.intp],
) -> InputError:
    first, second = tables
    row = int(rows[moved.row])
    other_row = int(other_rows[moved.other_row])
    value = shortened(str(first.values(moved.column)[row]))
    columns: str | list[str] = moved.column
    if moved.column != moved.other_column:
        columns = [moved.column, moved.other_column]
    return InputError(
        f"{moved.other_column!r} of {second.title} has the values of {moved.column!r} "
        f"of {first.title}, in other rows: {value!r} is in {first.place(row)} "
        f"and in {second.place(other_row)}. If these are the ids, ",
        Argument("columns", {"segment": columns}),
        "; if the rows are in the same order all the same, ",
        BY_POSITION,
        ".",
    )


def _unshown(
    name: str,
    other: str,
    tables: tuple[WholeTable, WholeTable],
    row: int,
) -> InputError:
    first, second = tables
    difference = f"{name!r} differs, first in {first.place(row)}"
    if name != other:
        difference = f"{name!r} and {other!r} have nothing in common"
    return InputError(
        f"Nothing shows that the rows of {first.title} and {second.title} are in the same order: "
        f"{difference}. Name a column of ids, ",
        NAMED_IDS,
        ", or say that they are, ",
        BY_POSITION,
        ".",
    )


# Two whole tables.


@dataclass(frozen=True, slots=True)
class Join:
    """The rows of a table that belong to those of another."""

    rows: NDArray[np.intp]
    """For each row of the first table the row of the second."""
    how: str
    """What the output says of it, such as "by id"."""


def join_tables(
    first: WholeTable,
    second: WholeTable,
    segment: Sequence[str] = (),
    *,
    outputs: Collection[str] = (),
    texts: Collection[str] = (),
) -> Join:
    """Join the rows of two tables, which have to have the same segments.

    Args:
        first, second: the tables.
        segment: the columns of ids that were named, of which each table has the first that it has;
            "none" joins by position. What is named is trusted.
        outputs: the columns of the outputs of systems, in either table.
        texts: all columns of texts, which hold no ids.

    Raises:
        InputError: a segment is in one table alone or occurs again, the numbers of rows differ, or
            values contradict the join, or by position nothing shows it.
    """
    tables = []
    for table in (first, second):
        names = id_columns(table.names, segment, others=texts, title=table.title)
        tables.append(TablePart(table, rows_of_table(table, names), frozenset(outputs)))
    rows_of = rows_of_segments([table.rows for table in tables])
    segments = rows_of[tables[0].rows]
    other_segments = rows_of[tables[1].rows]
    positions = _joined_rows(segments, other_segments)
    if len(positions) < max(len(segments), len(other_segments)):
        raise _lacking(tables, rows_of)
    rows = positions[:, 1]
    if not segment:
        return Join(rows, JoinCheck(rows_of).how(*tables))
    are_ids = all(table.rows.ids is not None for table in tables)
    return Join(rows, "by id" if are_ids else "by position, as you said")


def _lacking(tables: Sequence[TablePart], rows_of: Mapping[Rows, RowsOfSegments]) -> InputError:
    """Return the error for the first segment that one of two tables lacks."""
    for table, other in (tables, tables[::-1]):
        for name, row in rows_of[table.rows].items():
            if name not in rows_of[other.rows]:
                start = lacks_segment(table.rows.place(row), name, other.rows.title)
                return InputError(start, "or leave it out here, ", *WAYS_OUT)
    raise AssertionError(tables)


def rows_of_table(table: WholeTable, names: Sequence[str]) -> Rows:
    """Return all rows of a table, with the ids in these columns.

    Without columns, or if all are blank, the rows have no ids.
    """
    rows = Rows(table.title, len(table), table.place, table=table, at=range(len(table)))
    if all(map(table.is_blank, names)):
        return rows
    keys = zip(*map(table.keys, names), strict=True)
    ids = list(map("+".join, keys))
    return replace(rows, ids=ids, id_columns=tuple(names))
