"""Joins of tables.

Here is decided which rows belong together, and what their values say about it.

Rows of two tables belong together by their ids, or else by position. Columns of any name may show
that this is right, or contradict it; docs/tables.md has the law as users read it. `join_tables`
joins two whole tables; `evidence_of` compares the columns of rows that were joined.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, plural
from bertscore_onnx.tables.columns import id_text
from bertscore_onnx.tables.order import natural_key
from bertscore_onnx.tables.roles import USUAL_NAMES, check_order_of_ids, id_columns, plain_name
from bertscore_onnx.tables.score_columns import BEST, SCORE_NAMES, UNKNOWN
from bertscore_onnx.tables.whole_table import WholeTable

BY_PRODUCTS = (*SCORE_NAMES, "score", BEST, "truncated", UNKNOWN)
"""Scores, and the columns that stand beside scores of ours, which say nothing of a segment."""

NAMED_IDS = Argument("columns", {"segment": "NAME"})
BY_POSITION = Argument("columns", {"segment": "none"})
WAY_OUT = ("or name the column of ids, ", NAMED_IDS, ".")
"""What to do where ids do not fit."""

OUTPUTS = frozenset({*USUAL_NAMES["candidate"], "completion", "hypotheses"})
"""The usual names of columns of outputs, beside their plurals in -s, which differ by system."""

MIN_SHARED_VALUES = 5
"""Different values that two columns hold equally often; fewer coincide by chance, five in .0003."""

MIN_SHARED_WORDS = 5
"""Rare words by which a row belongs elsewhere; of fewer, such as names, neighbours share most."""

BLANK: int = np.iinfo(np.int64).min
"""The key of a blank cell or null, which is no evidence."""

_BLANK_TEXTS = {"", "[]", "n/a", "na", "nan", "none", "null"}
_FIRST_OF_SPECIAL = frozenset("+-.0123456789[")
_MARKS_OF_LISTS = re.compile(r"[\s'\"\[\],]+")


def plain_text(value: object) -> str:
    """Return a cell as it is compared: NFKC, in lower case, every run of blanks as one."""
    text = normalize("NFKC", str(value)).casefold().strip()
    # Only a text with a line end, a tab or several blanks takes the time to split it.
    if "  " in text or not text.isprintable():
        text = " ".join(text.split())
    return text


def column_keys(values: Sequence[object]) -> NDArray[np.int64]:
    """Return an integer for each cell, equal for cells that read alike.

    7, 7.0, "007" and " 7 " read alike, and so do "Text" and "text", and a list however it is
    written. Keys are those of this process alone.
    """
    return np.fromiter(map(_key, values), np.int64, len(values))


def _key(value: object) -> int:
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in (int, float) and value == value:  # NaN is a blank text
        return hash(value)
    text = plain_text(value)
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

    def __init__(self, keys: NDArray[np.int64], keys_in_order: NDArray[np.int64]) -> None:
        """Count the keys of the rows that were joined, (rows,).

        Those in the order of the file, (all rows,), show whether the column counts its rows.
        """
        values, counts = np.unique(keys, return_counts=True)
        is_value = values != BLANK
        self.keys = keys
        self.values = values[is_value]
        self.counts = counts[is_value]
        positions = np.arange(len(keys_in_order))
        self.counts_rows = any(np.array_equal(keys_in_order, positions + start) for start in (0, 1))


def only_count(values: Sequence[object]) -> bool:
    """Return whether values are a prefix, and numbers that span 1.25 times their number at most."""
    prefix = id_text(next(iter(values), "")).rstrip("0123456789")
    numbers = set()
    for value in values:
        digits = id_text(value).removeprefix(prefix)
        if not digits.isdecimal():
            return False
        numbers.add(int(digits))
    if len(numbers) < max(2, len(values)):
        return False
    return 4 * (max(numbers) - min(numbers) + 1) <= 5 * len(numbers)


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table in the order in which its rows are joined with those of another."""

    columns: Mapping[str, ColumnKeys]
    """The keys of the columns that may say something of a segment."""
    words: Callable[[int], Collection[str]]
    """Returns the words of a row."""
    outputs: frozenset[str] = frozenset()
    """The columns of a system's outputs, which differ between systems."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A value, or words, that two tables have in rows that do not belong together."""

    row: int
    """Its row in the first table, among the joined rows from 0."""
    other_row: int
    """Its row in the second table."""
    column: str = ""
    """The column of the value in the first table; empty for words."""
    other_column: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the values of two tables say about how their rows were joined."""

    moved: Moved | None = None
    """The contradiction, if there is one."""
    shown_by: str = ""
    """What shows the order, such as `words agree`; empty if nothing does."""
    unsettled: tuple[str, str] | None = None
    """A column of each table that could show the order, where nothing does."""


def evidence_of(first: JoinedTable, second: JoinedTable) -> Evidence:
    """Compare all columns of two tables whose rows were joined.

    Both have the same number of rows.

    - A column *has the values of* another if more than half of the rows have values that both hold
      equally often, and these are five or more. They have to stand in the same rows, or the columns
      contradict the join.
    - Rare words may contradict the join, or *show* the order of the rows. So does a column that
      agrees with another in rows with more than n/2 different values.
    - Constants tell nothing, nor do columns that count the rows of their file. Columns that agree
      in all rows are *settled*: they are not compared with further columns.
    """
    columns = _telling(first)
    other_columns = _telling(second)
    settled = set()
    other_settled = set()
    for (name, column), (other, other_column) in product(columns.items(), other_columns.items()):
        if _are_equal(column, other_column):
            settled.add(name)
            other_settled.add(other)
    for (name, column), (other, other_column) in product(columns.items(), other_columns.items()):
        if name in settled or other in other_settled:
            continue
        if column.counts_rows and other_column.counts_rows:
            continue
        rows = _moved_rows(column, other_column)
        if rows is not None:
            return Evidence(moved=Moved(*rows, name, other))

    words = _evidence_of_words(first, second)
    if words.moved is not None:
        return words
    shown_by = _shown_by(columns, other_columns) or words.shown_by
    if shown_by:
        return Evidence(shown_by=shown_by)
    open_columns = _able_to_show(first, columns, settled)
    other_open = _able_to_show(second, other_columns, other_settled)
    if open_columns and other_open:
        return Evidence(unsettled=(open_columns[0], other_open[0]))
    return Evidence()


def _telling(table: JoinedTable) -> dict[str, ColumnKeys]:
    """Return the columns that are not constant."""
    return {name: column for name, column in table.columns.items() if len(column.values) > 1}


def _are_equal(first: ColumnKeys, second: ColumnKeys) -> bool:
    """Return whether columns agree in all rows where both have a value.

    Only columns that agree in more than half of the rows are equal.
    """
    agree = _agree(first, second)
    are_blank = (first.keys == BLANK) | (second.keys == BLANK)
    return _are_most(int(agree.sum()), len(agree)) and bool((agree | are_blank).all())


def _agree(first: ColumnKeys, second: ColumnKeys) -> NDArray[np.bool_]:
    """Return whether two columns have the same value, (rows,)."""
    agree: NDArray[np.bool_] = (first.keys == second.keys) & (first.keys != BLANK)
    return agree


def _moved_rows(first: ColumnKeys, second: ColumnKeys) -> tuple[int, int] | None:
    """Return the rows of a value that two columns have in different rows.

    The first is its row in the first column. None is returned if there is no such value.
    """
    values, places, other_places = np.intersect1d(
        first.values, second.values, assume_unique=True, return_indices=True
    )
    values = values[first.counts[places] == second.counts[other_places]]
    is_shared = np.isin(first.keys, values)
    num_needed = min(MIN_SHARED_VALUES, len(is_shared) // 2 + 1)
    if len(values) < num_needed or not _are_most(int(is_shared.sum()), len(is_shared)):
        return None
    differs = first.keys != second.keys
    if not (is_shared & differs).any():
        return None
    # Both hold the value equally often, so the second has it in a row where the first has not.
    row = int(np.argmax(is_shared & differs))
    return row, int(np.argmax(differs & (second.keys == first.keys[row])))


def _shown_by(
    columns: Mapping[str, ColumnKeys],
    other_columns: Mapping[str, ColumnKeys],
) -> str:
    """Return what shows the order of the rows: a column that agrees with another in most."""
    for (name, column), (_, other_column) in product(columns.items(), other_columns.items()):
        if column.counts_rows or other_column.counts_rows:
            continue
        num_values = len(np.unique(column.keys[_agree(column, other_column)]))
        if _are_most(num_values, len(column.keys)):
            return f"{name!r} agrees"
    return ""


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


# Words.


_WORD = re.compile(r"\w{3,}")
_MOST_ROWS = 1000
_ROWS_TOGETHER = 100


def _evidence_of_words(first: JoinedTable, second: JoinedTable) -> Evidence:
    """Compare the rare words of joined rows, in ten rows of each table at most and a quarter.

    A row belongs elsewhere if another row has `MIN_SHARED_WORDS` and most of its rare words, and
    the joined row at most a quarter as many. Words show the order if a quarter of the rows, and
    five, share no more with another row than with the joined one.
    """
    num_rows = max((len(column.keys) for column in first.columns.values()), default=0)
    step = max(-(-num_rows // _MOST_ROWS), 1)
    sample = [row for row in range(num_rows) if row // _ROWS_TOGETHER % step == 0]
    max_rows = min(10, len(sample) // 4)
    counts = Counter(chain.from_iterable(map(first.words, sample)))
    rows_of_word = defaultdict(list)
    for row in sample:
        for word in second.words(row):
            rows_of_word[word].append(row)

    num_partners = 0
    for row in sample:
        rare = []
        for word in first.words(row):
            if word in rows_of_word and max(counts[word], len(rows_of_word[word])) <= max_rows:
                rare.append(word)
        shared = Counter(chain.from_iterable(map(rows_of_word.__getitem__, rare)))
        [(other_row, most_shared)] = shared.most_common(1) or [(row, 0)]
        is_elsewhere = 4 * shared[row] <= most_shared and len(rare) < 2 * most_shared
        if is_elsewhere and most_shared >= MIN_SHARED_WORDS:
            return Evidence(moved=Moved(row, other_row))
        num_partners += 0 < shared[row] == most_shared
    if num_partners >= max(5, len(sample) / 4):
        return Evidence(shown_by="words agree")
    return Evidence()


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
                    "Leave one out, name a key of two columns, ",
                    Argument("columns", {"segment": "NAME+NAME"}),
                    ", ",
                    *WAY_OUT,
                )
        return rows


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


def lacks_segment(place: str, name: str | int, title: str, others: Iterable[str | int]) -> str:
    """Return the beginning of the error for a segment that an input lacks, which has others."""
    but = ""
    for other in others:
        if id_key(other) == id_key(name):
            but = f", but {other!r} is"
    return f"{place}: segment {name!r} is not in {title}{but}. Add it there, "


def id_key(name: str | int) -> str:
    """Return what ids have in common that look alike.

    Quotes around them, zeros before numbers, and the form of letters do not count.
    """
    return str(natural_key(plain_text(name).strip("'\"`\u2018\u2019\u201c\u201d"))[0])


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
    of_system: str = ""
    """What follows the table in messages if it has several systems, such as " of B"."""

    def place(self, row: int) -> str:
        """Return the place of a row of the table in messages."""
        return f"{self.table.place(row)}{self.of_system}"

    @property
    def columns(self) -> list[str]:
        """The columns that may say something of a segment."""
        left_out = {*self.left_out, *BY_PRODUCTS}
        return [name for name in self.table.names if name not in left_out]


class JoinCheck:
    """Asks the values of tables whether their rows were joined rightly.

    Each column is read once.
    """

    def __init__(self, rows_of: Mapping[Rows, RowsOfSegments]) -> None:
        """Check rows that were joined so."""
        self._rows_of = rows_of
        self._values = cache(WholeTable.values)
        self._texts: dict[str, tuple[list[object], NDArray[np.int64]]] = {}
        self._keys = cache(self._keys_of_column)
        self._counts = cache(self._is_counter)
        self._words = cache(self._words_of_row)

    def how(self, first: TablePart, second: TablePart) -> str:
        """Return what an output says of a join, such as "by id: 'question' agrees".

        Ids that one of the tables has beside one without have to be in order, unless values show
        the order of the rows. InputError is raised if the join may be wrong.
        """
        positions = _joined_rows(self._rows_of[first.rows], self._rows_of[second.rows])
        rows = np.asarray(first.rows.at, dtype=np.intp)[positions[:, 0]]
        other_rows = np.asarray(second.rows.at, dtype=np.intp)[positions[:, 1]]
        are_ids = _are_by_id(first, second)
        evidence = evidence_of(
            self._joined(first, rows, are_ids=are_ids),
            self._joined(second, other_rows, are_ids=are_ids),
        )
        if evidence.moved is not None:
            joined = np.stack([rows, other_rows], axis=1)
            raise self._contradiction(evidence.moved, first, second, joined)
        if evidence.unsettled is not None and _has_to_be_shown(first, second):
            raise _unshown(evidence.unsettled, first, second)
        if are_ids:
            ids = "+".join(first.rows.id_columns) or "the column without a name"
            return f"by {ids}: {evidence.shown_by or 'nothing else shows it'}"
        if evidence.shown_by:
            return f"by position: {evidence.shown_by}"
        if first.rows.ids is not None:
            _check_order(first.rows, second.rows)
        if second.rows.ids is not None:
            _check_order(second.rows, first.rows)
        return "by position: nothing contradicts it"

    def _joined(self, part: TablePart, rows: NDArray[np.intp], *, are_ids: bool) -> JoinedTable:
        table = part.table
        in_order = np.sort(np.asarray(part.rows.at, dtype=np.intp))
        columns = {}
        outputs = set(part.outputs)
        for name in part.columns:
            # Beside ids a counter says nothing: it may have counted the rows of its own file.
            if are_ids and (name in part.rows.id_columns or self._counts(part, name)):
                continue
            keys = self._keys(table, name)
            columns[name] = ColumnKeys(keys[rows], keys[in_order])
            if {plain_name(name), plain_name(name).removesuffix("s")} & OUTPUTS:
                outputs.add(name)

        def words(row: int) -> Collection[str]:
            return self._words(table, tuple(columns), int(rows[row]))

        return JoinedTable(columns, words, frozenset(outputs))

    def _keys_of_column(self, table: WholeTable, name: str) -> NDArray[np.int64]:
        """Return the keys of a column, made once for equal texts of one name."""
        values = self._values(table, name)
        if set(map(type, values)) != {str}:  # equal values such as 1 and True have other keys
            return column_keys(values)
        if name in self._texts:
            other_values, other_keys = self._texts[name]
            if values == other_values:
                return other_keys
        keys = column_keys(values)
        self._texts[name] = (values, keys)
        return keys

    def _is_counter(self, part: TablePart, name: str) -> bool:
        """Return whether a column only counts, in single words; `question 7` is a text."""
        values = self._values(part.table, name)
        rows = part.rows.at
        if not rows or " " in str(values[rows[0]]):
            return False
        return only_count([values[row] for row in rows])

    def _words_of_row(self, table: WholeTable, names: Sequence[str], row: int) -> Collection[str]:
        cells = [plain_text(self._values(table, name)[row]) for name in names]
        texts = [text for text in cells if not text.isdecimal()]
        return dict.fromkeys(_WORD.findall(" ".join(texts)))

    def _may_be_ids(self, part: TablePart, name: str) -> bool:
        keys = self._keys(part.table, name)[np.asarray(part.rows.at)]
        is_unique = len(np.unique(keys[keys != BLANK])) == len(keys)
        return is_unique and not self._counts(part, name)

    def _contradiction(
        self, moved: Moved, first: TablePart, second: TablePart, joined: NDArray[np.intp]
    ) -> InputError:
        """Return the error for a value, or words, in rows that were not joined, (segments, 2)."""
        how = "position"
        if _are_by_id(first, second):
            how = "id"
        evidence = "its words are those"
        named: list[str | Argument] = []
        if moved.column:
            evidence = f"its {moved.column!r} is the {moved.other_column!r}"
            columns = (moved.column, moved.other_column)
            if all(map(self._may_be_ids, (first, second), columns)):
                named = ["if that column has the ids, ", _named_ids(columns), ", "]
        return InputError(
            f"By {how}, {first.place(joined[moved.row, 0])} meets "
            f"{second.place(joined[moved.row, 1])}, but {evidence} of "
            f"{second.place(joined[moved.other_row, 1])}: ",
            *named,
            *_trusted(first, second),
        )


def _are_by_id(first: TablePart, second: TablePart) -> bool:
    return first.rows.ids is not None and second.rows.ids is not None


def _has_to_be_shown(first: TablePart, second: TablePart) -> bool:
    """Return whether rows were joined by position, or by ids that only count rows."""
    if not _are_by_id(first, second):
        return True
    return only_count(first.rows.ids or ()) and only_count(second.rows.ids or ())


def _unshown(names: tuple[str, str], first: TablePart, second: TablePart) -> InputError:
    """Return the error for rows that nothing shows to belong together."""
    how = "are in the same order"
    if _are_by_id(first, second):
        how = "belong together by their ids, which only count"
    columns = " and ".join(map(repr, dict.fromkeys(names)))
    return InputError(
        f"Nothing shows that the rows of {first.rows.title}{first.of_system} and "
        f"{second.rows.title}{second.of_system} {how}; look at {columns}. Name a column of ids, ",
        NAMED_IDS,
        ", or, ",
        *_trusted(first, second),
    )


def _trusted(first: TablePart, second: TablePart) -> list[str | Argument]:
    """Return the option that trusts how rows were joined, and when to use it."""
    names = (*first.rows.id_columns, *second.rows.id_columns)
    if not _are_by_id(first, second):
        return ["if the rows are in the same order all the same, ", BY_POSITION, "."]
    if not {*names} <= {*first.table.names, *second.table.names}:
        return ["if the index has the ids, make it a column and name that, ", NAMED_IDS, "."]
    return ["if the ids are right, ", _named_ids(names), "."]


def _named_ids(columns: Iterable[str]) -> Argument:
    """Return the option that names a column of ids, or that of each table."""
    names = list(dict.fromkeys(columns))
    return Argument("columns", {"segment": names if names[1:] else names[0]})


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
    return Join(rows, "by id" if _are_by_id(*tables) else "by position, as you said")


def _lacking(tables: Sequence[TablePart], rows_of: Mapping[Rows, RowsOfSegments]) -> InputError:
    """Return the error for the first segment that one of two tables lacks."""
    for table, other in (tables, tables[::-1]):
        others = rows_of[other.rows]
        for name, row in rows_of[table.rows].items():
            if name not in others:
                start = lacks_segment(table.rows.place(row), name, other.rows.title, others)
                return InputError(start, "or leave it out here, ", *WAY_OUT)
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
