"""The rows of inputs, joined by segment.

Scores, texts, references and documents with the same id are of one segment. Joined segments stand
in the natural order of their ids, so that the order of rows changes no result. Inputs without ids
are joined by position, tables only if their other columns show that their rows are in the same
order.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.joins import (
    JoinCheck,
    Rows,
    RowsOfSegments,
    TablePart,
    lacks_segment,
    rows_of_segments,
)
from bertscore_onnx.tables.table import natural_key
from bertscore_onnx.tables.whole_table import WholeTable

Missing = Literal["raise", "drop"]
"""How to handle a segment that some input lacks.

An error is raised, or it is left out for all systems."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A value for each row of an input, such as the scores of a run."""

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
    column: str = ""
    """The column of the table with the values."""

    @property
    def is_of_system(self) -> bool:
        """Whether the values are of one system."""
        return self.role in ("candidate", "score")

    @property
    def used(self) -> dict[str, tuple[str, ...]]:
        """The columns that were used, with those of the ids."""
        if self.rows.ids is None:
            return dict(self.roles)
        return {**self.roles, "segment": self.rows.id_columns}


def column_of_lines(title: str, lines: Sequence[str]) -> Column:
    """Return the texts in the lines of a file."""
    rows = Rows(title, len(lines), lambda row: f"{title}, line {row + 1}", "line")
    return Column(title, rows, lines)


def column_of_list(
    values: Sequence[Any],
    title: str,
    role: str,
    labels: Sequence[Hashable] | None = None,
) -> Column:
    """Return values without ids, such as the texts of a list."""
    rows = Rows(
        title,
        len(values),
        lambda row: f"{title}[{row}]",
        "value",
        id_columns=("index",),
        labels=labels,
    )
    return Column(title, rows, values, role)


def scores_of(values: Sequence[float | tuple[float, ...]]) -> NDArray[np.float64]:
    """Return the scores of a system, (segments,), or of its runs, (runs, segments)."""
    scores = np.array(values, dtype=np.float64)
    if scores.ndim == 2:
        return scores.T
    return scores


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
    inputs: Mapping[_Key, Sequence[Column]],
    missing: Missing = "raise",
    *,
    are_ids_trusted: bool = False,
) -> JoinedSegments[_Key]:
    """Join the rows of inputs, each of one or several runs.

    Rows are joined by their ids, or by position if none has ids. An index of pandas other than
    0, 1, 2, … counts as ids, and beside one every index does. Where segments may be dropped, a
    score of some runs is complete: it is the mean of the runs that there are.

    InputError is raised for an id that occurs again, for tables that may be in different orders,
    and for the first segment that an input lacks, unless such segments are to be dropped.
    """
    if missing not in get_args(Missing):
        raise InputError(f'missing is {missing!r}; expected "raise" or "drop".')
    inputs = _with_labels(_in_order_of_runs(inputs))
    columns = list(chain.from_iterable(inputs.values()))
    rows_of = rows_of_segments(list(dict.fromkeys(column.rows for column in columns)))
    how: dict[WholeTable, str] = {}
    if not are_ids_trusted:
        how = _how_joined(columns, rows_of)

    names = list(rows_of[columns[0].rows])
    if any(column.rows.ids is not None for column in columns):
        names = sorted(set(chain.from_iterable(rows_of.values())), key=natural_key)
    values: dict[_Key, list[tuple[Any, ...]]] = {}
    lacking: dict[_Key, set[str | int]] = {}
    for key, runs in inputs.items():
        values[key] = []
        lacking[key] = set()
        lacks = any
        if missing == "drop" and runs[0].role == "score":
            lacks = all  # the mean of the runs that there are is a score too
        for name in names:
            of_runs = _values(runs, rows_of, name)
            values[key].append(of_runs)
            if lacks(map(_is_missing, of_runs)):
                lacking[key].add(name)

    dropped = set().union(*lacking.values())
    names_dropped = tuple(name for name in names if name in dropped)
    if dropped and missing == "raise":
        raise _incomplete(columns, rows_of, names_dropped[0])
    if len(dropped) == len(names):
        titles = ", ".join(dict.fromkeys(column.rows.title for column in columns))
        raise InputError(f"No segment is in all of {titles}, with a value in every column.")
    kept = [position for position, name in enumerate(names) if name not in dropped]
    kept_values = {}
    for key, of_input in values.items():
        kept_values[key] = [_whole(of_input[position]) for position in kept]
    kept_names = tuple(names[position] for position in kept)
    return JoinedSegments(kept_names, names_dropped, kept_values, lacking, columns, how)


def _in_order_of_runs(inputs: Mapping[_Key, Sequence[Column]]) -> dict[_Key, list[Column]]:
    """Return inputs with their runs in natural order.

    InputError is raised for a column of runs in one of several tables of runs.
    """
    ordered = {}
    for key, runs in inputs.items():
        ordered[key] = sorted(runs, key=lambda column: natural_key(column.run))
    for runs in ordered.values():
        tables = {id(column.rows.table) for column in runs}
        if len(tables) > 1 and any(column.run for column in runs):
            both = f"a column of runs, and is one of {len(tables)} runs"
            raise InputError(f"{runs[0].rows.title} has {both}; expected either.")
    return ordered


def _values(
    runs: Sequence[Column],
    rows_of: Mapping[Rows, RowsOfSegments],
    name: str | int,
) -> tuple[Any, ...]:
    """Return a segment's value in each run; where a run lacks it, NaN for a score, else None."""
    values: list[Any] = []
    for column in runs:
        row = rows_of[column.rows].get(name)
        if row is not None:
            values.append(column.values[row])
        elif runs[0].role == "score":
            values.append(np.nan)
        else:
            values.append(None)
    return tuple(values)


def _whole(values: tuple[Any, ...]) -> Any:
    if len(values) == 1:
        return values[0]
    return values


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)  # NaN


def _with_labels(inputs: Mapping[_Key, list[Column]]) -> Mapping[_Key, list[Column]]:
    """Return inputs with the labels of pandas as ids, or unchanged if all are 0, 1, 2 and so on."""
    columns = chain.from_iterable(inputs.values())
    rows_of_all = list(dict.fromkeys(column.rows for column in columns))
    if not any(rows.is_indexed for rows in rows_of_all):
        return inputs
    by_label = {rows: rows.by_label() for rows in rows_of_all}
    labelled = {}
    for key, runs in inputs.items():
        labelled[key] = [replace(column, rows=by_label[column.rows]) for column in runs]
    return labelled


def _how_joined(
    columns: Sequence[Column],
    rows_of: Mapping[Rows, RowsOfSegments],
) -> dict[WholeTable, str]:
    """Return what the output says of how tables were joined.

    InputError is raised if values contradict it.
    """
    by_table: dict[WholeTable, list[Column]] = {}
    for column in columns:
        if column.rows.table is not None:
            by_table.setdefault(column.rows.table, []).append(column)
    tables = []
    for table, of_table in by_table.items():
        names: dict[str, set[str]] = defaultdict(set)
        for column in of_table:
            roles = {column.role: (column.name,), **column.roles}
            for role, of_role in roles.items():
                names[role].update(of_role)

        # Outputs and results may differ between tables whose rows are the same segments.
        outputs = frozenset(names["candidate"])
        left_out = frozenset().union(*(names[role] for role in _ROLES_OF_RESULTS))
        names_of_rows = {column.rows: f" of {column.name} {column.run}" for column in of_table}
        parts = []
        for rows, name in names_of_rows.items():
            of_system = ""
            if len(names_of_rows) > 1:
                of_system = name.rstrip()
            parts.append(TablePart(table, rows, outputs, left_out, of_system))
        tables.append(parts)
    return JoinCheck(rows_of).of_tables(tables)


_ROLES_OF_RESULTS = ("score", "system", "metric", "run")


def _incomplete(
    columns: Sequence[Column],
    rows_of: Mapping[Rows, RowsOfSegments],
    name: str | int,
) -> InputError:
    """Return the error for a segment that an input lacks."""
    remedy = ("or leave out such segments of all systems with ", Argument("missing", "drop"), ".")

    # Of several columns with one title the first one's place stays.
    places: dict[str, str] = {}
    for column in reversed(columns):
        if name in rows_of[column.rows]:
            places[column.rows.title] = column.rows.place(rows_of[column.rows][name])
    for column in columns:
        title = column.rows.title
        if title not in places:
            first = list(places.values())[-1]
            others = rows_of[column.rows]
            return InputError(lacks_segment(first, name, title, others), *remedy)
        row = rows_of[column.rows].get(name)
        if row is not None and not _is_missing(column.values[row]):
            continue
        missing = places[title]
        if row is not None:
            missing = column.rows.place(row)
        missing += ": there is no value"
        if column.name not in (title, column.column):
            missing += f" of {column.name!r}"
        if column.column:
            missing += f" in the column {column.column!r}"
        if column.run:
            missing += f" in run {column.run!r}, which other segments have,"
        if not isinstance(name, int):  # a position is in the place
            missing += f" for segment {name!r}"
        return InputError(f"{missing}. Add it, ", *remedy)
    raise AssertionError(name)
