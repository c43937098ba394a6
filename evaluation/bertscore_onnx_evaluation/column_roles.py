"""The columns of the tables that `compare` reads, by their roles.

Also what was taken from each of the tables.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.columns import (
    CANDIDATE_COLUMNS,
    ID_COLUMNS,
    NO_IDS,
    REFERENCE_COLUMNS,
    column_names,
    id_columns,
)
from bertscore_onnx.tables.table import listed
from bertscore_onnx.tables.whole_table import WholeTable

DOCUMENT_COLUMNS = ("document", "document_id", "doc")
"""The names of a column of documents that is used without being named; `doc_id` is an item's id in
some logs.
"""

USUAL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "system": ("system",),
    "candidate": CANDIDATE_COLUMNS,
    "score": ("score",),
    "metric": ("metric",),
    "reference": REFERENCE_COLUMNS,
    "segment": ID_COLUMNS,
    "document": (*DOCUMENT_COLUMNS, "doc_id"),
    "run": ("run",),
}
"""The usual names of the column of each role."""

PANDAS_INDEX = ("", "Unnamed: 0")
"""The names of a first column that is the index of a data frame: as pandas writes it, and as it
reads that again.
"""

PARQUET_INDEX = "__index_level_0__"
"""The column with this index in Parquet."""


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

    @property
    def are_ids_named(self) -> bool:
        """Whether a caller says how rows belong together, which is trusted."""
        return "segment" in self.named

    def of(self, table: WholeTable, role: str) -> tuple[str, ...]:
        """Return the columns of a role that a table has.

        There are several only if they are named.
        """
        return self.among(table.names, role)

    def among(self, names: Collection[str], role: str) -> tuple[str, ...]:
        """Return which of these columns have a role."""
        named = self.named.get(role, ())
        if role == "segment":
            if named and not any(name in names for name in named):
                return ()
            return id_columns(list(names), named)
        if role in self.named:
            return tuple(name for name in named if name in names)
        usual = USUAL_COLUMNS.get(role, ())
        return tuple(name for name in usual if name in names)[:1]

    def required(self, table: WholeTable, role: str) -> tuple[str, ...]:
        """Return the columns of a role; raise InputError if a table lacks one."""
        argument = Argument("columns", {role: "NAME"})
        if role not in self.named:
            return (table.find(USUAL_COLUMNS[role], argument),)
        names = self.named[role]
        return tuple(table.find(name, argument, several_columns(name)) for name in names)

    def ids(self, table: WholeTable) -> tuple[str, ...]:
        """Return the columns that make up the ids.

        There are none if a table has none, or rows are joined by position.
        """
        without_ids: set[str] = set()
        for role in USUAL_COLUMNS:
            if role != "segment":
                without_ids.update(self.named.get(role, ()))
        named = self.named.get("segment", ())
        return id_columns(table.names, named, others=without_ids, title=table.title)

    def without(self, table: WholeTable) -> list[str]:
        """Return the columns of a table that have no role.

        They may be systems or metrics.
        """
        roles = [*USUAL_COLUMNS, *self.named]
        if not self.of(table, "system") and "candidate" not in self.named:
            roles.remove("candidate")  # each system has a column, and one may be called output
        excluded = {*index_of(table), *table.levels}
        for role in roles:
            excluded.update(self.of(table, role))
        return [name for name in table.names if name not in excluded]


def index_of(table: WholeTable) -> tuple[str, ...]:
    """Return the column of a table that is a data frame's index, if any."""
    if table.names and table.names[0] in PANDAS_INDEX:
        return (table.names[0],)
    return (PARQUET_INDEX,) if PARQUET_INDEX in table.names else ()


def several_columns(name: str) -> str:
    """Return advice on naming several columns, as the end of a sentence.

    It is empty unless an unknown name seems to mean several.
    """
    if not re.fullmatch(r"\w+(,\w+)+", name):
        return ""
    return f". For several columns, write them as {name.replace(',', '+')}"


def roles_of(
    columns: Mapping[str, str | Sequence[str]] | None,
    by: object = None,
) -> Roles:
    """Return the roles that a caller names.

    InputError is raised for another role, or several columns where one counts.
    """
    named = {}
    for role, names in (columns or {}).items():
        if role not in USUAL_COLUMNS:
            expected = ", ".join(USUAL_COLUMNS)
            raise InputError(f"There is no role {role!r} of columns; expected one of {expected}.")
        title = f"columns[{role!r}]"
        may_be_several = role in ("reference", "score")
        if may_be_several and isinstance(names, str):
            names = names.split("+")
        found = tuple(map(str, column_names(names, title)))
        if len(found) > 1 and not may_be_several and role != "segment":
            raise InputError(f"{title} names {len(found)} columns; expected one.")
        named[role] = found
    if isinstance(by, str):
        named["group"] = (by,)
    return Roles(named)


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """What was taken from a file, or from a data frame."""

    table: str
    """The file, or the argument that was the data frame."""
    systems: tuple[str, ...]
    """The systems that it has; none if it has references or documents alone."""
    roles: Mapping[str, tuple[str, ...]]
    """The columns that were used, by role; without `segment`, rows were joined by position."""
    ignored: tuple[str, ...]
    """All other columns, and systems that were not named."""
    joined: str = ""
    """How its rows were joined by position with those of other tables, and what shows it; empty
    with ids.
    """


def _segments_by(choice: ColumnChoice) -> str:
    ids = choice.roles.get("segment")
    if ids is None:
        return choice.joined or "by position"
    return f"by {'+'.join(ids) or 'the column without a name'}"


def in_words(choices: Sequence[ColumnChoice], baseline: str) -> list[str]:
    """Return sentences about what was taken.

    Files from which the same was taken share one.
    """
    if not choices:
        return []
    alike: dict[str, list[ColumnChoice]] = {}
    for choice in choices:
        alike.setdefault(_taken(choice), []).append(choice)
    sentences = [f"{_start(group)}{taken}." for taken, group in alike.items()]
    return [*sentences, f"The baseline is {baseline}."]


def _taken(choice: ColumnChoice) -> str:
    """Return the columns that were used, and those that were ignored."""
    taken = []
    for role, names in choice.roles.items():
        if role != "segment":
            taken.append(f"{role} {'+'.join(names)}")
    taken.append(f"segments {_segments_by(choice)}")
    if choice.ignored:
        ignored = [name or repr(name) for name in choice.ignored]
        taken.append(f"ignored {', '.join(ignored)}")
    return "; ".join(taken)


def _start(choices: Sequence[ColumnChoice]) -> str:
    """Return the start of the sentence: the files and their systems."""
    if all(len(choice.systems) == 1 for choice in choices):
        files: dict[str, list[str]] = {}
        for choice in choices:
            files.setdefault(choice.systems[0], []).append(choice.table)
        systems = [f"{system} is {listed(of_system)}" for system, of_system in files.items()]
        return f"{', '.join(systems)}; "
    start = f"{', '.join(choice.table for choice in choices)}: "
    systems = list(chain.from_iterable(choice.systems for choice in choices))
    if systems:
        start += f"systems {', '.join(systems)}; "
    return start
