"""The rows of inputs, joined by segment: those of scores, texts, references and documents that have the same id.

Joined segments stand in the natural order of their ids, so that the order of rows changes no result. Inputs without ids
are joined by position, tables only if their other columns show that their rows are in the same order.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.columns import id_text
from bertscore_onnx.tables.table import natural_key, plural
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.column_roles import BY_PRODUCTS, index_of

Missing = Literal["raise", "drop"]
"""How to handle a segment that some input lacks: raise an error, or leave it out for all systems."""

_BY_POSITION = Argument("columns", {"segment": "none"})
_WAYS_OUT = (
    "Name the column of ids, ",
    Argument("columns", {"segment": "NAME"}),
    "; or join by position, ",
    _BY_POSITION,
    ".",
)


@dataclass(frozen=True, slots=True, eq=False)
class SegmentColumns:
    """Values for segments, such as the scores or the texts of some systems, from one input."""

    title: str
    """The input in messages."""
    columns: Mapping[str, Sequence[Any]]
    """The values of each column, (rows,); None or NaN where there is none."""
    ids: Sequence[str] | None = None
    """The id of each row, (rows,); None if rows have none."""
    labels: Sequence[Hashable] | None = None
    """The index of the rows in pandas, (rows,); None for other forms, and where rows were put together."""
    place: Callable[[int], str] = str
    """The place of a row, counted from 0, in messages."""
    unit: str = "row"
    """What a row is in messages, such as a line."""
    table: WholeTable | None = None
    """The table of the columns."""
    rows: Sequence[int] = ()
    """The row of the table of each row, (rows,); none without a table, or if its order does not have to be shown."""
    systems: tuple[str, ...] = ()
    """The systems that the input has, if it has some."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the table that were used."""
    runs: tuple["SegmentColumns", ...] = ()
    """The inputs with the single runs, if these are several."""
    lacking_runs: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The run that a column lacks in a row."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values())))

    @property
    def is_indexed(self) -> bool:
        """Whether its rows have ids in the index of pandas: one other than 0, 1, 2 and so on."""
        labels = None if self.ids is not None or self.labels is None else [*map(id_text, self.labels)]
        return labels is not None and labels != [*map(str, range(len(labels)))]

    def by_label(self) -> "SegmentColumns":
        """Return the columns with the labels of pandas as ids."""
        index = () if self.table is None else index_of(self.table)
        ids = [*map(id_text, self.labels or ())]
        return replace(self, ids=ids, roles={**self.roles, "segment": index or ("index",)})

    def incomplete(self, missing: Missing) -> dict[int, str]:
        """Return the rows that lack a value, with the first column where they do.

        Where segments may be missing, a score of some runs is complete: it is the mean of the runs that there are.
        """
        rows: dict[int, str] = {}
        for name, values in self.columns.items():
            for row, value in enumerate(values):
                if _is_missing(value, missing):
                    rows.setdefault(row, name)
        return rows


def _is_missing(value: Any, missing: Missing) -> bool:
    if isinstance(value, tuple):
        return None in value or (any if missing == "raise" else all)(score != score for score in value)
    return value is None or bool(value != value)  # NaN


def columns_of_list(values: Sequence[Any], title: str, labels: Sequence[Hashable] | None = None) -> SegmentColumns:
    """Return one column of values without ids, such as the texts of a list."""
    return SegmentColumns(title, {title: values}, None, labels, lambda row: f"{title}[{row}]", "value")


def at_rows(columns: SegmentColumns, rows: Sequence[int]) -> SegmentColumns:
    """Return some rows of columns, which have other places in their table then."""
    return replace(
        columns,
        columns={name: [values[row] for row in rows] for name, values in columns.columns.items()},
        ids=None if columns.ids is None else [columns.ids[row] for row in rows],
        labels=None,
        place=lambda row: columns.place(rows[row]),
        rows=[columns.rows[row] for row in rows if columns.rows],
    )


def as_runs(runs: Sequence[SegmentColumns], missing: Missing) -> SegmentColumns:
    """Return inputs with the same columns, which are runs of the same systems, as one whose values are tuples.

    Where segments may be missing, NaN stands for the score of a run that lacks one, and None for its text.
    """
    first, *further = runs
    if not further:
        return first
    for columns in runs:
        if "run" in columns.roles:
            raise InputError(f"{columns.title} has a column of runs, and is one of {len(runs)} runs; expected either.")
    if missing == "raise":
        join_segments(runs)  # which raises the error for a segment that a run lacks
    runs = with_labels(runs)
    rows_of = _rows_by_name(runs)
    names = [*dict.fromkeys(chain.from_iterable(rows_of))]
    are_scores = isinstance(next(chain.from_iterable(first.columns.values()), None), float)
    absent = np.nan if are_scores else None
    values = {
        column: [
            tuple(
                run.columns[column][rows[name]] if name in rows else absent
                for run, rows in zip(runs, rows_of, strict=True)
            )
            for name in names
        ]
        for column in first.columns
    }
    ids = None if all(run.ids is None for run in runs) else [*map(str, names)]
    whole = at_rows(first, [rows_of[0].get(name, 0) for name in names])
    return replace(whole, columns=values, ids=ids, rows=(), runs=tuple(runs))


def scores_of(values: Sequence[float | tuple[float, ...]]) -> NDArray[np.float64]:
    """Return the scores of a system, (segments,), or of its runs, (runs, segments)."""
    scores = np.array(values, dtype=np.float64)
    return scores.T if scores.ndim == 2 else scores


@dataclass(frozen=True, slots=True, eq=False)
class JoinedSegments:
    """The segments that all inputs have, in the order of their ids."""

    names: tuple[str | int, ...]
    """The ids; or where there are none, the numbers of the lines or rows, which count from 1."""
    dropped: tuple[str | int, ...]
    """The segments that were left out, since some input lacks them."""
    rows: Mapping[SegmentColumns, Mapping[str | int, int]]
    """The row of each segment in each input."""

    def columns(self, inputs: Iterable[SegmentColumns]) -> list[tuple[str, list[Any]]]:
        """Return the columns of some inputs with their names, in the order of the segments."""
        return [
            (name, [values[self.rows[one][segment]] for segment in self.names])
            for one in inputs
            for name, values in one.columns.items()
        ]

    def lacking(self, one: SegmentColumns, values: Sequence[Any]) -> set[str | int]:
        """Return the segments that were left out and have no value in a column of an input."""
        rows = self.rows[one]
        return {name for name in self.dropped if name not in rows or _is_missing(values[rows[name]], "drop")}


def join_segments(inputs: Sequence[SegmentColumns], missing: Missing = "raise") -> JoinedSegments:
    """Join the rows of inputs by their ids, or by position if none has ids.

    An index of pandas other than 0, 1, 2, … counts as ids if no input has a column of ids. Inputs without ids are
    joined with others only if these have as many segments, in the order of their ids. InputError is raised for an id
    that occurs again, for tables that may be in different orders, and for the first segment that an input lacks, unless
    such segments are to be dropped.
    """
    if missing not in get_args(Missing):
        raise InputError(f'missing is {missing!r}; expected "raise" or "drop".')
    labelled = with_labels(inputs)
    runs = [*chain.from_iterable(one.runs for one in labelled)]
    rows_of = _rows_by_name([*labelled, *runs])[: len(labelled)]
    names = [*rows_of[0]]
    if any(columns.ids is not None for columns in labelled):
        names = sorted({*chain.from_iterable(rows_of)}, key=natural_key)
    kept: list[str | int] = []
    dropped: list[str | int] = []
    lacking = [columns.incomplete(missing) for columns in labelled]
    for name in names:
        segment_rows = (rows.get(name) for rows in rows_of)
        is_complete = all(row is not None and row not in rows for row, rows in zip(segment_rows, lacking, strict=True))
        (kept if is_complete else dropped).append(name)
    if dropped and missing == "raise":
        raise _incomplete(labelled, rows_of, lacking, dropped[0])
    if not kept:
        titles = ", ".join(dict.fromkeys(columns.title for columns in inputs))
        raise InputError(f"No segment is in all of {titles}, with a value in every column.")
    return JoinedSegments(tuple(kept), tuple(dropped), dict(zip(inputs, rows_of, strict=True)))


def _rows_by_name(inputs: Sequence[SegmentColumns]) -> list[Mapping[str | int, int]]:
    """Return the row of each segment in each input: by its id, or by position if no input has ids."""
    with_ids = [columns for columns in inputs if columns.ids is not None]
    plain = [columns for columns in inputs if columns.ids is None]
    for columns in plain[1:]:
        if len(columns) != len(plain[0]):
            raise _unequal(plain[0], columns)
    positions: Sequence[str | int] = range(1, len(plain[0]) + 1) if plain else ()
    if with_ids and plain:
        positions = _ids_of_positions(with_ids, plain[0])
    by_position = {name: row for row, name in enumerate(positions)}
    by_ids = {id(columns.ids): columns for columns in with_ids}  # columns of one table share them
    by_id = {key: _rows_by_id(columns) for key, columns in by_ids.items()}
    rows_of: list[Mapping[str | int, int]] = [
        by_position if columns.ids is None else by_id[id(columns.ids)] for columns in inputs
    ]
    _check_order(inputs, rows_of)
    return rows_of


def with_labels(inputs: Sequence[SegmentColumns]) -> Sequence[SegmentColumns]:
    """Return inputs with the labels of pandas as ids, if those of some are not 0, 1, 2 and so on."""
    indexed = next((columns for columns in inputs if columns.is_indexed), None)
    if indexed is None:
        return inputs
    if with_ids := next((columns for columns in inputs if columns.ids is not None), None):
        raise InputError(
            f"{indexed.title} has its ids in the index of pandas, and {with_ids.title} in a column; expected one of "
            "these in all. Give data frames with the column of ids, or put it into the index of both."
        )
    return [columns if columns.labels is None else columns.by_label() for columns in inputs]


def _rows_by_id(columns: SegmentColumns) -> dict[str | int, int]:
    """Return the row of each id; raise InputError for an id that occurs again."""
    rows: dict[str | int, int] = {}
    for row, name in enumerate(columns.ids or ()):
        earlier = rows.setdefault(name, row)
        if earlier != row:
            raise InputError(
                f"{columns.place(row)}: segment {name!r} occurs again; it is in {columns.place(earlier)} too. ",
                *_WAYS_OUT,
            )
    return rows


def _check_order(inputs: Sequence[SegmentColumns], rows_of: Sequence[Mapping[str | int, int]]) -> None:
    """Raise InputError for a table without ids that may be in another order than a table that it is joined with."""
    tables: dict[WholeTable, tuple[SegmentColumns, Mapping[str | int, int], set[str]]] = {}
    for one, rows in zip(inputs, rows_of, strict=True):
        if one.table is not None and one.rows:
            values = one.roles.get("score", ()) + one.roles.get("candidate", ()) or one.systems
            tables.setdefault(one.table, (one, rows, {*BY_PRODUCTS}))[2].update(values)

    @cache
    def cells(table: WholeTable, name: str) -> list[str]:
        return [*map(id_text, table.values(name))]

    for (table, (one, rows, own)), (other_table, (other, other_rows, others)) in combinations(tables.items(), 2):
        if one.ids is not None and other.ids is not None:
            continue
        at = [(one.rows[rows[name]], other.rows[other_rows[name]]) for name in rows if name in other_rows]
        columns = {
            name: [(cells(table, name)[row], cells(other_table, name)[other_row]) for row, other_row in at]
            for name in table.names
            if name in other_table.names
        }
        if (name := _doubtful_column(columns, own | others)) is not None:
            row = next(row for (row, _), (first, second) in zip(at, columns[name], strict=True) if first != second)
            titles = (one.title, other.title) if one.ids is None else (other.title, one.title)
            raise InputError(
                f"{titles[0]} has no ids, and its rows may be in another order than those of {titles[1]}: {name!r} "
                f"differs, first in {table.place(row)}. ",
                *_WAYS_OUT,
            )


def _doubtful_column(columns: Mapping[str, Sequence[tuple[str, str]]], values: Collection[str]) -> str | None:
    """Return a column of two tables that makes it doubtful whether their order is the same; None if there is none.

    The order is the same if columns of both, other than scores and outputs, agree in every row and tell most rows
    apart; or if no such column differs. A column with the same values in another order contradicts both.
    """
    differing = [name for name, pairs in columns.items() if any(first != second for first, second in pairs)]
    for name in differing:
        first, second = zip(*columns[name], strict=True)
        if _tell_rows_apart(first) and sorted(first) == sorted(second):
            return name
    telling = [name for name, pairs in columns.items() if name not in values and not _tells_nothing(pairs)]
    if _tell_rows_apart([*zip(*(columns[name] for name in telling if name not in differing), strict=True)]):
        return None
    return next((name for name in telling if name in differing), None)


def _tell_rows_apart(values: Sequence[Hashable]) -> bool:
    """Return whether most of the different values occur once, and there are more of them than half the rows."""
    counts = Counter(values)
    return 2 * [*counts.values()].count(1) > len(counts) > len(values) / 2


def _tells_nothing(pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether a column has one value in each table, or counts the rows of both, from 0 or 1."""

    def counts_from(start: int, values: Sequence[str]) -> bool:
        return all((value.lstrip("0") or "0") == str(row) for row, value in enumerate(values, start))

    return all(
        len({*values}) == 1 or counts_from(0, values) or counts_from(1, values) for values in zip(*pairs, strict=True)
    )


def _ids_of_positions(with_ids: Sequence[SegmentColumns], plain: SegmentColumns) -> list[str]:
    """Return the ids of the rows of an input without ids, (rows,); raise InputError if they are not clear."""
    for columns in with_ids:
        ids = columns.ids or ()
        for row in range(1, len(ids)):
            if natural_key(ids[row]) < natural_key(ids[row - 1]):
                raise InputError(
                    f"{columns.place(row)}: segment {ids[row]!r} is not in the order of ids, and {plain.title} has no "
                    f"ids to join by. Give that as a table with a column of ids, sort {columns.title} by its ids, or "
                    "join by position, ",
                    _BY_POSITION,
                    ".",
                )
    names = sorted({name for columns in with_ids for name in columns.ids or ()}, key=natural_key)
    if len(names) != len(plain):
        raise InputError(
            f"{plain.title} has {plural(len(plain), plain.unit)} without ids, and {with_ids[0].title} has "
            f"{plural(len(names), 'segment')}; expected as many. Give {plain.title} as a table with a column of ids."
        )
    return names


def _unequal(first: SegmentColumns, second: SegmentColumns) -> InputError:
    """Return the error for two inputs without ids that have different numbers of rows."""
    longer = max(first, second, key=len)
    of_first, of_second = plural(len(first), first.unit), plural(len(second), second.unit)
    return InputError(
        f"{first.title} has {of_first} and {second.title} has {of_second}; expected as many in each, in the same "
        "order, or a column of ids in both: "
        f"{longer.place(min(len(first), len(second)))} has no partner."
    )


def _incomplete(
    inputs: Sequence[SegmentColumns],
    rows_of: Sequence[Mapping[Any, int]],
    lacking: Sequence[Mapping[int, str]],
    name: str | int,
) -> InputError:
    """Return the error for a segment that some input lacks."""
    remedy = ("or leave out such segments of all systems with ", Argument("missing", "drop"), ".")
    place = next(one.place(rows[name]) for one, rows in zip(inputs, rows_of, strict=True) if name in rows)
    for one, rows, columns in zip(inputs, rows_of, lacking, strict=True):
        if name not in rows:
            return InputError(f"{place}: segment {name!r} is not in {one.title}. Add it there, ", *remedy)
        if (column := columns.get(rows[name])) is not None:
            of_column = f" of {column!r}" if column != one.title else ""
            if (run := one.lacking_runs.get((column, rows[name]))) is not None:
                of_column += f" in run {run!r}, which other segments have,"
            of_segment = "" if isinstance(name, int) else f" for segment {name!r}"  # a position is in the place
            return InputError(f"{one.place(rows[name])}: there is no value{of_column}{of_segment}. Add it, ", *remedy)
    raise AssertionError(name)
