"""Read the inputs of a comparison.

`InputReader` melts texts and scores into a column for each metric, system and run, and reads the
other columns of tables. docs/tables.md has the rules as users read them.
"""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from itertools import chain, filterfalse
from typing import Any, Literal, TypeGuard, get_args

import numpy as np

from bertscore_onnx.errors import Argument, InputError, InputTypeError, either
from bertscore_onnx.tables.batches import check_form
from bertscore_onnx.tables.joins import NAMED_IDS, Rows, rows_of_table
from bertscore_onnx.tables.roles import (
    ID_COLUMNS,
    NO_IDS,
    ROLES_OF_FORMS,
    USUAL_NAMES,
    check_uses,
    plain_name,
)
from bertscore_onnx.tables.table import listed
from bertscore_onnx.tables.whole_table import WholeTable, is_frame, row_labels
from bertscore_onnx.text.texts import collect_strings
from bertscore_onnx_evaluation.column_roles import Roles, several_columns
from bertscore_onnx_evaluation.score_files import names_of_files
from bertscore_onnx_evaluation.systems.corpus_scores import Value, in_order, numbers_of
from bertscore_onnx_evaluation.systems.join import Column, Missing, column_of_list

Frame = Any
"""A data frame in any form that `BERTScorer.score_frame` takes, but for a mapping."""

Candidates = Mapping[str, Iterable[str] | Frame] | Frame

Systems = dict[str, list[Column]]
"""The texts or scores of systems, a column for each run."""

OfSystems = Literal["candidate", "score"]
"""A role whose columns are of systems."""

_READERS: Mapping[str, Callable[[WholeTable, str], Sequence[Any]]] = {
    "candidate": WholeTable.texts,
    "reference": WholeTable.lists,
}


class InputReader:
    """Reads the inputs of one comparison.

    Each table is read once, and its columns by their roles.
    """

    def __init__(self, roles: Roles, missing: Missing = "raise", value: Value = "F") -> None:
        """Read columns of these roles, and one of the three numbers of `Scores`."""
        if value not in get_args(Value):
            expected = ", ".join(get_args(Value))
            raise InputError(f"value is {value!r}; expected one of {expected}.")
        self.roles = roles
        self.missing = missing
        self.value = value
        self._has_order = False  # whether ids, or an index, may be left aside
        # Tables by the ids of their objects, which are kept so that no id is used again.
        self._tables: dict[int, tuple[object, WholeTable]] = {}
        self._rows: dict[WholeTable, Rows] = {}

    @property
    def tables(self) -> list[WholeTable]:
        """The tables that were read so far."""
        return list(dict.fromkeys(table for _, table in self._tables.values()))

    @property
    def column_names(self) -> dict[str, None]:
        """The columns of all these tables, in order."""
        return dict.fromkeys(chain.from_iterable(table.names for table in self.tables))

    def table(self, value: Any, title: str) -> WholeTable:
        """Return a table, or the rows of a data frame.

        `title` is its name in messages.
        """
        if id(value) not in self._tables:
            table = value
            if not isinstance(value, WholeTable):
                table = WholeTable.of_frame(value, title)
            self._tables[id(value)] = (value, table)
        return self._tables[id(value)][1]

    def check_roles(self, columns: Iterable[Column]) -> None:
        """Raise InputError for a named column that no table has, or none of these columns uses."""
        available = self.column_names
        for role, names in self.roles.named.items():
            for name in names:
                self._check_column(role, name, available)
        used = list(dict.fromkeys(chain.from_iterable(column.used for column in columns)))
        if self.roles.are_by_position and self._has_order:
            used.append("segment")
        named = {role: names for role, names in self.roles.named.items() if role != "group"}
        check_uses(named, ROLES_OF_FORMS["compare"], used)

    def _check_column(self, role: str, name: str, available: Collection[str]) -> None:
        """Raise InputError if a column is named that no table has."""
        if role == "segment" and (name == NO_IDS or set(name.split("+")) <= {*available}):
            return
        if name in available:
            return
        tables = "there is no table"
        if available:
            tables = f"the tables have {', '.join(available)}"
        raise InputError(
            f"There is no column {name!r}, of ",
            Argument("columns", {role: name}),
            f"; {tables}{several_columns(name)}.",
        )

    def with_documents(self, systems: Sequence[str]) -> list[WholeTable]:
        """Return the tables that have documents.

        Documents are in a named column, or in one with a usual name and no other use. Without a
        name, a constant is no document, and neither is a list or an object.
        """
        tables = [table for table in self.tables if self.roles.of(table, "document")]
        if "document" in self.roles.named:
            return tables
        others = {*systems, *chain.from_iterable(self.roles.named.values())}
        found = []
        for table in tables:
            [name] = self.roles.of(table, "document")
            num_values = len({*map(str, table.values(name))})
            if name not in others and num_values > 1 and not table.is_nested(name):
                found.append(table)
        return found

    def column(
        self,
        values: Any,
        title: str,
        role: str,
        listing: Callable[[Any], Sequence[Any]],
    ) -> Column:
        """Return the values of a role in a table; or values that `listing` lists.

        Where a table has several rows for a segment, one for each system or run, these have to
        have the same value.
        """
        if isinstance(values, Column):
            return replace(values, role=role)
        if not is_frame(values):
            labels = row_labels(values)
            self._has_order |= labels is not None
            if self.roles.are_by_position:
                labels = None
            return column_of_list(listing(in_order(values, title)), title, role, labels)
        table = self.table(values, title)
        names = self.roles.required(table, role)
        cells = self._cells(table, role, names)
        rows = self._rows_of(table)
        ids = rows.ids or ()
        used = {role: names}
        if len({*ids}) < len(ids):
            # Each system or run has a row for a segment, and repeats such values as references.
            repeating = {key: self.roles.of(table, key) for key in ("system", "run")}
            used |= {key: of_key for key, of_key in repeating.items() if of_key}
            if len(used) > 1:
                rows = rows.part(_first_rows(table, ids, cells, names))
        return Column(table.title, rows, [cells[row] for row in rows.at], role, used)

    def _rows_of(self, table: WholeTable) -> Rows:
        """Return all rows of a table with its ids, or with its index."""
        if table not in self._rows:
            self._has_order = True
            rows = rows_of_table(table, self.roles.ids(table))
            if rows.ids is None and not self.roles.are_by_position:
                rows = replace(rows, labels=table.labels, id_columns=("index",))
            self._rows[table] = rows
        return self._rows[table]

    def _cells(self, table: WholeTable, role: str, names: Sequence[str]) -> list[Any]:
        """Return a column's values, or the references of several columns, with None for a null if
        segments may be missing.
        """
        first, *further = names
        cells = self._values(table, role, first)
        for name in further:
            more = table.lists(name, may_be_empty=True)
            for row, texts in enumerate(more):
                if cells[row] is not None:
                    cells[row] = [*cells[row], *texts]
        return cells

    def _values(self, table: WholeTable, role: str, name: str) -> list[Any]:
        if role == "score":
            return table.numbers(name).tolist()
        are_texts = role in _READERS
        read = _READERS.get(role, WholeTable.keys)
        if self.missing == "raise":
            return list(read(table, name))
        values: list[Any] = [None] * len(table)
        present, rows = table.without_nulls(name, are_texts=are_texts)
        for row, value in zip(rows, read(present, name), strict=True):
            values[row] = value
        return values

    # Texts and scores, by metric, system and run.

    def systems(
        self, given: Any, role: OfSystems, names: Sequence[str] | None
    ) -> dict[str, Systems]:
        """Return the texts or scores of systems by metric; texts have the metric "".

        Args:
            given: a table, or a mapping of systems, or of metrics.
            role: what the values are.
            names: the systems to return, in their order; None for all.
        """
        title = f"{role}s"
        if not (isinstance(given, Mapping) or is_frame(given)):
            raise InputTypeError(
                f"The {title} are a {type(given).__name__}; expected a data frame, or a mapping of "
                "the names of systems to a list for each."
            )
        check_form(given, title)
        entries = _by_text(given, title) if isinstance(given, Mapping) else {"": given}
        found: dict[str, Systems] = {}
        for key, value in entries.items():
            of_key: dict[str, Systems] = {}
            for metric, column in self._melted(value, role, names, key):
                of_metric = of_key.setdefault(metric if role == "score" else "", {})
                of_metric.setdefault(column.name, []).append(column)
            _add(found, of_key)
        if names is None:
            names = list(dict.fromkeys(chain.from_iterable(found.values())))
        for metric, of_metric in found.items() or [("", {})]:
            missing = [name for name in names if name not in of_metric]
            if missing:
                raise self._lacking(missing, metric, found, list(filter(None, entries)))
        chosen: dict[str, Systems] = {}
        for metric, of_metric in found.items():
            chosen[metric] = {name: of_metric[name] for name in names}
        return chosen

    def _melted(
        self, value: Any, role: OfSystems, names: Sequence[str] | None, key: str, metric: str = ""
    ) -> Iterator[tuple[str, Column]]:
        """Yield the metric and the values of each system and run in an input."""
        # The key of an input in a mapping is a system or a metric.
        title = f"{role}s[{key!r}]" if key else f"{role}s"
        if isinstance(value, Mapping) and role == "score" and not metric:
            for system, of_system in _by_text(value, title).items():
                yield from self._melted(of_system, role, names, system, key)
            return
        listing: Callable[[Any], Sequence[Any]] = partial(_numbers, title=title)
        if role == "candidate":
            listing = partial(collect_strings, name=title)
        for run in self._runs(value, role, title):
            if is_frame(run):
                yield from self._of_table(self.table(run, title), role, names, key, metric)
            elif self._is_system(run, names, key):
                column = self.column(run, title, role, listing)
                yield metric or "score", replace(column, name=key)

    def _is_system(self, run: Any, names: Sequence[str] | None, key: str) -> bool:
        """Return whether a list is to be read; raise InputError if its key may be a column's."""
        if names is not None and key in names:
            return True
        named = chain.from_iterable(self.roles.named.values())
        is_column = plain_name(key) in (*ID_COLUMNS, "system") or key in named
        if is_column and not isinstance(run, Column):
            raise InputError(
                f"{key!r} is the name of a column, and the keys of a mapping are systems. Give a "
                "table, `pandas.DataFrame(…)` of the columns; or, if it is a system, name it in ",
                Argument("systems"),
                ".",
            )
        return names is None

    def _runs(self, value: Any, role: OfSystems, title: str) -> list[Any]:
        """Return the runs of a system: lists, tables or columns."""
        if is_frame(value) or isinstance(value, Column):
            return [value]
        if role == "score" and not isinstance(value, Iterable):
            raise InputTypeError(f"{title} is {value!r}; expected a number for each segment.")
        if role == "score":
            value = numbers_of(value, self.value, title)
        if isinstance(value, list | tuple | np.ndarray) and len(value) and all(map(_is_run, value)):
            return list(value)
        return [value]

    def _of_table(
        self,
        table: WholeTable,
        role: OfSystems,
        names: Sequence[str] | None,
        key: str,
        metric: str,
    ) -> Iterator[tuple[str, Column]]:
        """Yield the metric and the values of each system and run in a table."""
        used: dict[str, tuple[str, ...]] = {}
        columns: dict[str, tuple[str, str]] = {}  # the metric and the system of each
        system = key or names_of_files([table.title])[0]
        if self.roles.of(table, "system"):
            used = {
                "system": self.roles.required(table, "system"),
                role: self._columns(table, role, key),
            }
            if key and role == "candidate":
                raise InputError(
                    f"{table.title} has a column {used['system'][0]!r}, the system of each row. "
                    "Give the rows of all systems as one table; or, if it is of one system, leave "
                    "out this column."
                )
            metric = metric or key
            if role == "score" and len(used[role]) == 1:
                used["metric"] = self.roles.of(table, "metric")
        elif names is not None and {*names} <= {*table.names}:
            columns = {name: (metric or key or "score", name) for name in names}
        elif names is None or system in names:
            used = {role: self._columns(table, role, key)}
        else:
            return
        for name in used.get(role, ()):
            is_alone = len(used[role]) == 1
            columns[name] = (metric if metric and is_alone else name, system)

        runs = self.roles.of(table, "run")
        if runs and len({*table.keys(*runs)}) > 1:
            used["run"] = runs
        used = {name: of_role for name, of_role in used.items() if of_role}
        cells = {name: self._values(table, role, name) for name in columns}
        for (metric_of_rows, system_of_rows, run), rows in self._parts(table, used).items():
            for name, (metric_of_column, system_of_column) in columns.items():
                values = [cells[name][row] for row in rows.at]
                named = system_of_rows or system_of_column
                column = Column(named, rows, values, role, used, run, name)
                yield metric_of_rows or metric_of_column, column

    def _columns(self, table: WholeTable, role: OfSystems, key: str) -> tuple[str, ...]:
        """Return the columns of texts, or of scores; raise InputError if a table has none."""
        if "system" in self.roles.named and not key:
            self.roles.required(table, "system")
        if role in self.roles.named or self.roles.of(table, role):
            return self.roles.required(table, role)
        are_texts = role == "candidate"
        kind = "texts" if are_texts else "numbers"
        columns = []
        for name in table.names:
            content = table.content(name)
            if content and ("texts" in content) == are_texts:
                columns.append(name or "''")
        has = f"; its columns of {kind} are {', '.join(columns)}"
        if not columns:
            has = f", nor any of {kind}, only {', '.join(map(table.shown, table.names))}"
        nested = ""
        if any(map(table.is_nested, table.names)):
            nested = " docs/compare_runs.md writes nested values as columns."
        raise InputError(
            f"{table.title} has no column {either(map(repr, USUAL_NAMES[role]))}{has}. Name the "
            f"{role}s, ",
            Argument("columns", {role: "NAME"}),
            ", and in a table with a row for each system also ",
            Argument("columns", {"system": "NAME"}),
            "; or, if columns are systems and there is none called 'system', name these, ",
            Argument("systems", ["A", "B", "…"]),
            f".{nested}",
        )

    def _parts(
        self, table: WholeTable, used: Mapping[str, tuple[str, ...]]
    ) -> dict[tuple[str, ...], Rows]:
        """Return the rows of a table by metric, system and run, of the columns in use.

        Rows of several parts need ids.
        """
        whole = self._rows_of(table)
        by_role: list[Sequence[str]] = []
        for role in ("metric", "system", "run"):
            of_rows: Sequence[str] = [""] * len(table)
            if role in used:
                of_rows = table.keys(*used[role])
            by_role.append(of_rows)
        keys = list(zip(*by_role, strict=True))
        if len({*keys}) < 2:
            return {next(iter(keys), ("", "", "")): whole}
        if whole.is_indexed:
            whole = whole.by_label()
        if whole.ids is None:
            raise InputError(
                f"{table.title} has several rows for a segment, so its segments need ids. Name "
                "their column with ",
                Argument("columns", {"segment": "NAME"}),
                ".",
            )
        # A second row for a segment has to have another metric, system or run.
        parts: dict[tuple[str, ...], dict[str, int]] = {}
        for row, (key, segment) in enumerate(zip(keys, whole.ids, strict=True)):
            earlier = parts.setdefault(key, {}).setdefault(segment, row)
            if earlier != row:
                of_key = ", ".join(filter(None, key))
                raise InputError(
                    f"{table.place(row)}: there is a second row for segment {segment!r} of "
                    f"{of_key}; the first is {table.place(earlier)}. Expected one, or other runs "
                    "in a column 'run'."
                )
        return {key: whole.part(list(rows.values())) for key, rows in parts.items()}

    def _lacking(
        self,
        missing: Sequence[str],
        metric: str,
        found: Mapping[str, Systems],
        keys: Collection[str],
    ) -> InputError:
        """Return the error for systems that have no values, or none of a metric."""
        # Columns are systems only where all names are columns: another name is the mistake.
        name = next(filterfalse(self.column_names.__contains__, missing), missing[0])
        of_other = next((other for other, systems in found.items() if name in systems), None)
        if of_other is not None:
            return InputError(
                f"The system {name!r} has scores of {of_other}, and none of {metric}. Add them, or "
                "name systems that have both with ",
                Argument("systems"),
                ".",
            )
        available = list(chain.from_iterable(found.values()))
        if {*available} <= {*keys}:
            available = list(keys)
        message = f"There is no system {name!r}"
        if available:
            message += f", only {listed(available)}"
        if not self.column_names:
            return InputError(f"{message}.")
        return InputError(
            f"{message}; the columns are {', '.join(self.column_names)}. Name systems, or columns "
            "of one table, with ",
            Argument("systems", ["A", "B", "…"]),
            ".",
        )


def _numbers(run: Any, title: str) -> list[float]:
    return WholeTable.of_frame({title: run}, title).numbers(title).tolist()


def _is_run(value: Any) -> bool:
    return isinstance(value, Column) or is_frame(value) or np.ndim(value) == 1


def _by_text(given: Mapping[Any, Any], title: str) -> dict[str, Any]:
    """Return a mapping with texts as keys; raise InputError if two are alike."""
    named = {str(name): value for name, value in given.items()}
    if len(named) < len(given):
        names = ", ".join(map(repr, given))
        raise InputError(
            f"{title} has the names {names}, of which two read alike. Rename one.",
        )
    return named


def _add(found: dict[str, Systems], further: Mapping[str, Systems]) -> None:
    """Add values by metric and system.

    InputError is raised if a system has some of this metric already.
    """
    for metric, systems in further.items():
        earlier = found.setdefault(metric, {})
        for name, runs in systems.items():
            if name in earlier:
                titles = listed([earlier[name][0].rows.title, runs[0].rows.title])
                of_metric = f" of {metric}" if metric else ""
                raise InputError(
                    f"{titles} have values{of_metric} for {name}; expected them in one. Rename a "
                    "system."
                )
            earlier[name] = runs


def _first_rows(
    table: WholeTable, ids: Sequence[str], cells: Sequence[Any], names: Sequence[str]
) -> list[int]:
    """Return the first row of each segment.

    InputError is raised if another row of it has another value.
    """
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        earlier = first.setdefault(name, row)
        if cells[row] != cells[earlier]:
            raise InputError(
                f"{table.place(row)}: segment {name!r} has another value of {'+'.join(names)!r} "
                f"than in {table.place(earlier)}; expected the same in both, or name a column of "
                "ids that differ, ",
                NAMED_IDS,
                ".",
            )
    return list(first.values())


def are_parts(references: Any) -> TypeGuard[list[Any]]:
    """Return whether references come from several files."""
    if not (isinstance(references, list) and references):
        return False
    return all(isinstance(file, Column | WholeTable) for file in references)


def checked_references(references: Iterable[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the references of each segment.

    InputError is raised if there is no segment, or one has no reference.
    """
    if isinstance(references, str | bytes):
        kind = type(references).__name__
        raise InputTypeError(
            f"The references are one {kind}; expected a list, one for each segment.",
        )
    lists = []
    for segment, given in enumerate(references):
        title = f"references[{segment}]"
        if isinstance(given, str):
            given = [given]
        texts = collect_strings(given, title)
        if not texts:
            raise InputError(f"{title} is empty; expected a text, or a list of at least one.")
        lists.append(tuple(texts))
    if not lists:
        raise InputError("There are no references; expected one for each segment.")
    return tuple(lists)
