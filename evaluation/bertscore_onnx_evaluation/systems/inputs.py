"""The inputs of `compare`: the systems and what they are compared on, joined by segment; and what was taken from where.

Systems are a list, file or table for each; or the values of the column `system` of a table; or those columns of a table
that are named.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Any, Literal, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, InputTypeError
from bertscore_onnx.tables.batches import check_form
from bertscore_onnx.tables.columns import NO_IDS
from bertscore_onnx.tables.joins import BY_PRODUCTS, JoinCheck
from bertscore_onnx.tables.table import listed, natural_key
from bertscore_onnx.tables.whole_table import WholeTable, row_labels
from bertscore_onnx.text.texts import collect_strings
from bertscore_onnx_evaluation.column_roles import (
    USUAL_COLUMNS,
    ColumnChoice,
    Roles,
    index_of,
    roles_of,
    several_columns,
)
from bertscore_onnx_evaluation.systems.join import (
    Missing,
    SegmentColumns,
    as_runs,
    at_rows,
    columns_of_list,
    join_segments,
    part_of,
    scores_of,
    with_labels,
)

Value = Literal["P", "R", "F"]
"""Which numbers of `Scores` are compared."""

Frame = Any
"""A data frame in any form that `BERTScorer.score_frame` takes."""

Candidates = Mapping[str, Iterable[str] | Frame] | Frame
References = Iterable[str | Sequence[str]] | Frame
Documents = Iterable[Hashable] | Frame

SystemScores = Any
"""The scores of each system by its name, one for each segment or (runs, segments), or a data frame."""

ALL = "all"
"""In place of names of systems: all columns without another role, or all systems that there are."""


def is_frame(value: object) -> bool:
    """Return whether a value is a table, a data frame or a mapping of columns."""
    return isinstance(value, WholeTable | Mapping) or hasattr(value, "columns") or hasattr(value, "column_names")


class InputReader:
    """Reads the inputs of one comparison: each table once, its columns by their roles."""

    def __init__(self, roles: Roles, missing: Missing = "raise", value: Value = "F") -> None:
        """Read columns of these roles, and one of the three numbers of `Scores`."""
        if value not in get_args(Value):
            raise InputError(f"value is {value!r}; expected one of {', '.join(get_args(Value))}.")
        self.roles, self.missing, self.value = roles, missing, value
        self.are_named = False  # whether the keys of the scores are systems
        self._tables: dict[int, tuple[object, WholeTable]] = {}  # with their objects, so that no id is used again
        self._ids: dict[WholeTable, list[str]] = {}
        self._check = JoinCheck()

    @property
    def tables(self) -> list[WholeTable]:
        """The tables that were read so far."""
        return [*dict.fromkeys(table for _, table in self._tables.values())]

    def table(self, value: Any, title: str) -> WholeTable:
        """Return a table, or the rows of a data frame; `title` is its name in messages."""
        if id(value) not in self._tables:
            table = value if isinstance(value, WholeTable) else WholeTable.of_frame(value, title)
            self._tables[id(value)] = (value, table)
        return self._tables[id(value)][1]

    def check_roles(self) -> None:
        """Raise InputError if a column is named that no table has."""
        available = dict.fromkeys(name for table in self.tables for name in table.names)
        for role, names in self.roles.named.items():
            for name in names:
                if role == "segment" and (name == NO_IDS or {*name.split("+")} <= {*available}):
                    continue
                if name not in available:
                    tables = f"the tables have {', '.join(available)}" if available else "there is no table"
                    argument = Argument("columns", {role: name})
                    raise InputError(
                        f"There is no column {name!r}, of ", argument, f"; {tables}{several_columns(name)}."
                    )

    def is_by_name(self, given: Any, role: Literal["candidate", "score"]) -> bool:
        """Return whether this is a mapping of names of systems: one without columns of systems and of this role."""
        has_columns = isinstance(given, Mapping) and self.roles.among(given, "system") and self.roles.among(given, role)
        return isinstance(given, Mapping) and (not has_columns or any(map(_are_parts, given.values())))

    def column(self, values: Any, title: str, role: str, listing: Callable[[Any], Sequence[Any]]) -> SegmentColumns:
        """Return the values of a role in a table, in a column called as that is; or values that `listing` lists.

        Several columns are lists of references together. Where a table has several rows for a segment, one for each
        system or run, these have to have the same value.
        """
        if isinstance(values, SegmentColumns):
            return values
        if not is_frame(values):
            return columns_of_list(listing(in_order(values, title)), title, row_labels(values))
        table = self.table(values, title)
        names = self.roles.required(table, role)
        cells = self._values(table, role, names[0])
        if len(names) > 1:
            rows = zip(*(self._values(table, role, name) for name in names), strict=True)
            cells = [None if None in row else [text for texts in row for text in texts] for row in rows]
        columns = self._with_ids(table, {table.title: cells}, {role: names})
        if columns.ids is None or not (self.roles.of(table, "system") or self.roles.of(table, "run")):
            return columns
        first: dict[str, int] = {}
        for row, name in enumerate(columns.ids):
            earlier = first.setdefault(name, row)
            if cells[row] != cells[earlier]:
                raise InputError(
                    f"{table.place(row)}: segment {name!r} has another value than in {table.place(earlier)}; expected "
                    "the same in both."
                )
        return at_rows(columns, [*first.values()])

    def _with_ids(
        self, table: WholeTable, columns: Mapping[str, Sequence[Any]], roles: Mapping[str, tuple[str, ...]]
    ) -> SegmentColumns:
        """Return columns of a table with its ids."""
        whole = SegmentColumns(
            table.title, columns, place=table.place, table=table, rows=range(len(table)), roles=roles
        )
        if self.roles.are_ids_named:  # and trusted: no values are asked
            whole = replace(whole, rows=())
        if self.roles.are_by_position:
            return whole
        names, index = self.roles.ids(table), index_of(table)
        if not names or all(table.is_blank(name) for name in names):
            return replace(whole, labels=table.keys(*index) if index else table.labels)
        if table not in self._ids:
            keys = zip(*(table.keys(name) for name in names), strict=True)
            self._ids[table] = ["+".join(key) for key in keys]
        return replace(whole, ids=self._ids[table], roles={**roles, "segment": names})

    def _values(self, table: WholeTable, role: str, name: str) -> list[Any]:
        """Return the values of a column, such as texts or numbers; None for a null, if segments may be missing."""
        if role == "score":
            return table.numbers(name).tolist()
        are_texts = role in ("candidate", "reference")
        read: Callable[[WholeTable, str], Sequence[Any]] = WholeTable.texts if are_texts else WholeTable.keys
        read = WholeTable.lists if role == "reference" else read
        if self.missing == "raise":
            return [*read(table, name)]
        values: list[Any] = [None] * len(table)
        present, rows = table.without_nulls(name, are_texts=are_texts)
        for row, value in zip(rows, read(present, name), strict=True):
            values[row] = value
        return values

    # The systems of one table: in its rows, or in its columns.

    def _systems_of(
        self, table: WholeTable, role: Literal["candidate", "score"], names: Sequence[str] | None, metric: str = ""
    ) -> dict[str, SegmentColumns]:
        """Return by metric the values of systems, in a column for each; None or NaN where a system has none."""
        are_columns = names is not None and not {*names} - {*table.names} and not self.roles.of(table, role)
        if self.roles.of(table, "system") and not are_columns:
            return self._in_rows(table, role, names, metric)
        if names is None:
            raise self._unnamed(table, role)
        chosen = self._free(table) if names == [ALL] else names
        for name in chosen:
            table.find(name, Argument("systems"))
        return {metric: self._in_columns(table, role, {name: name for name in chosen}, {})}

    def _unnamed(self, table: WholeTable, role: Literal["candidate", "score"]) -> InputError:
        """Return the error for a table that may have systems in its columns, or metrics: they have to be named."""
        free = self._free(table)
        if role == "score":
            free = [name for name in free if "texts" not in table.content(name)]
        others = [name for name in table.names if name not in free]
        free = [name or "''" for name in free]
        beside = f", beside {', '.join(others)}" if others else ""
        if not free:
            return InputError(
                f"{table.title} has no column for a system{beside}; expected one for each of two systems or more, or "
                f"the columns system, segment and {role}."
            )
        further: tuple[str | Argument, ...] = ("if all rows are of one system, give a table for each system",)
        if role == "candidate":
            references = Argument("columns", {"reference": ["reference", "NAME"]})
            further = ("a further column of references is named by ", references)
        return InputError(
            f"{table.title} has the columns {', '.join(free)}{beside}, and nothing names systems. Name the columns of "
            "systems, the baseline first, ",
            Argument("systems", ["A", "B", "…"]),
            "; or, if each row is of one system, ",
            Argument("columns", {"system": "NAME", "segment": "NAME", role: "NAME"}),
            "; ",
            *further,
            ".",
        )

    def _free(self, table: WholeTable) -> list[str]:
        """Return the columns of a table that may be named as systems, or may be metrics."""
        return [name for name in self.roles.without(table) if name not in BY_PRODUCTS]

    def _in_rows(
        self, table: WholeTable, role: str, names: Sequence[str] | None, metric: str
    ) -> dict[str, SegmentColumns]:
        """Return the values of systems from a long table, in its order, or as named."""
        [system_column], columns = self.roles.required(table, "system"), self.roles.required(table, role)
        metric_columns = self.roles.of(table, "metric") if role == "score" and len(columns) == 1 else ()
        roles = {"system": (system_column,), role: columns} | ({"metric": metric_columns} if metric_columns else {})
        systems = table.keys(system_column)
        chosen = [*dict.fromkeys(systems)] if names is None or names == [ALL] else names
        by_metric: dict[str, SegmentColumns] = {}
        for column in columns:
            values = dict.fromkeys(chosen, self._values(table, role, column))
            of_column = column if len(columns) > 1 else metric
            rows_of: dict[str, list[tuple[str, int]]] = {}
            for row, name in enumerate(table.keys(metric_columns[0]) if metric_columns else [of_column] * len(table)):
                rows_of.setdefault(name, []).append((systems[row], row))
            for name, rows in rows_of.items():
                by_metric[name] = self._by_cell(table, rows, values, roles, name)
        return by_metric

    def _in_columns(
        self, table: WholeTable, role: str, columns: Mapping[str, str], roles: Mapping[str, tuple[str, ...]]
    ) -> SegmentColumns:
        """Return the values of systems that have a column each; the runs of a segment together."""
        values = {system: self._values(table, role, name) for system, name in columns.items()}
        if self.roles.of(table, "run"):
            cells = [(system, row) for system in values for row in range(len(table))]
            return self._by_cell(table, cells, values, roles, "")
        return replace(self._with_ids(table, values, roles), systems=tuple(columns))

    def _by_cell(
        self,
        table: WholeTable,
        cells: Iterable[tuple[str, int]],
        values: Mapping[str, Sequence[Any]],
        roles: Mapping[str, tuple[str, ...]],
        metric: str,
    ) -> SegmentColumns:
        """Return a row for each segment of a table that has several rows for it; a cell is a system and a row."""
        whole = self._with_ids(table, values, roles)
        whole = whole.by_label() if whole.is_indexed else whole
        if whole.ids is None:
            kind = "segment and run" if "system" not in roles else "system and segment"
            raise InputError(
                f"{table.title} has a row for each {kind}, so its segments need ids. Name their column with ",
                Argument("columns", {"segment": "NAME"}),
                ".",
            )
        run_columns = self.roles.of(table, "run")
        row_runs = table.keys(run_columns[0]) if run_columns else [""] * len(table)
        has_runs = len({*row_runs}) > 1
        rows_of: dict[str, dict[str, dict[str, int]]] = {}  # by system, segment and run
        for system, row in cells:
            segment, run = whole.ids[row], row_runs[row] if has_runs else ""
            earlier = rows_of.setdefault(system, {}).setdefault(segment, {}).setdefault(run, row)
            if earlier != row:
                and_run = f" and run {run!r}" if has_runs else ""
                raise InputError(
                    f"{table.place(row)}: the system {system!r} has a second row for segment {segment!r}{and_run}; "
                    f"the first is {table.place(earlier)}. Expected one, or other runs in a column 'run'."
                )
        first: dict[str, int] = {}  # the first row of each segment
        for name in values:
            if name not in rows_of:
                of_metric = f" of {metric}" if metric else ""
                raise InputError(f"{table.title} lacks the system {name!r}{of_metric}; it has {', '.join(rows_of)}.")
            first = {segment: min(run_rows.values()) for segment, run_rows in rows_of[name].items()} | first
        columns: dict[str, list[Any]] = {}
        lacking: dict[tuple[str, int], str] = {}
        absent = None if "candidate" in roles else np.nan  # a mean of the other runs
        for name in values:
            runs = sorted({run for run_rows in rows_of[name].values() for run in run_rows}, key=natural_key)
            column = columns.setdefault(name, [])
            for segment in first:
                run_rows = rows_of[name].get(segment, {})
                run_values = tuple(values[name][run_rows[run]] if run in run_rows else absent for run in runs)
                if run_rows and len(run_rows) < len(runs):
                    lacking[name, len(column)] = next(run for run in runs if run not in run_rows)
                column.append(run_values if has_runs else run_values[0])
        used = {**whole.roles, "run": run_columns} if has_runs else whole.roles
        rows = at_rows(whole, [*first.values()])
        result = replace(rows, columns=columns, systems=tuple(columns), roles=used, lacking_runs=lacking)
        self._check_systems(result, [rows_of[name] for name in values])
        return result

    def _check_systems(self, columns: SegmentColumns, rows_of: Sequence[Mapping[str, Mapping[str, int]]]) -> None:
        """Raise InputError if the values of a long table contradict its ids.

        The rows of each system, and of each run, are a table of their own; they are given by system, segment and run.
        """
        part = part_of(columns)
        if part is None:
            return
        tables: dict[tuple[int, str], dict[str, int]] = {}
        for system, rows_of_segments in enumerate(rows_of):
            for segment, rows_of_runs in rows_of_segments.items():
                for run, row in rows_of_runs.items():
                    tables.setdefault((system, run), {})[segment] = row
        first, *others = tables.values()
        part = replace(part, rows=np.sort([*first.values()]))
        for other in others:
            segments = [segment for segment in first if segment in other]
            self._check.how(
                part,
                np.array([first[segment] for segment in segments], dtype=np.intp),
                replace(part, rows=np.sort([*other.values()])),
                np.array([other[segment] for segment in segments], dtype=np.intp),
                are_ids=True,
            )

    # Texts of systems.

    def candidates(self, given: Candidates, names: Sequence[str] | None) -> list[SegmentColumns]:
        """Return the texts of each system; a system is called after its column."""
        if self.is_by_name(given, "candidate"):
            given = {str(name): texts for name, texts in given.items()}
            chosen = [*given] if names is None or names == [ALL] else names
            for name in chosen:
                if name not in given:
                    raise InputError(f"There are no texts of the system {name!r}, only of {listed([*given])}.")
            return [self._texts_of_system(name, given[name]) for name in chosen]
        if not is_frame(given):
            raise InputTypeError(
                f"The candidates are a {type(given).__name__}; expected a mapping of the names of systems to lists of "
                "texts, or a data frame."
            )
        return [*self._systems_of(self.table(given, "candidates"), "candidate", names).values()]

    def _texts_of_system(self, name: str, texts: Any) -> SegmentColumns:
        title = f"candidates[{name!r}]"
        forms = (list, tuple, SegmentColumns, WholeTable)
        has_runs = isinstance(texts, list | tuple) and bool(texts) and all(isinstance(run, forms) for run in texts)
        listing: Callable[[Any], Sequence[str]] = partial(collect_strings, name=title)
        return self._runs_of(name, texts if has_runs else [texts], title, "candidate", listing)

    def _runs_of(
        self, name: str, runs: Iterable[Any], title: str, role: str, listing: Callable[[Any], Sequence[Any]]
    ) -> SegmentColumns:
        """Return the texts or scores of a system's runs, one or several, in a column of its name."""
        inputs = []
        for run in runs:
            column = self.column(run, title, role, listing)
            [values] = column.columns.values()
            inputs.append(replace(column, columns={name: values}, systems=(name,)))
        return as_runs(inputs, self.missing)

    # Scores of systems.

    def scores(self, given: Any, names: Sequence[str] | None) -> dict[str, list[SegmentColumns]]:
        """Return the scores of each system by metric; a system is called after its column.

        A single metric is called `score`. Tables without named systems are of one system each, and their columns are
        metrics.
        """
        check_form(given, "scores")
        if is_prf(given) or not is_frame(given):
            raise InputTypeError(
                f"The scores are a {type(given).__name__}; expected a data frame, or a mapping of the names of systems "
                "to numbers."
            )
        if isinstance(given, Mapping):
            given = {str(name): part for name, part in given.items()}
        are_tables = [_is_table(part) for part in given.values()] if isinstance(given, Mapping) else []
        has_parts = any(are_tables)
        if has_parts and not all(are_tables):
            raise InputTypeError("The scores are tables and lists of numbers; expected one of these.")
        found: dict[str, list[SegmentColumns]] = {}
        of_systems: dict[str, list[WholeTable]] = {}
        by_metric_or_system = given if has_parts else {"score": given}
        self.are_named = all(self.is_by_name(part, "score") for part in by_metric_or_system.values())
        for name, part in by_metric_or_system.items():
            title = f"scores[{name!r}]" if has_parts else "scores"
            if self.is_by_name(part, "score"):
                by_metric = {name: self._numbers_by_system(part, names, title)}
            else:
                tables = [self.table(run, title) for run in (part if isinstance(part, list) else [part])]
                named = self._free(tables[0]) if names == [ALL] else [*(names or ())]
                are_columns = not has_parts or bool({*named} & {*tables[0].names} - {*given})
                if not are_columns and not self.roles.of(tables[0], "system"):
                    of_systems[name] = tables
                    continue
                runs = [self._systems_of(table, "score", names, name) for table in tables]
                by_metric = {metric: [as_runs([run[metric] for run in runs], self.missing)] for metric in runs[0]}
            for metric, parts in by_metric.items():
                found.setdefault(metric, []).extend(parts)
        for metric, parts in (self._metrics_of(of_systems, names) if of_systems else {}).items():
            found.setdefault(metric, []).extend(parts)
        _check_systems(found)
        return found

    def _numbers_by_system(
        self, given: Mapping[str, Any], names: Sequence[str] | None, title: str
    ) -> list[SegmentColumns]:
        """Return the scores in a mapping, whose keys are systems; columns that are named may stand beside them."""
        named = {name for names in self.roles.named.values() for name in names}
        chosen = [name for name in given if name not in named] if names is None or names == [ALL] else names
        others = [name for name in given if name not in chosen]
        for name, part in given.items():
            if not isinstance(part, Iterable):
                raise InputTypeError(f"{title}[{name!r}] is {part!r}; expected a number for each segment.")
        values = {name: numbers_of(given[name], self.value, f"{title}[{name!r}]") for name in chosen if name in given}
        have_roles = any(self.roles.among(others, role) for role in ("segment", "run", "document", "group"))
        are_plain = all(row_labels(part) is None and not _has_runs(part) for part in values.values())
        if not (have_roles or are_plain) and len(values) == len(chosen):
            return [self._numbers_of_system(name, part, f"{title}[{name!r}]") for name, part in values.items()]
        table = self.table({**given, **values}, title)
        if others or len(values) < len(chosen):
            return [*self._systems_of(table, "score", chosen).values()]
        scores = {name: self._values(table, "score", name) for name in chosen}
        return [SegmentColumns(title, scores, place=table.place, table=table, systems=tuple(chosen))]

    def _numbers_of_system(self, name: str, numbers: Any, title: str) -> SegmentColumns:
        def listing(run: Any) -> list[float]:
            return WholeTable.of_frame({title: run}, title).numbers(title).tolist()

        return self._runs_of(name, numbers if _has_runs(numbers) else [numbers], title, "score", listing)

    def _metrics_of(
        self, tables: Mapping[str, Sequence[WholeTable]], names: Sequence[str] | None
    ) -> dict[str, list[SegmentColumns]]:
        """Return by metric the scores in the columns of tables, each of one system or of a run of it."""
        chosen = [*tables] if names is None or names == [ALL] else names
        first = next(iter(tables.values()))[0]
        for name in chosen:
            if name not in tables:
                raise InputError(
                    f"There are no scores of the system {name!r}: it is none of the tables {listed([*tables])}, nor a "
                    f"column of {first.title}, which has {', '.join(first.names)}."
                )
        if names is None and len(chosen) < 2:
            raise self._unnamed(first, "score")
        metrics = self._metric_columns([table for name in chosen for table in tables[name]])

        def scores_by(metric: str, name: str) -> SegmentColumns:
            runs = [self._in_columns(table, "score", {name: metric}, {"score": metrics}) for table in tables[name]]
            return as_runs(runs, self.missing)

        return {metric: [scores_by(metric, name) for name in chosen] for metric in metrics}

    def _metric_columns(self, tables: Sequence[WholeTable]) -> tuple[str, ...]:
        """Return the columns of scores: by the role, or all of numbers, which have to be the same everywhere."""
        if self.roles.of(tables[0], "score") or "score" in self.roles.named:
            names, *_ = [self.roles.required(table, "score") for table in tables]
            return names
        free = [(table, name) for table in tables for name in self._free(table)]
        columns = [*dict.fromkeys(name for table, name in free if "numbers" in table.content(name))]
        if len(columns) > 1:  # of a single column it is clear what is compared
            columns = [name for name in columns if not any(_has_counts(table, name) for table in tables)]
        scores = Argument("columns", {"score": "NAME"})
        for table, name in product(tables, columns):
            try:
                table.numbers(table.find(name, ""))
            except InputError as error:
                raise InputError(
                    *error.parts, f" Or, if {name!r} has no scores, name the columns that have: ", scores, "."
                ) from error
        if not columns:
            raise InputError(
                f"{tables[0].title} has no column of scores, only {', '.join(tables[0].names)}; expected numbers. "
                "Columns of whole numbers that nearly all differ have to be named: ",
                scores,
                ".",
            )
        return tuple(columns)


def _has_counts(table: WholeTable, name: str) -> bool:
    """Return whether a column has whole numbers and more than four in five of them differ, as ids do."""
    if name not in table.names or "texts" in table.content(name):
        return False
    numbers = table.numbers(name)[~np.isnan(table.numbers(name))]
    return bool((numbers == np.round(numbers)).all()) and len({*numbers.tolist()}) > 0.8 * len(numbers)


def _is_table(value: object) -> bool:
    """Return whether a value is a table, or a list of the tables of runs."""
    return is_frame(value) or (isinstance(value, list) and bool(value) and all(map(is_frame, value)))


def _check_systems(found: Mapping[str, Sequence[SegmentColumns]]) -> None:
    """Raise InputError unless all metrics have scores of the same systems, each from one input."""
    systems = {metric: [name for columns in parts for name in columns.columns] for metric, parts in found.items()}
    first = next(iter(systems), "")
    for metric, names in systems.items():
        if again := next((name for name in names if names.count(name) > 1), None):
            titles = listed([columns.title for columns in found[metric] if again in columns.columns])
            raise InputError(f"{titles} have scores of {metric} for {again}; expected them in one. Rename a system.")
        for name in {*names} ^ {*systems[first]}:
            given, other = (metric, first) if name in names else (first, metric)
            raise InputError(
                f"The system {name!r} has scores of {given}, and none of {other}. Add them, or name systems that have "
                "both with ",
                Argument("systems"),
                ".",
            )


def _has_runs(values: Any) -> bool:
    return isinstance(values, list | tuple | np.ndarray) and np.ndim(next(iter(values), 0)) == 1


# Scores of ours, and the numbers of other metrics.


def is_prf(values: object) -> bool:
    """Return whether this is the `Scores` of texts: P, R and F in one object."""
    return isinstance(values, tuple) and hasattr(values, "best_reference")


def in_order(values: Any, title: str) -> Any:
    """Return values as they are; raise InputTypeError for a set, which has no order, and for a masked array."""
    if isinstance(values, Set | np.ma.MaskedArray):
        raise InputTypeError(
            f"{title} is a {type(values).__name__}; expected a value for each segment, in their order, and NaN for a "
            "missing score."
        )
    return values


def numbers_of(values: Any, value: str, title: str) -> Any:
    """Return the P, the R or the F of `Scores`, or of each run's `Scores`; and all other scores as they are."""
    in_order(values, title)
    if is_prf(values):
        numbers = getattr(values, value)
        if np.ndim(numbers) != 1:
            raise InputError(
                f"{title} has scores of the shape {np.shape(numbers)}; expected those of one layer, such as "
                "`scores.of_layer(0)`, with one for each segment."
            )
        return numbers
    if isinstance(values, tuple) and len(values) == 3 and all(np.ndim(part) == 1 for part in values):
        raise InputError(
            f"{title} is a tuple of three rows, as P, R and F are; expected one of them, or runs in a list or an array."
        )
    if isinstance(values, list | tuple) and (_has_runs(values) or all(map(is_prf, values))):
        return [numbers_of(run, value, title) for run in values]
    if isinstance(values, Iterator):
        return [*values]
    is_tensor = hasattr(values, "__array__") and type(values).__module__.partition(".")[0] != "pandas"
    return np.asarray(values) if is_tensor else values


def score_matrix(given: Any, value: Value) -> tuple[tuple[str, ...], list[NDArray[np.float64]]]:
    """Return the systems of a data frame, or a mapping, of scores of one metric, and their `scores_of`."""
    reader = InputReader(roles_of(None), value=value)
    if not (isinstance(given, Mapping) or reader.roles.of(reader.table(given, "scores"), "system")):
        raise InputError(
            f"scores has the columns {', '.join(reader.tables[0].names)}, and nothing names systems. Give a mapping, "
            "{NAME: NUMBERS, …}, the baseline first; or the columns system, segment and score."
        )
    by_metric = reader.scores(given, None)
    if len(by_metric) > 1:
        raise InputError(f"scores has {len(by_metric)} metrics, {', '.join(by_metric)}; expected one.")
    [inputs] = by_metric.values()
    columns = dict(join_segments(inputs).columns(inputs))
    return tuple(columns), [scores_of(values) for values in columns.values()]


# All inputs of a comparison.


@dataclass(frozen=True, slots=True, eq=False)
class JoinedInputs:
    """The values of all inputs, in the order of the segments."""

    systems: tuple[str, ...]
    """The baseline first."""
    candidates: tuple[tuple[str | tuple[str, ...], ...], ...]
    references: tuple[tuple[str, ...], ...]
    """The texts by system and segment, a text or the texts of all runs, and the references of each segment; none where
    only scores were given."""
    scores: Mapping[str, Sequence[Sequence[float | tuple[float, ...]]]]
    """By metric, system and segment, a score or the scores of all runs."""
    documents: Sequence[Hashable]
    groups: Sequence[str]
    """Of each segment; none where none were given."""
    segments: tuple[str | int, ...]
    dropped: tuple[str | int, ...]
    lacking: Mapping[str, int]
    """By system the number of segments that were left out, and that the baseline has and the system lacks."""
    is_baseline_named: bool
    """Whether someone named the baseline, or gave an input for each system in an order."""
    choices: tuple[ColumnChoice, ...]


def join_inputs(
    candidates: Candidates | None,
    references: References | None,
    scores: SystemScores | Mapping[str, SystemScores] | None,
    documents: Documents | None,
    by: str | Iterable[Hashable] | None = None,
    *,
    systems: str | Sequence[str] | None = None,
    baseline: str | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    value: Value = "F",
    missing: Missing = "raise",
    needs_texts: bool = False,
) -> JoinedInputs:
    """Join what `compare` is given, which it describes; with `needs_texts` there have to be texts of systems."""
    reader = InputReader(roles_of(columns, by), missing, value)
    named = _names(systems)
    if candidates is None and (needs_texts or scores is None or references is not None):
        raise InputError(
            "There are no texts of systems. Give them as ",
            Argument("candidates", option="--cand"),
            ", or give ",
            Argument("scores"),
            " alone.",
        )
    texts = [] if candidates is None else reader.candidates(candidates, named)
    if references is None and is_frame(candidates) and not reader.is_by_name(candidates, "candidate"):
        references = candidates
    parts = references if _are_parts(references) else [() if references is None else references]
    of_references = [reader.column(part, "references", "reference", checked_references) for part in parts if texts]
    of_documents = [] if documents is None else [reader.column(documents, "documents", "document", list)]
    if texts:
        named = [name for one in texts for name in one.columns]
    of_scores = {} if scores is None else reader.scores(scores, named)
    of_systems = texts or next(iter(of_scores.values()), [])
    ordered = _baseline_first([name for one in of_systems for name in one.columns], baseline)
    of_groups = [] if by is None else _groups_of(by, reader)
    reader.check_roles()
    inputs = [*texts, *of_references, *of_documents, *of_groups, *chain.from_iterable(of_scores.values())]
    joined = join_segments(inputs, missing)
    text_columns, document_columns = dict(joined.columns(texts)), joined.columns(of_documents)
    lists = [
        [[text] if isinstance(text, str) else text for text in column] for _, column in joined.columns(of_references)
    ]
    groups = [[*map(str, column)] for _, column in joined.columns(of_groups)]
    _check_groups(of_groups, groups, joined.names)
    matrices = {metric: dict(joined.columns(parts)) for metric, parts in of_scores.items()}
    lacking: dict[str, set[str | int]] = {name: set() for name in ordered}
    for one in (*texts, *chain.from_iterable(of_scores.values())):
        for name, values in one.columns.items():
            lacking[name] |= joined.lacking(one, values)
    return JoinedInputs(
        ordered,
        tuple(tuple(text_columns[name]) for name in ordered) if text_columns else (),
        tuple(tuple(text for texts in segment for text in texts) for segment in zip(*lists, strict=True)),
        {metric: [of_metric[name] for name in ordered] for metric, of_metric in matrices.items()},
        document_columns[0][1] if document_columns else (),
        groups[0] if groups else (),
        joined.names,
        joined.dropped,
        {name: len(lacking[name] - lacking[ordered[0]]) for name in ordered},
        baseline is not None
        or not (systems is None or _names(systems) == [ALL])
        or reader.are_named
        or all(len(one.columns) == 1 for one in of_systems),
        _choices(with_labels(inputs), joined.how, reader.roles),
    )


def _names(systems: str | Sequence[str] | None) -> list[str] | None:
    """Return the names of systems that a caller gives, if any; raise InputTypeError for anything else."""
    if systems is None or (isinstance(systems, str) and systems == ALL):
        return None if systems is None else [ALL]
    if isinstance(systems, str | Mapping) or not isinstance(systems, Iterable):
        raise InputTypeError(
            f'systems is a {type(systems).__name__}; expected a list of names, or "all". Texts are given as '
            "`candidates`."
        )
    return [*map(str, systems)]


def _are_parts(references: Any) -> TypeGuard[list[Any]]:
    """Return whether references come from several files."""
    forms = SegmentColumns | WholeTable
    return isinstance(references, list) and bool(references) and all(isinstance(part, forms) for part in references)


def _choices(inputs: Sequence[SegmentColumns], how: Mapping[WholeTable, str], named: Roles) -> tuple[ColumnChoice, ...]:
    """Return what was taken from each table, and from the files of systems."""
    by_source: dict[object, list[SegmentColumns]] = {}
    for one in chain.from_iterable((one, *one.runs) for one in inputs):
        if one.table is not None or (one.unit == "line" and one.systems):
            by_source.setdefault(one.title if one.table is None else id(one.table), []).append(one)
    choices = []
    for parts in by_source.values():
        roles = {role: names for one in parts for role, names in one.roles.items()}
        systems = tuple(dict.fromkeys(name for one in parts for name in one.systems))
        used = {name for names in roles.values() for name in names} | {*systems}
        table = parts[0].table
        left = [] if table is None else [name for name in table.names if name not in used and name not in table.levels]
        left += table.keys(*roles["system"]) if table is not None and "system" in roles else []
        ignored = dict.fromkeys(name for name in left if name not in systems)
        ordered = {role: roles[role] for role in (*USUAL_COLUMNS, "group") if role in roles}
        joined = "by position, as you said" if named.are_by_position else how.get(table, "") if table else ""
        choices.append(ColumnChoice(parts[0].title, systems, ordered, tuple(ignored), joined))
    return tuple(choices)


def _baseline_first(systems: Sequence[str], baseline: str | None) -> tuple[str, ...]:
    """Return the systems with the baseline first; raise InputError unless it is one of them."""
    if not systems:
        raise InputError("There is no system; expected one, or a baseline and others to compare with it.")
    if len({*systems}) < len(systems):
        raise InputError(f"The systems are {', '.join(systems)}; expected each of them once.")
    if baseline is None:
        return tuple(systems)
    if baseline not in systems:
        raise InputError(f"The baseline {baseline!r} is none of the systems {', '.join(map(repr, systems))}.")
    return (baseline, *(name for name in systems if name != baseline))


def _groups_of(by: str | Iterable[Hashable], reader: InputReader) -> list[SegmentColumns]:
    """Return the groups of the segments, from every table that has the column; raise InputError if none has it."""
    if not isinstance(by, str):
        return [columns_of_list([*in_order(by, "`by`")], "`by`", row_labels(by))]
    tables = [table for table in reader.tables if by in table.names]
    if not tables:
        names = ", ".join(dict.fromkeys(name for table in reader.tables for name in table.names))
        remedy = f"the tables have {names}. Name one of these" if names else "there is no table. Give one that has it"
        raise InputError(f"There is no column {by!r} to group by; {remedy}.")
    return [reader.column(table, table.title, "group", list) for table in tables]


def _check_groups(
    inputs: Sequence[SegmentColumns], groups: Sequence[Sequence[str]], segments: Sequence[str | int]
) -> None:
    """Raise InputError if inputs disagree about the group of a segment, or there is one group only."""
    for one, of_one in zip(inputs[1:], groups[1:], strict=True):
        for segment, first, other in zip(segments, groups[0], of_one, strict=True):
            if first != other:
                raise InputError(
                    f"Segment {segment!r} is in the group {first!r} in {inputs[0].title}, and in {other!r} in "
                    f"{one.title}; expected the same in both."
                )
    if groups and len({*groups[0]}) < 2:
        raise InputError(f"All segments are in the group {groups[0][0]!r}; expected two or more groups.")


def checked_references(references: Iterable[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the references of each segment; raise InputError if there is no segment, or one has no reference."""
    if isinstance(references, str | bytes):
        raise InputTypeError(
            f"The references are one {type(references).__name__}; expected a list, one for each segment."
        )
    lists = []
    for segment, given in enumerate(references):
        texts = collect_strings([given] if isinstance(given, str) else given, f"references[{segment}]")
        if not texts:
            raise InputError(f"references[{segment}] is empty; expected a text, or a list of at least one.")
        lists.append(tuple(texts))
    if not lists:
        raise InputError("There are no references; expected one for each segment.")
    return tuple(lists)
