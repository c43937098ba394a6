"""The rows of inputs, joined by segment: those of scores, texts, references and documents that have the same id.

Joined segments stand in the natural order of their ids, so that the order of rows changes no result. Inputs without ids
are joined by position, tables only if their other columns show that their rows are in the same order.
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.joins import JoinCheck, Rows, RowsOfSegments, TablePart, lacks_segment, rows_of_segments
from bertscore_onnx.tables.table import natural_key
from bertscore_onnx.tables.whole_table import WholeTable

Missing = Literal["raise", "drop"]
"""How to handle a segment that some input lacks: raise an error, or leave it out for all systems."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A value for each row of an input, such as the scores or the texts of a run of a system."""

    name: str
    """The system; or the input, if it is of no system."""
    rows: Rows
    values: Sequence[Any]
    """(rows,); None or NaN where there is none."""
    role: str = ""
    """What the values are, such as `score`."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the table that were used, by role."""
    run: str = ""
    """The run, if the table has several."""

    @property
    def is_of_system(self) -> bool:
        """Whether the values are of one system."""
        return self.role in ("candidate", "score")

    @property
    def used(self) -> dict[str, tuple[str, ...]]:
        """The columns that were used, with those of the ids."""
        return {**self.roles, **({} if self.rows.ids is None else {"segment": self.rows.id_columns})}


def column_of_lines(title: str, lines: Sequence[str]) -> Column:
    """Return the texts in the lines of a file."""
    return Column(title, Rows(title, len(lines), lambda row: f"{title}, line {row + 1}", "line"), lines)


def column_of_list(values: Sequence[Any], title: str, role: str, labels: Sequence[Hashable] | None = None) -> Column:
    """Return values without ids, such as the texts of a list."""
    rows = Rows(title, len(values), lambda row: f"{title}[{row}]", "value", id_columns=("index",), labels=labels)
    return Column(title, rows, values, role)


def scores_of(values: Sequence[float | tuple[float, ...]]) -> NDArray[np.float64]:
    """Return the scores of a system, (segments,), or of its runs, (runs, segments)."""
    scores = np.array(values, dtype=np.float64)
    return scores.T if scores.ndim == 2 else scores


@dataclass(frozen=True, slots=True, eq=False)
class JoinedSegments(Generic[_Key]):
    """The segments that all inputs have, in the order of their ids."""

    names: tuple[str | int, ...]
    """The ids; or where there are none, the numbers of the lines or rows, which count from 1."""
    dropped: tuple[str | int, ...]
    """The segments that were left out, since some input lacks them."""
    values: Mapping[_Key, list[Any]]
    """The value of each segment by input, or the values of all runs."""
    lacking: Mapping[_Key, Set[str | int]]
    """The segments without a value by input."""
    columns: Sequence[Column]
    """The columns, with the ids that were used."""
    how: Mapping[WholeTable, str]
    """What the output says of how tables were joined, where the values of others could be asked."""


def join_segments(
    inputs: Mapping[_Key, Sequence[Column]], missing: Missing = "raise", *, are_ids_trusted: bool = False
) -> JoinedSegments[_Key]:
    """Join the rows of inputs, each of one or several runs, by their ids, or by position if none has ids.

    An index of pandas other than 0, 1, 2, … counts as ids if no input has a column of ids. Where segments may be
    dropped, a score of some runs is complete: it is the mean of the runs that there are. InputError is raised for an id
    that occurs again, for tables that may be in different orders, and for the first segment that an input lacks, unless
    such segments are to be dropped.
    """
    if missing not in get_args(Missing):
        raise InputError(f'missing is {missing!r}; expected "raise" or "drop".')
    inputs = {key: sorted(runs, key=lambda column: natural_key(column.run)) for key, runs in inputs.items()}
    for runs in inputs.values():
        tables = {id(column.rows.table) for column in runs}
        if len(tables) > 1 and any(column.run for column in runs):
            raise InputError(
                f"{runs[0].rows.title} has a column of runs, and is one of {len(tables)} runs; expected either."
            )
    inputs = _with_labels(inputs)
    columns = [*chain.from_iterable(inputs.values())]
    rows_of = rows_of_segments([*dict.fromkeys(column.rows for column in columns)])
    how = {} if are_ids_trusted else _how_joined(columns, rows_of)

    names = [*rows_of[columns[0].rows]]
    if any(column.rows.ids is not None for column in columns):
        names = sorted({*chain.from_iterable(rows_of.values())}, key=natural_key)
    values = {key: [_values(runs, rows_of, name) for name in names] for key, runs in inputs.items()}
    lacking = {}
    for key, runs in inputs.items():
        lacks = all if missing == "drop" and runs[0].role == "score" else any
        of_segments = zip(names, values[key], strict=True)
        lacking[key] = {name for name, of_runs in of_segments if lacks(map(_is_missing, of_runs))}
    dropped = set().union(*lacking.values())
    if dropped and missing == "raise":
        raise _incomplete(columns, rows_of, next(name for name in names if name in dropped))
    if len(dropped) == len(names):
        titles = ", ".join(dict.fromkeys(column.rows.title for column in columns))
        raise InputError(f"No segment is in all of {titles}, with a value in every column.")
    kept = [position for position, name in enumerate(names) if name not in dropped]
    return JoinedSegments(
        tuple(names[position] for position in kept),
        tuple(name for name in names if name in dropped),
        {key: [_whole(of_input[position]) for position in kept] for key, of_input in values.items()},
        lacking,
        columns,
        how,
    )


def _values(runs: Sequence[Column], rows_of: Mapping[Rows, RowsOfSegments], name: str | int) -> tuple[Any, ...]:
    """Return the value of a segment in each run; None where a run lacks it, or NaN if it is a score."""
    absent = np.nan if runs[0].role == "score" else None
    rows = [(column, rows_of[column.rows].get(name)) for column in runs]
    return tuple(absent if row is None else column.values[row] for column, row in rows)


def _whole(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)  # NaN


def _with_labels(inputs: Mapping[_Key, Sequence[Column]]) -> dict[_Key, list[Column]]:
    """Return inputs with the labels of pandas as ids, if those of some are not 0, 1, 2 and so on."""
    rows_of_all = [*dict.fromkeys(column.rows for runs in inputs.values() for column in runs)]
    indexed = next((rows for rows in rows_of_all if rows.is_indexed), None)
    if indexed is None:
        return {key: [*runs] for key, runs in inputs.items()}
    if with_ids := next((rows for rows in rows_of_all if rows.ids is not None), None):
        raise InputError(
            f"{indexed.title} has its ids in the index of pandas, and {with_ids.title} in a column; expected one of "
            "these in all. Give data frames with the column of ids, or put it into the index of both."
        )
    labelled = {rows: rows.by_label() for rows in rows_of_all}
    return {key: [replace(column, rows=labelled[column.rows]) for column in runs] for key, runs in inputs.items()}


def _how_joined(columns: Sequence[Column], rows_of: Mapping[Rows, RowsOfSegments]) -> dict[WholeTable, str]:
    """Return what the output says of how tables were joined; raise InputError if values contradict it."""
    by_table: dict[WholeTable, list[Column]] = {}
    for column in columns:
        if column.rows.table is not None:
            by_table.setdefault(column.rows.table, []).append(column)
    tables = []
    for table, of_table in by_table.items():
        names: dict[str, set[str]] = {}
        for column in of_table:
            for role, of_role in {column.role: (column.name,), **column.roles}.items():
                names.setdefault(role, set()).update(of_role)
        outputs = frozenset(names.get("candidate", ()))
        left_out = frozenset(name for role in ("score", "system", "metric", "run") for name in names.get(role, ()))
        parts = dict.fromkeys(column.rows for column in of_table)
        tables.append([TablePart(table, rows, outputs, left_out) for rows in parts])
    return JoinCheck(rows_of).of_tables(tables)


def _incomplete(columns: Sequence[Column], rows_of: Mapping[Rows, RowsOfSegments], name: str | int) -> InputError:
    """Return the error for a segment that some input lacks."""
    remedy = ("or leave out such segments of all systems with ", Argument("missing", "drop"), ".")
    places = {
        column.rows.title: column.rows.place(rows_of[column.rows][name])
        for column in reversed(columns)
        if name in rows_of[column.rows]
    }
    for column in columns:
        title = column.rows.title
        if title not in places:
            first = next(iter(reversed(places.values())))
            return InputError(lacks_segment(first, name, title), *remedy)
        row = rows_of[column.rows].get(name)
        if row is None or _is_missing(column.values[row]):
            place = places[title] if row is None else column.rows.place(row)
            of_column = f" of {column.name!r}" if column.name != title else ""
            of_run = f" in run {column.run!r}, which other segments have," if column.run else ""
            of_segment = "" if isinstance(name, int) else f" for segment {name!r}"  # a position is in the place
            return InputError(f"{place}: there is no value{of_column}{of_run}{of_segment}. Add it, ", *remedy)
    raise AssertionError(name)
