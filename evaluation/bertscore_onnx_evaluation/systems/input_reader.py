"""Read the inputs of a comparison.

`InputReader` reads the texts and scores of systems, and the other columns of their tables. Systems
are a list, file or table for each; or the values of the column `system` of a table; or those
columns of a table that are named.
"""

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any, Literal, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, InputTypeError
from bertscore_onnx.tables.batches import check_form
from bertscore_onnx.tables.columns import NO_IDS, ROLES_OF_FORMS, check_uses
from bertscore_onnx.tables.joins import BY_PRODUCTS, Rows, rows_of_table
from bertscore_onnx.tables.table import listed
from bertscore_onnx.tables.whole_table import WholeTable, may_be_scores, row_labels
from bertscore_onnx.text.texts import collect_strings
from bertscore_onnx_evaluation.column_roles import (
    DOCUMENT_COLUMNS,
    Roles,
    index_of,
    roles_of,
    several_columns,
)
from bertscore_onnx_evaluation.score_files import names_of_files
from bertscore_onnx_evaluation.systems.join import (
    Column,
    Missing,
    column_of_list,
    join_segments,
    scores_of,
)

Value = Literal["P", "R", "F"]
"""Which numbers of `Scores` are compared."""

Frame = Any
"""A data frame in any form that `BERTScorer.score_frame` takes."""

Candidates = Mapping[str, Iterable[str] | Frame] | Frame

Systems = dict[str, list[Column]]
"""The texts or scores of systems, a column for each run."""

ALL = "all"
"""In place of names of systems: all columns without another role, or all systems that there are."""


def is_frame(value: object) -> bool:
    """Return whether a value is a table, a data frame or a mapping of columns."""
    if isinstance(value, WholeTable | Mapping):
        return True
    return hasattr(value, "columns") or hasattr(value, "column_names")


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
        self.are_named = False  # whether the keys of the scores are systems
        # Tables by the ids of their objects, which are kept so that no id is used again.
        self._tables: dict[int, tuple[object, WholeTable]] = {}
        self._rows: dict[WholeTable, Rows] = {}
        self._used: dict[str, None] = {}  # roles that the inputs use, in order
        self._forms: dict[str, None] = {}

    def _uses(self, form: str, table: WholeTable | None = None) -> None:
        """Note the roles that an input of this form uses.

        Of a table they are those whose columns it has.
        """
        self._forms[form] = None
        for role in ROLES_OF_FORMS["compare"][form]:
            if table is None or role == "segment" or self.roles.of(table, role):
                self._used[role] = None

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

    def check_roles(self) -> None:
        """Raise InputError for a named column that no table has, or no input uses."""
        available = self.column_names
        for role, names in self.roles.named.items():
            for name in names:
                self._check_column(role, name, available)
        named = {role: names for role, names in self.roles.named.items() if role != "group"}
        check_uses(named, self._forms or ["lines or lists"], self._used)

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

        They are in a named column, or in one with a usual name and no other use. Without a name, a
        constant is no document, and neither is a list or an object.
        """
        tables = [table for table in self.tables if self.roles.of(table, "document")]
        if "document" in self.roles.named:
            return tables
        names = {*DOCUMENT_COLUMNS}.difference(systems, *self.roles.named.values())
        found = []
        for table in tables:
            [name] = self.roles.of(table, "document")
            num_values = len({*map(str, table.values(name))})
            if name in names and num_values > 1 and not table.is_nested(name):
                found.append(table)
        return found

    def is_by_name(self, given: Any, role: Literal["candidate", "score"]) -> bool:
        """Return whether this is a mapping of names of systems.

        It has no columns of systems and of this role.
        """
        if not isinstance(given, Mapping):
            return False
        if not (self.roles.among(given, "system") and self.roles.among(given, role)):
            return True
        return any(map(are_parts, given.values()))

    def column(
        self,
        values: Any,
        title: str,
        role: str,
        listing: Callable[[Any], Sequence[Any]],
    ) -> Column:
        """Return the values of a role in a table; or values that `listing` lists.

        Several columns are lists of references together. Where a table has several rows for a
        segment, one for each system or run, these have to have the same value.
        """
        if isinstance(values, Column):
            return replace(values, role=role)
        if not is_frame(values):
            labels = row_labels(values)
            if labels is not None:
                self._uses("series with an index")
            if self.roles.are_by_position:
                labels = None
            return column_of_list(listing(in_order(values, title)), title, role, labels)
        table = self.table(values, title)
        self._uses(f"a table of {role}s", table)
        names = self.roles.required(table, role)
        cells = self._values(table, role, names[0])
        if len(names) > 1:
            columns = [self._values(table, role, name) for name in names]
            cells = []
            for row in zip(*columns, strict=True):
                if None in row:
                    cells.append(None)
                else:
                    cells.append(list(chain.from_iterable(row)))
        rows = self._rows_of(table)
        ids = rows.ids or ()
        if len({*ids}) < len(ids):
            self._uses("several rows for a segment", table)
            # Each system or run has a row for a segment, and repeats such values as references.
            if self.roles.of(table, "system") or self.roles.of(table, "run"):
                rows = rows.part(_first_rows(table, ids, cells))
        return Column(table.title, rows, [cells[row] for row in rows.at], role, {role: names})

    def _rows_of(self, table: WholeTable) -> Rows:
        """Return all rows of a table with its ids, or with its index."""
        if table not in self._rows:
            rows = rows_of_table(table, self.roles.ids(table))
            if rows.ids is None and not self.roles.are_by_position:
                index = index_of(table)
                labels: Sequence[Hashable] | None = table.labels
                if index:
                    labels = table.keys(*index)
                rows = replace(rows, labels=labels, id_columns=index or ("index",))
            self._rows[table] = rows
        return self._rows[table]

    def _runs(self, table: WholeTable) -> tuple[dict[str, tuple[str, ...]], list[str]]:
        """Return the column of runs by its role, and the run of each row.

        There is no column if there are not several runs.
        """
        names = self.roles.of(table, "run")
        if names:
            runs = table.keys(*names)
            if len({*runs}) > 1:
                return {"run": names}, runs
        return {}, [""] * len(table)

    def _parts(
        self, table: WholeTable, keys: Iterable[tuple[str, str, str]], kind: str
    ) -> dict[tuple[str, str, str], Rows]:
        """Return by metric, system and run the rows of a table.

        The table has several rows for a segment.
        """
        whole = self._rows_of(table)
        if whole.is_indexed:
            whole = whole.by_label()
        if whole.ids is None:
            need = f"{table.title} has a row for each {kind}, so its segments need ids"
            raise InputError(
                f"{need}. Name their column with ",
                Argument("columns", {"segment": "NAME"}),
                ".",
            )
        # A second row for a segment has to have another metric, system or run.
        rows_of: dict[tuple[str, str, str], dict[str, int]] = {}
        for row, (key, segment) in enumerate(zip(keys, whole.ids, strict=True)):
            earlier = rows_of.setdefault(key, {}).setdefault(segment, row)
            if earlier == row:
                continue
            _, system, run = key
            has = "there is"
            if system:
                has = f"the system {system!r} has"
            and_run = ""
            if run:
                and_run = f" and run {run!r}"
            raise InputError(
                f"{table.place(row)}: {has} a second row for segment {segment!r}{and_run}; the "
                f"first is {table.place(earlier)}. Expected one, or other runs in a column 'run'."
            )
        return {key: whole.part(list(rows.values())) for key, rows in rows_of.items()}

    def _values(self, table: WholeTable, role: str, name: str) -> list[Any]:
        """Return the values of a column, such as texts or numbers.

        None is for a null, if segments may be missing.
        """
        if role == "score":
            return table.numbers(name).tolist()
        are_texts = role in ("candidate", "reference")
        read: Callable[[WholeTable, str], Sequence[Any]] = WholeTable.keys
        if role == "candidate":
            read = WholeTable.texts
        if role == "reference":
            read = WholeTable.lists
        if self.missing == "raise":
            return list(read(table, name))
        values: list[Any] = [None] * len(table)
        present, rows = table.without_nulls(name, are_texts=are_texts)
        for row, value in zip(rows, read(present, name), strict=True):
            values[row] = value
        return values

    # The systems of one table: in its rows, or in its columns.

    def _systems_of(
        self,
        table: WholeTable,
        role: Literal["candidate", "score"],
        names: Sequence[str] | None,
        metric: str = "",
    ) -> dict[str, Systems]:
        """Return the values of systems by metric; None or NaN where one has none."""
        columns = self.roles.of(table, role)
        are_columns = names is not None and {*names} <= {*table.names} and not columns
        # Names that are columns are systems, unless the column of values has its role.
        if self.roles.of(table, "system") and not are_columns:
            return self._in_rows(table, role, names, metric)
        if names is None and role == "candidate" and columns:
            self._uses("candidates of one system", table)
            [name] = names_of_files([table.title])
            return {"": self._in_columns(table, role, {name: columns[0]}, {role: columns})}
        if names is None:
            raise self._unnamed(table, role)
        chosen = names
        if names == [ALL]:
            chosen = self._free(table)
        for name in chosen:
            table.find(name, Argument("systems"))
        self._uses(f"{role}s with a column for each system", table)
        by_name = {name: name for name in chosen}
        return {metric or "score": self._in_columns(table, role, by_name, {})}

    def _unnamed(self, table: WholeTable, role: Literal["candidate", "score"]) -> InputError:
        """Return the error for a table whose columns may be systems, or metrics.

        They have to be named.
        """
        if "system" in self.roles.named:
            self.roles.required(table, "system")
        free = self._free(table)
        if role == "score":
            # Columns of texts cannot be scores.
            free = [name for name in free if "texts" not in table.content(name)]
        used = [name for name in table.names if name not in free]
        beside = ""
        if used:
            beside = f", beside {', '.join(used)}"
        if not free:
            return InputError(
                f"{table.title} has no column for a system{beside}; expected one for each of two "
                f"systems or more, or the columns system, segment and {role}."
            )
        further: list[str | Argument]
        further = ["if all rows are of one system, give a table for each system"]
        if role == "candidate":
            references = Argument("columns", {"reference": ["reference", "NAME"]})
            further = ["a further column of references is named by ", references]
        shown = ", ".join(name or "''" for name in free)
        return InputError(
            f"{table.title} has the columns {shown}{beside}, and nothing names systems. Name the "
            "columns of systems, the baseline first, ",
            Argument("systems", ["A", "B", "…"]),
            "; or, if each row is of one system, ",
            Argument("columns", {"system": "NAME", "segment": "NAME", role: "NAME"}),
            "; ",
            *further,
            ".",
        )

    def _free(self, table: WholeTable) -> list[str]:
        """Return the columns of a table that may be systems, or metrics."""
        return [name for name in self.roles.without(table) if name not in BY_PRODUCTS]

    def _in_rows(
        self,
        table: WholeTable,
        role: str,
        names: Sequence[str] | None,
        metric: str,
    ) -> dict[str, Systems]:
        """Return the values of systems from a long table.

        The systems are in its order, or as named.
        """
        [system_column] = self.roles.required(table, "system")
        columns = self.roles.required(table, role)
        has_several = len(columns) > 1
        form = f"{role}s with a row for each system"
        if has_several:
            form = f"several {form}"
        self._uses(form, table)
        roles, runs = self._runs(table)
        roles |= {"system": (system_column,), role: columns}
        metrics = [metric or columns[0]] * len(table)
        if role == "score" and not has_several:
            metric_columns = self.roles.of(table, "metric")
            if metric_columns:
                roles["metric"] = metric_columns
                metrics = table.keys(*metric_columns)
        systems = table.keys(system_column)
        keys = zip(metrics, systems, runs, strict=True)
        parts = self._parts(table, keys, "system and segment")
        by_metric: dict[str, Systems] = {}
        for column in columns:
            values = self._values(table, role, column)
            for (metric_of_rows, system, run), rows in parts.items():
                by_system = by_metric.setdefault(column if has_several else metric_of_rows, {})
                cells = [values[row] for row in rows.at]
                of_run = Column(system, rows, cells, role, roles, run)
                by_system.setdefault(system, []).append(of_run)

        # Each metric has to have all systems, in the order of the names.
        chosen = _chosen(names, dict.fromkeys(systems))
        found: dict[str, Systems] = {}
        for name, by_system in by_metric.items():
            found[name] = {}
            for system in chosen:
                if system not in by_system:
                    of_metric = ""
                    if name:
                        of_metric = f" of {name}"
                    has = ", ".join(by_system)
                    raise InputError(
                        f"{table.title} lacks the system {system!r}{of_metric}; it has {has}.",
                    )
                found[name][system] = by_system[system]
        return found

    def _in_columns(
        self,
        table: WholeTable,
        role: str,
        columns: Mapping[str, str],
        roles: Mapping[str, tuple[str, ...]],
    ) -> Systems:
        """Return the values of systems that have a column each."""
        of_runs, runs = self._runs(table)
        if of_runs:
            keys = [("", "", run) for run in runs]
            parts = self._parts(table, keys, "segment and run")
        else:
            parts = {("", "", ""): self._rows_of(table)}
        used = {**roles, **of_runs}
        systems: Systems = {}
        for system, name in columns.items():
            values = self._values(table, role, name)
            systems[system] = []
            for (_, _, run), rows in parts.items():
                cells = [values[row] for row in rows.at]
                systems[system].append(Column(system, rows, cells, role, used, run))
        return systems

    # Texts of systems.

    def candidates(self, given: Candidates, names: Sequence[str] | None) -> Systems:
        """Return the texts of each system; a system is called after its column."""
        if self.is_by_name(given, "candidate"):
            given = _by_text(given, "candidates")
            chosen = _chosen(names, given)
            for name in chosen:
                if name not in given:
                    only = listed(list(given))
                    raise InputError(f"There are no texts of the system {name!r}, only of {only}.")
            return {name: self._texts_of_system(name, given[name]) for name in chosen}
        if not is_frame(given):
            raise InputTypeError(
                f"The candidates are a {type(given).__name__}; expected a mapping of the names of "
                "systems to lists of texts, or a data frame."
            )
        [systems] = self._systems_of(
            self.table(given, "candidates"),
            "candidate",
            names,
        ).values()
        return systems

    def _texts_of_system(self, name: str, texts: Any) -> list[Column]:
        title = f"candidates[{name!r}]"
        forms = (list, tuple, Column, WholeTable)
        runs = [texts]
        if isinstance(texts, list | tuple) and texts:
            are_runs = all(isinstance(run, forms) for run in texts)
            if are_runs:
                runs = list(texts)
        listing: Callable[[Any], Sequence[str]] = partial(collect_strings, name=title)
        columns = [self.column(run, title, "candidate", listing) for run in runs]
        return [replace(column, name=name) for column in columns]

    # Scores of systems.

    def scores(self, given: Any, names: Sequence[str] | None) -> dict[str, Systems]:
        """Return the scores of each system by metric.

        A system is called after its column, and a single metric `score`. Tables without named
        systems are of one system each, and their columns are metrics.
        """
        check_form(given, "scores")
        if is_prf(given) or not is_frame(given):
            raise InputTypeError(
                f"The scores are a {type(given).__name__}; expected a data frame, or a mapping of "
                "the names of systems to numbers."
            )
        are_tables = []
        if isinstance(given, Mapping):
            given = _by_text(given, "scores")
            are_tables = list(map(_is_table, given.values()))
        has_tables = any(are_tables)
        if has_tables and not all(are_tables):
            raise InputTypeError(
                "The scores are tables and lists of numbers; expected one of these.",
            )
        by_metric_or_system = {"": given}
        if has_tables:
            by_metric_or_system = given
        are_by_name = [self.is_by_name(scores, "score") for scores in by_metric_or_system.values()]
        self.are_named = all(are_by_name)
        found: dict[str, Systems] = {}
        tables_of_systems: dict[str, list[WholeTable]] = {}
        for name, scores in by_metric_or_system.items():
            title = f"scores[{name!r}]" if has_tables else "scores"
            if self.is_by_name(scores, "score"):
                _add(found, {name or "score": self._numbers_by_system(scores, names, title)})
                continue
            runs = scores if isinstance(scores, list) else [scores]
            tables = [self.table(run, title) for run in runs]
            # A table has systems in its columns if names are columns, and no tables themselves.
            named = names or ()
            if names == [ALL]:
                named = self._free(tables[0])
            are_columns = not has_tables or bool({*named} & {*tables[0].names} - {*given})
            if are_columns or self.roles.of(tables[0], "system"):
                by_run = [self._systems_of(table, "score", names, name) for table in tables]
                together = {}
                for metric in by_run[0]:
                    together[metric] = _runs_together([of_run[metric] for of_run in by_run])
                _add(found, together)
            else:
                tables_of_systems[name] = tables
        if tables_of_systems:
            _add(found, self._metrics_of(tables_of_systems, names))
        _check_systems(found)
        return found

    def _numbers_by_system(
        self,
        given: Mapping[str, Any],
        names: Sequence[str] | None,
        title: str,
    ) -> Systems:
        """Return the scores in a mapping, whose keys are systems.

        Columns that are named may stand beside them.
        """
        given = _by_text(given, title)
        with_role = {*chain.from_iterable(self.roles.named.values())}
        chosen = _chosen(names, (name for name in given if name not in with_role))
        beside = [name for name in given if name not in chosen]
        for name, numbers in given.items():
            if not isinstance(numbers, Iterable):
                raise InputTypeError(
                    f"{title}[{name!r}] is {numbers!r}; expected a number for each segment.",
                )
        values = {}
        for name in chosen:
            if name in given:
                values[name] = numbers_of(given[name], self.value, f"{title}[{name!r}]")
        roles_beside = ("segment", "run", "document", "group")
        have_roles = any(map(partial(self.roles.among, beside), roles_beside))
        are_plain = all(map(_is_plain, values.values()))
        # Series with an index and runs are read by themselves, plain numbers as one table.
        if not (have_roles or are_plain) and len(values) == len(chosen):
            found = {}
            for name, numbers in values.items():
                found[name] = self._numbers_of_system(name, numbers, f"{title}[{name!r}]")
            return found
        table = self.table({**given, **values}, title)
        if beside or len(values) < len(chosen):
            [systems] = self._systems_of(table, "score", chosen).values()
            return systems
        rows = Rows(title, len(table), table.place)
        systems = {}
        for name in chosen:
            systems[name] = [Column(name, rows, self._values(table, "score", name), "score")]
        return systems

    def _numbers_of_system(self, name: str, numbers: Any, title: str) -> list[Column]:
        def listing(run: Any) -> list[float]:
            return WholeTable.of_frame({title: run}, title).numbers(title).tolist()

        runs = numbers if _has_runs(numbers) else [numbers]
        columns = [self.column(run, title, "score", listing) for run in runs]
        return [replace(column, name=name) for column in columns]

    def _metrics_of(
        self, tables: Mapping[str, Sequence[WholeTable]], names: Sequence[str] | None
    ) -> dict[str, Systems]:
        """Return by metric the scores in the columns of tables.

        Each table is of one system, or of a run of it.
        """
        chosen = _chosen(names, tables)
        first = next(iter(tables.values()))[0]
        for name in chosen:
            if name not in tables:
                raise InputError(
                    f"There are no scores of the system {name!r}: it is none of the tables "
                    f"{listed(list(tables))}, nor a column of {first.title}, which has "
                    f"{', '.join(first.names)}."
                )
        if names is None and len(chosen) < 2:
            raise self._unnamed(first, "score")
        tables_by_name = [(name, table) for name in chosen for table in tables[name]]
        for _, table in tables_by_name:
            self._uses("a table of scores", table)
        metrics = self._metric_columns([table for _, table in tables_by_name])
        by_metric = {}
        for metric in metrics:
            of_tables = []
            for name, table in tables_by_name:
                columns = {name: metric}
                of_tables.append(self._in_columns(table, "score", columns, {"score": metrics}))
            by_metric[metric] = _runs_together(of_tables)
        return by_metric

    def _metric_columns(self, tables: Sequence[WholeTable]) -> tuple[str, ...]:
        """Return the columns of scores, the same in all tables.

        They are those of the role, or all of numbers.
        """
        first = tables[0]
        if self.roles.of(first, "score") or "score" in self.roles.named:
            columns_of_tables = [self.roles.required(table, "score") for table in tables]
            return columns_of_tables[0]
        columns = []
        for name in dict.fromkeys(chain.from_iterable(map(self._free, tables))):
            if may_be_scores(name, [table for table in tables if name in table.names]):
                columns.append(name)
        scores = Argument("columns", {"score": "NAME"})
        # A column that is a metric in one table has to have numbers in all.
        for table, name in product(tables, columns):
            try:
                table.numbers(table.find(name, ""))
            except InputError as error:
                advice = f" Or, if {name!r} has no scores, name the columns that have: "
                raise InputError(*error.parts, advice, scores, ".") from error
        if columns:
            return tuple(columns)
        shown = ", ".join(map(first.shown, first.names))
        advice = ""
        if any(map(first.is_nested, first.names)):
            advice = " Write nested values as columns first; docs/compare_runs.md has an example."
        raise InputError(
            f"{first.title} has no column of scores, only {shown}; expected numbers. Constants, "
            "and whole numbers that count or nearly all differ, have to be named: ",
            scores,
            f".{advice}",
        )


def _by_text(given: Mapping[Any, Any], title: str) -> dict[str, Any]:
    """Return a mapping with texts as keys; raise InputError if two are alike."""
    named = {str(name): value for name, value in given.items()}
    if len(named) < len(given):
        names = ", ".join(map(repr, given))
        raise InputError(
            f"{title} has the names {names}, of which two read alike. Rename one.",
        )
    return named


def _is_table(value: object) -> bool:
    """Return whether a value is a table, or a list of the tables of runs."""
    if is_frame(value):
        return True
    return isinstance(value, list) and bool(value) and all(map(is_frame, value))


def _runs_together(of_tables: Iterable[Systems]) -> Systems:
    """Return the systems of tables; those of the same name are runs."""
    together: Systems = {}
    for systems in of_tables:
        for name, runs in systems.items():
            together.setdefault(name, []).extend(runs)
    return together


def _add(found: dict[str, Systems], further: Mapping[str, Systems]) -> None:
    """Add scores by metric and system.

    InputError is raised if a system has some of this metric already.
    """
    for metric, systems in further.items():
        earlier = found.setdefault(metric, {})
        for name, runs in systems.items():
            if name in earlier:
                titles = listed([earlier[name][0].rows.title, runs[0].rows.title])
                twice = f"{titles} have scores of {metric} for {name}"
                raise InputError(f"{twice}; expected them in one. Rename a system.")
            earlier[name] = runs


def _check_systems(found: Mapping[str, Systems]) -> None:
    """Raise InputError unless all metrics have scores of the same systems."""
    first = next(iter(found), "")
    for metric, systems in found.items():
        for name in sorted(set(systems) ^ set(found[first])):
            given = metric
            lacking = first
            if name not in systems:
                given = first
                lacking = metric
            raise InputError(
                f"The system {name!r} has scores of {given}, and none of {lacking}. Add them, or "
                "name systems that have both with ",
                Argument("systems"),
                ".",
            )


def _has_runs(values: Any) -> bool:
    return isinstance(values, list | tuple | np.ndarray) and np.ndim(next(iter(values), 0)) == 1


def _is_plain(values: Any) -> bool:
    return row_labels(values) is None and not _has_runs(values)


def _first_rows(table: WholeTable, ids: Sequence[str], cells: Sequence[Any]) -> list[int]:
    """Return the first row of each segment.

    InputError is raised if another row of it has another value.
    """
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        earlier = first.setdefault(name, row)
        if cells[row] != cells[earlier]:
            raise InputError(
                f"{table.place(row)}: segment {name!r} has another value than in "
                f"{table.place(earlier)}; expected the same in both."
            )
    return list(first.values())


def _chosen(names: Sequence[str] | None, available: Iterable[str]) -> Sequence[str]:
    """Return the names of systems, or all that there are if nobody chose."""
    if names is None or names == [ALL]:
        return list(available)
    return names


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


# Scores of ours, and the numbers of other metrics.


def is_prf(values: object) -> bool:
    """Return whether this is the `Scores` of texts: P, R and F in one object."""
    return isinstance(values, tuple) and hasattr(values, "best_reference")


def in_order(values: Any, title: str) -> Any:
    """Return values as they are; raise InputTypeError if they have no order.

    That is a set. A masked array is refused too.
    """
    if isinstance(values, Set | np.ma.MaskedArray):
        raise InputTypeError(
            f"{title} is a {type(values).__name__}; expected a value for each segment, in their "
            "order, and NaN for a missing score."
        )
    return values


def numbers_of(values: Any, value: str, title: str) -> Any:
    """Return the P, the R or the F of `Scores`; other scores as they are.

    Runs may be a list, with `Scores` of each.
    """
    in_order(values, title)
    if is_prf(values):
        numbers = getattr(values, value)
        if np.ndim(numbers) != 1:
            raise InputError(
                f"{title} has scores of the shape {np.shape(numbers)}; expected those of one "
                "layer, such as `scores.of_layer(0)`, with one for each segment."
            )
        return numbers
    if isinstance(values, tuple) and len(values) == 3 and all(np.ndim(row) == 1 for row in values):
        form = "a tuple of three rows, as P, R and F are"
        raise InputError(
            f"{title} is {form}; expected one of them, or runs in a list or an array.",
        )
    if isinstance(values, list | tuple) and (_has_runs(values) or all(map(is_prf, values))):
        return [numbers_of(run, value, title) for run in values]
    if isinstance(values, Iterator):
        return list(values)
    is_of_pandas = type(values).__module__.partition(".")[0] == "pandas"
    if hasattr(values, "__array__") and not is_of_pandas:
        return np.asarray(values)
    return values


def score_matrix(given: Any, value: Value) -> tuple[tuple[str, ...], list[NDArray[np.float64]]]:
    """Return the systems of scores of one metric, and their `scores_of`.

    The scores are a data frame, or a mapping.
    """
    reader = InputReader(roles_of(None), value=value)
    if not isinstance(given, Mapping):
        table = reader.table(given, "scores")
        if not reader.roles.of(table, "system"):
            raise InputError(
                f"scores has the columns {', '.join(table.names)}, and nothing names systems. Give "
                "a mapping, {NAME: NUMBERS, …}, the baseline first; or the columns system, segment "
                "and score."
            )
    by_metric = reader.scores(given, None)
    if len(by_metric) > 1:
        names = ", ".join(by_metric)
        raise InputError(f"scores has {len(by_metric)} metrics, {names}; expected one.")
    [systems] = by_metric.values()
    joined = join_segments(systems)
    return tuple(systems), [scores_of(values) for values in joined.values.values()]
