"""The rows of inputs, joined by segment: those of scores, texts, references and documents that have the same id.

Joined segments stand in the natural order of their ids, so that the order of rows changes no result. Inputs without ids
are joined by position, tables only if their other columns show that their rows are in the same order.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.columns import id_text
from bertscore_onnx.tables.joins import BY_POSITION, NAMED_IDS, JoinCheck, TablePart
from bertscore_onnx.tables.table import natural_key, plural
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.column_roles import index_of

Missing = Literal["raise", "drop"]
"""How to handle a segment that some input lacks: raise an error, or leave it out for all systems."""

_WAYS_OUT = ("Name the column of ids, ", NAMED_IDS, "; or join by position, ", BY_POSITION, ".")


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
    how: Mapping[WholeTable, str]
    """What the output says of how tables were joined, where the values of others could be asked."""

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
    rows_of_all = _rows_by_name([*labelled, *runs])
    how = _how_joined([*labelled, *runs], rows_of_all)
    rows_of = rows_of_all[: len(labelled)]
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
    return JoinedSegments(tuple(kept), tuple(dropped), dict(zip(inputs, rows_of, strict=True)), how)


def _rows_by_name(inputs: Sequence[SegmentColumns]) -> list[Mapping[str | int, int]]:
    """Return the row of each segment in each input: by its id, or by position if no input has ids."""
    with_ids = [columns for columns in inputs if columns.ids is not None]
    plain = [columns for columns in inputs if columns.ids is None]
    for columns in plain[1:]:
        if len(columns) != len(plain[0]):
            raise _unequal(plain[0], columns)
    positions: Sequence[str | int] = range(1, len(plain[0]) + 1) if plain else ()
    if with_ids and plain:
        positions = _ids_of_positions(with_ids, plain)
    by_position = {name: row for row, name in enumerate(positions)}
    by_ids = {id(columns.ids): columns for columns in with_ids}  # columns of one table share them
    by_id = {key: _rows_by_id(columns) for key, columns in by_ids.items()}
    rows_of: list[Mapping[str | int, int]] = [
        by_position if columns.ids is None else by_id[id(columns.ids)] for columns in inputs
    ]
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


def part_of(columns: SegmentColumns) -> TablePart | None:
    """Return the rows of the table that columns come from; None if their order does not have to be shown."""
    if columns.table is None or not len(columns.rows):
        return None
    scores = columns.roles.get("score", ())
    outputs = columns.roles.get("candidate", ())
    if not (scores or outputs or _are_texts(columns)):
        scores = columns.systems
    elif not (scores or outputs):
        outputs = columns.systems
    names = [name for role in ("system", "metric", "run") for name in columns.roles.get(role, ())]
    return TablePart(columns.table, np.sort(columns.rows), frozenset(outputs), frozenset({*scores, *names}))


def _are_texts(columns: SegmentColumns) -> bool:
    first = next(iter(columns.columns.values()), ())
    return any(isinstance(value, str) for value in first)


def _how_joined(inputs: Sequence[SegmentColumns], rows_of: Sequence[Mapping[str | int, int]]) -> dict[WholeTable, str]:
    """Return what the output says of how tables were joined; raise InputError if values contradict it."""
    check = JoinCheck()
    how: dict[WholeTable, str] = {}
    parts: dict[WholeTable, tuple[TablePart, SegmentColumns, Mapping[str | int, int]]] = {}
    for columns, rows in zip(inputs, rows_of, strict=True):
        part = part_of(columns)
        if part is None:
            continue
        if columns.table in parts:
            other, *_ = parts[columns.table]
            outputs, left_out = part.outputs | other.outputs, part.left_out | other.left_out
            part = replace(part, outputs=outputs, left_out=left_out)
        parts[columns.table] = part, columns, rows
    for (table, first), (other_table, second) in combinations(parts.items(), 2):
        part, columns, rows = first
        other_part, other, other_rows = second
        joined = [name for name in rows if name in other_rows]
        at = np.array([columns.rows[rows[name]] for name in joined], dtype=np.intp)
        other_at = np.array([other.rows[other_rows[name]] for name in joined], dtype=np.intp)
        are_ids = columns.ids is not None and other.ids is not None
        has_ids = columns.ids is not None or other.ids is not None
        ids = [str(name) for name in joined] if has_ids and not are_ids else ()
        said = check.how(part, at, other_part, other_at, are_ids=are_ids, ids=ids)
        if not are_ids:
            how.setdefault(table, said)
            how.setdefault(other_table, said)
    return how


def _ids_of_positions(with_ids: Sequence[SegmentColumns], plain: Sequence[SegmentColumns]) -> list[str]:
    """Return the ids of the rows of inputs without ids, (rows,); raise InputError if they are not clear.

    The rows of a table are those of the first table with ids, at the same positions. A list has nothing that could show
    its order: it is that of the ids, in which all tables with ids have to be then.
    """
    names = list(with_ids[0].ids or ())
    lists = [columns for columns in plain if columns.table is None]
    if lists:
        for columns in with_ids:
            _check_order_of_ids(columns, lists[0])
        names = sorted({name for columns in with_ids for name in columns.ids or ()}, key=natural_key)
    if len(names) != len(plain[0]):
        raise InputError(
            f"{plain[0].title} has {plural(len(plain[0]), plain[0].unit)} without ids, and {with_ids[0].title} has "
            f"{plural(len(names), 'segment')}; expected as many. Give {plain[0].title} as a table with a column of ids."
        )
    return names


def _check_order_of_ids(columns: SegmentColumns, plain: SegmentColumns) -> None:
    ids = columns.ids or ()
    for row in range(1, len(ids)):
        if natural_key(ids[row]) < natural_key(ids[row - 1]):
            raise InputError(
                f"{columns.place(row)}: segment {ids[row]!r} is not in the order of ids, and {plain.title} has no ids "
                f"to join by. Give that as a table with a column of ids, sort {columns.title} by its ids, or join by "
                "position, ",
                BY_POSITION,
                ".",
            )


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
