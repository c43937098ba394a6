"""Read the texts and scores of systems.

Each table and list that a caller gives is taken in once. Roles choose the columns of tables, whose
rows are split by metric, system and run. docs/tables.md has the rules as users read them.
"""

import re
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, filterfalse
from pathlib import PurePath
from typing import Any, Literal, get_args

import numpy as np

from bertscore_onnx.errors import Argument, InputError, InputTypeError, either
from bertscore_onnx.tables.batches import check_form
from bertscore_onnx.tables.columns import id_text
from bertscore_onnx.tables.joins import Rows, rows_of_table
from bertscore_onnx.tables.roles import (
    DOCUMENT_COLUMNS,
    ID_COLUMNS,
    NO_IDS,
    USUAL_NAMES,
    first_usual,
    id_columns,
    plain_name,
    usual_columns,
)
from bertscore_onnx.tables.whole_table import WholeTable, is_frame, row_labels
from bertscore_onnx.text.texts import collect_strings
from bertscore_onnx_evaluation.table import listed

Frame = Any
"""A data frame in any form that `BERTScorer.score_frame` takes, but for a mapping."""

Candidates = Mapping[str, Iterable[str] | Frame] | Frame

SystemScores = Any
"""The scores of each system by its name, one for each segment or (runs, segments), or a data
frame.
"""

Value = Literal["P", "R", "F"]
"""Which numbers of `Scores` are compared."""

Missing = Literal["raise", "drop"]
"""How to handle a segment that some input lacks.

An error is raised, or it is left out for all systems."""

OfSystems = Literal["candidate", "score"]
"""A role whose columns are of systems."""

_PACKAGES_OF_TABLES = ("pandas", "polars", "pyarrow")

_READERS: Mapping[str, Callable[[WholeTable, str], Sequence[Any]]] = {
    "candidate": WholeTable.texts,
    "reference": WholeTable.lists,
}


WMT = ".seg.score"
"""The end of the names of files with a system and its score in each line, those of a system in
order of segments.
"""


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns of tables by their roles.

    They are as named, and otherwise have their usual names.
    """

    named: Mapping[str, tuple[str, ...]]

    @property
    def are_by_position(self) -> bool:
        """Whether rows are joined by position, whatever ids they have."""
        return self.named.get("segment") == (NO_IDS,)

    def of(self, table: WholeTable, role: str) -> tuple[str, ...]:
        """Return the columns of a role that a table has, as named or by their usual names."""
        if role in self.named:
            return tuple(name for name in self.named[role] if name in table.names)
        if role == "document":
            return first_usual(DOCUMENT_COLUMNS, table.names)
        argument = Argument("columns", {role: "NAME"})
        return tuple(usual_columns(role, table.names, table.title, argument))

    def required(self, table: WholeTable, role: str) -> tuple[str, ...]:
        """Return the columns of a role; raise InputError if a table lacks one."""
        argument = Argument("columns", {role: "NAME"})
        if role in self.named:
            names = self.named[role]
            return tuple(table.find(name, argument, several_columns(name)) for name in names)
        usual = {**USUAL_NAMES, "document": DOCUMENT_COLUMNS}[role]
        return self.of(table, role) or (table.find(usual, argument),)

    def ids(self, table: WholeTable) -> tuple[str, ...]:
        """Return the columns that make up the ids.

        There are none if a table has none, or rows are joined by position.
        """
        of_roles = [names for role, names in self.named.items() if role != "segment"]
        others = set(chain.from_iterable(of_roles))
        named = self.named.get("segment", ())
        return id_columns(table.names, named, others=others, title=table.title)


def several_columns(name: str) -> str:
    """Return advice on naming several columns, as the end of a sentence.

    It is empty unless an unknown name seems to mean several.
    """
    if not re.fullmatch(r"\w+(,\w+)+", name):
        return ""
    return f". For several columns, write them as {name.replace(',', '+')}"


@dataclass(frozen=True, slots=True, eq=False)
class InputValues:
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
    prf: Any = None
    """The `Scores` of which these are the P, R or F."""


Key = tuple[str, str, str | int]
"""The role of an input, its metric, and its system or a number."""

Inputs = dict[Key, list[InputValues]]
"""The inputs, each with the values of its runs."""


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A table, or the values of a list, and the keys of the mappings that it stood in."""

    content: WholeTable | InputValues
    key: str
    """Its system or metric; empty if it stood in no mapping."""
    metric: str
    """The metric, if it stood in the mapping of one; else empty."""


class InputReader:
    """Reads the inputs of one comparison, each table once."""

    def __init__(self, roles: Roles, missing: Missing = "raise", value: Value = "F") -> None:
        """Read columns of these roles, and one of the three numbers of `Scores`."""
        if value not in get_args(Value):
            raise InputError(f"value is {value!r}; expected one of {', '.join(get_args(Value))}.")
        self.roles = roles
        self.missing = missing
        self.value = value
        self.has_order = False
        """Whether some input has ids, or an index, that may be left aside."""
        self.system_names: set[str] = set()
        """The systems that were read so far."""
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

    def table(self, value: Any, title: str) -> WholeTable | None:
        """Return a table, or the rows of a data frame; None for anything else.

        `title` is its name in messages.
        """
        if not is_frame(value):
            return None
        if id(value) not in self._tables:
            table = value
            if not isinstance(value, WholeTable):
                table = WholeTable.of_frame(value, title)
            self._tables[id(value)] = (value, table)
        return self._tables[id(value)][1]

    def list_values(
        self, values: Any, title: str, role: str, listing: Callable[[Any], Sequence[Any]]
    ) -> InputValues:
        """Return the values that `listing` lists."""
        if isinstance(values, InputValues):
            return replace(values, role=role)
        in_order(values, title)
        labels = row_labels(values)
        self.has_order |= labels is not None
        if self.roles.are_by_position:
            labels = None
        listed_values = listing(values)
        rows = Rows(
            title,
            len(listed_values),
            lambda row: f"{title}[{row}]",
            "value",
            id_columns=("index",),
            labels=labels,
        )
        return InputValues(title, rows, listed_values, role)

    def rows_of(self, table: WholeTable) -> Rows:
        """Return all rows of a table with its ids, or with its index."""
        if table not in self._rows:
            self.has_order = True
            rows = rows_of_table(table, self.roles.ids(table))
            if rows.ids is None and not self.roles.are_by_position:
                rows = replace(rows, labels=table.labels, id_columns=("index",))
            self._rows[table] = rows
        return self._rows[table]

    def cells(self, table: WholeTable, role: str, name: str) -> list[Any]:
        """Return the values of a column, with None for a null if segments may be missing."""
        if role == "score":
            return table.numbers(name).tolist()
        read = _READERS.get(role, WholeTable.keys)
        if self.missing == "raise":
            return list(read(table, name))
        values: list[Any] = [None] * len(table)
        present, rows = table.without_nulls(name, are_texts=role in _READERS)
        for row, value in zip(rows, read(present, name), strict=True):
            values[row] = value
        return values

    # Texts and scores, by metric, system and run.

    def systems(self, given: Any, role: OfSystems, names: Sequence[str] | None) -> Inputs:
        """Return the texts or scores of systems; texts have the metric "".

        Args:
            given: a table, or a mapping of systems, or of metrics.
            role: what the values are.
            names: the systems to return, in their order; None for all.
        """
        title = f"{role}s"
        entries = {"": given}
        if isinstance(given, Mapping):
            entries = _by_text(given, title)
        elif not is_frame(given):
            raise InputTypeError(
                f"The {title} are a {type(given).__name__}; expected a data frame, or a mapping of "
                "the names of systems to a list for each."
            )
        check_form(given, title)
        found: dict[str, dict[str, list[InputValues]]] = {}
        sources: dict[tuple[str, str], str] = {}
        for source in self._sources(entries, role, names):
            for metric, values in self._melted(source, role, names):
                if role == "candidate":
                    metric = ""
                runs = found.setdefault(metric, {}).setdefault(values.name, [])
                # A system has its values of a metric, and all runs of these, under one key.
                key = source.metric or source.key
                if sources.setdefault((metric, values.name), key) != key:
                    of_metric = f" of {metric}" if metric else ""
                    raise InputError(
                        f"{runs[0].rows.title} and {values.rows.title} have values{of_metric} for "
                        f"{values.name}; expected them in one. Rename a system."
                    )
                runs.append(values)
        if names is None:
            names = list(dict.fromkeys(chain.from_iterable(found.values())))
        self.system_names.update(names)
        inputs: Inputs = {}
        for metric, by_system in (found or {"": {}}).items():
            missing = [name for name in names if name not in by_system]
            if missing:
                raise self._lacking(missing, metric, found, list(filter(None, entries)))
            for name in names:
                inputs[role, metric, name] = by_system[name]
        return inputs

    def _sources(
        self, entries: Mapping[str, Any], role: OfSystems, names: Sequence[str] | None
    ) -> Iterator[_Source]:
        """Yield each table, and each list of a system that is named."""
        for entry, of_entry in entries.items():
            metric = ""
            by_key = {entry: of_entry}
            if isinstance(of_entry, Mapping) and role == "score":
                metric = entry
                by_key = _by_text(of_entry, f"{role}s[{entry!r}]")
            for key, of_key in by_key.items():
                title = f"{role}s[{key!r}]" if key else f"{role}s"
                listing: Callable[[Any], Sequence[Any]] = partial(_numbers, title=title)
                runs = of_key
                if role == "candidate":
                    listing = partial(collect_strings, name=title)
                else:
                    runs = numbers_of(of_key, self.value, title)
                if not _are_runs(runs):
                    runs = [runs]
                prf = prf_runs(of_key) or [None] * len(runs)
                for run, scores in zip(runs, prf, strict=True):
                    content: WholeTable | InputValues | None = self.table(run, title)
                    if content is None:
                        if role == "score" and not isinstance(run, Iterable):
                            raise InputTypeError(
                                f"{title} is {run!r}; expected a number for each segment."
                            )
                        if not self._is_system(run, names, key):
                            continue
                        values = self.list_values(run, title, role, listing)
                        content = replace(values, name=key, prf=scores)
                    yield _Source(content, key, metric)

    def _is_system(self, run: Any, names: Sequence[str] | None, key: str) -> bool:
        """Return whether a list is to be read; raise InputError if its key may be a column's."""
        if names is not None and key in names:
            return True
        named = chain.from_iterable(self.roles.named.values())
        is_column = plain_name(key) in (*ID_COLUMNS, "system") or key in named
        if is_column and not isinstance(run, InputValues):
            raise InputError(
                f"{key!r} is the name of a column, and the keys of a mapping are systems. Give a "
                "table, `pandas.DataFrame(…)` of the columns; or, if it is a system, name it in ",
                Argument("systems"),
                ".",
            )
        return names is None

    def _melted(
        self, source: _Source, role: OfSystems, names: Sequence[str] | None
    ) -> Iterator[tuple[str, InputValues]]:
        """Yield the metric and the values of each system and run in a table or list."""
        table = source.content
        if isinstance(table, InputValues):
            yield source.metric or "score", table
            return
        used: dict[str, tuple[str, ...]] = {}
        columns: dict[str, tuple[str, str]] = {}  # the metric and the system of each
        key = source.key
        metric = source.metric
        system = key or names_of_files([table.title])[0]
        systems = self.roles.of(table, "system")
        if not systems and names is not None and {*names} <= {*table.names}:
            columns = {name: (metric or key or "score", name) for name in names}
        elif systems or names is None or system in names:
            used[role] = self._columns(table, role)
        else:
            return
        if systems:
            used["system"] = systems
            if key and role == "candidate":
                raise InputError(
                    f"{table.title} has a column {systems[0]!r}, the system of each row. "
                    "Give the rows of all systems as one table; or, if it is of one system, leave "
                    "out this column."
                )
            metric = metric or key
            metrics = self.roles.of(table, "metric")
            if metrics and role == "score" and len(used[role]) == 1:
                used["metric"] = metrics
        for name in used.get(role, ()):
            is_alone = len(used[role]) == 1
            columns[name] = (metric if metric and is_alone else name, system)

        runs = self.roles.of(table, "run")
        if runs and len({*table.keys(*runs)}) > 1:
            used["run"] = runs
        cells = {name: self.cells(table, role, name) for name in columns}
        for (metric_of_rows, system_of_rows, run), rows in self._parts(table, used).items():
            for name, (metric_of_column, system_of_column) in columns.items():
                values = [cells[name][row] for row in rows.at]
                named = system_of_rows or system_of_column
                melted = InputValues(named, rows, values, role, used, run, name)
                yield metric_of_rows or metric_of_column, melted

    def _columns(self, table: WholeTable, role: OfSystems) -> tuple[str, ...]:
        """Return the columns of texts, or of scores; raise InputError if a table has none."""
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
        whole = self.rows_of(table)
        by_role: list[Sequence[str]] = []
        for role in ("metric", "system", "run"):
            of_rows: Sequence[str] = [""] * len(table)
            if role in used:
                of_rows = table.keys(*used[role])
            by_role.append(of_rows)
        keys = list(zip(*by_role, strict=True))
        if len({*keys}) < 2:
            return {next(iter(keys), ("", "", "")): whole}
        if is_indexed(whole):
            whole = with_labels_as_ids(whole)
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
        found: Mapping[str, Mapping[str, object]],
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


def _are_runs(values: Any) -> bool:
    """Return whether values are lists, tables or columns, each of a run."""
    is_sequence = isinstance(values, list | tuple | np.ndarray)
    return is_sequence and len(values) > 0 and all(map(_is_run, values))


def _is_run(value: Any) -> bool:
    return isinstance(value, InputValues) or is_frame(value) or np.ndim(value) == 1


def is_indexed(rows: Rows) -> bool:
    """Return whether pandas' index holds ids: another than 0, 1, 2 and so on."""
    if rows.ids is not None or rows.labels is None:
        return False
    positions = list(map(str, range(rows.number)))
    return list(map(id_text, rows.labels)) != positions


def with_labels_as_ids(rows: Rows) -> Rows:
    """Return the rows with the labels of pandas as ids, if they have labels."""
    if rows.labels is None:
        return rows
    return replace(rows, ids=list(map(id_text, rows.labels)))


def _by_text(given: Mapping[Any, Any], title: str) -> dict[str, Any]:
    """Return a mapping with texts as keys; raise InputError if two are alike."""
    named = {str(name): value for name, value in given.items()}
    if len(named) < len(given):
        names = ", ".join(map(repr, given))
        raise InputError(
            f"{title} has the names {names}, of which two read alike. Rename one.",
        )
    return named


def names_of_files(files: Sequence[str]) -> list[str]:
    """Return a name for each file, without folder and suffix.

    It is the whole name if two are alike.
    """
    stems = [PurePath(file.removesuffix(".gz").removesuffix(WMT)).stem for file in files]
    names = []
    for file, stem in zip(files, stems, strict=True):
        is_alone = stems.count(stem) == 1 and stem not in files
        names.append(stem if is_alone else file)
    return names


# Scores of ours, and the numbers of other metrics.


def is_prf(values: object) -> bool:
    """Return whether this is the `Scores` of texts: P, R and F in one object."""
    return isinstance(values, tuple) and hasattr(values, "best_reference")


def prf_runs(values: Any) -> list[Any]:
    """Return the `Scores` of all runs of a system; none if some are others."""
    runs = values if isinstance(values, list) else [values]
    return runs if all(map(is_prf, runs)) else []


def in_order(values: Any, title: str) -> Any:
    """Return values as they are; raise InputTypeError for a set, mapping or masked array."""
    if not isinstance(values, Mapping | Set | np.ma.MaskedArray):
        return values
    expected = "a value for each segment, in their order, and NaN for a missing score"
    if isinstance(values, Mapping):
        expected = (
            "a list with a value for each segment, or a table, such as `pandas.DataFrame(…)` of "
            "the columns"
        )
    raise InputTypeError(f"{title} is a {type(values).__name__}; expected {expected}.")


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
        raise InputError(
            f"{title} is a tuple of three rows, as P, R and F are; expected one of them, or runs "
            "in a list or an array."
        )
    if isinstance(values, list | tuple) and (_are_runs(values) or all(map(is_prf, values))):
        return [numbers_of(run, value, title) for run in values]
    if isinstance(values, Iterator):
        return list(values)
    package = type(values).__module__.partition(".")[0]
    if hasattr(values, "__array__") and package not in _PACKAGES_OF_TABLES:
        return np.asarray(values)
    return values
