"""The columns of the tables that `compare` reads, by their roles; and what was taken from each of them."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

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
"""The names of a column of documents that is used without being named; `doc_id` is an item's id in some logs."""

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
"""The names of a first column that is the index of a data frame: as pandas writes it, and as it reads that again."""

PARQUET_INDEX = "__index_level_0__"
"""The column with this index in Parquet."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns of tables by their roles: as named, and otherwise by their usual names."""

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
        """Return the columns of a role that a table has; several only if they are named."""
        return self.among(table.names, role)

    def among(self, names: Collection[str], role: str) -> tuple[str, ...]:
        """Return which of these columns have a role."""
        if role == "segment":
            named = self.named.get(role, ())
            return () if named and not any(name in names for name in named) else id_columns([*names], named)
        if role in self.named:
            return tuple(name for name in self.named[role] if name in names)
        return tuple(name for name in USUAL_COLUMNS.get(role, ()) if name in names)[:1]

    def required(self, table: WholeTable, role: str) -> tuple[str, ...]:
        """Return the columns of a role; raise InputError if a table lacks one."""
        argument = Argument("columns", {role: "NAME"})
        if role not in self.named:
            return (table.find(USUAL_COLUMNS[role], argument),)
        return tuple(table.find(name, argument, several_columns(name)) for name in self.named[role])

    def ids(self, table: WholeTable) -> tuple[str, ...]:
        """Return the columns that make up the ids; none if a table has none, or rows are joined by position."""
        others = {name for role in USUAL_COLUMNS if role != "segment" for name in self.named.get(role, ())}
        return id_columns(table.names, self.named.get("segment", ()), others=others, title=table.title)

    def without(self, table: WholeTable) -> list[str]:
        """Return the columns of a table that have no role, which may be systems or metrics."""
        roles = [*USUAL_COLUMNS, *self.named]
        if not self.of(table, "system") and "candidate" not in self.named:
            roles.remove("candidate")  # each system has a column, and one may be called output
        with_role = {name for role in roles for name in self.of(table, role)}
        with_role |= {*index_of(table)}
        return [name for name in table.names if name not in with_role and name not in table.levels]


def index_of(table: WholeTable) -> tuple[str, ...]:
    """Return the column of a table that is the index of a data frame, if there is one."""
    first = [name for name in table.names[:1] if name in PANDAS_INDEX]
    return (*first, *(name for name in table.names if name == PARQUET_INDEX))[:1]


def several_columns(name: str) -> str:
    """Return advice on naming several columns, as the end of a sentence, if an unknown name seems to mean these."""
    if not re.fullmatch(r"\w+(,\w+)+", name):
        return ""
    return f". For several columns, write them as {name.replace(',', '+')}"


def roles_of(columns: Mapping[str, str | Sequence[str]] | None, by: object = None) -> Roles:
    """Return the roles that a caller names; raise InputError for another role, or several columns where one counts."""
    named = {}
    for role, names in (columns or {}).items():
        if role not in USUAL_COLUMNS:
            raise InputError(f"There is no role {role!r} of columns; expected one of {', '.join(USUAL_COLUMNS)}.")
        if role in ("reference", "score") and isinstance(names, str):
            names = names.split("+")
        named[role] = tuple(map(str, column_names(names, f"columns[{role!r}]")))
        if len(named[role]) > 1 and role not in ("reference", "score", "segment"):
            raise InputError(f"columns[{role!r}] names {len(named[role])} columns; expected one.")
    return Roles(named | ({"group": (by,)} if isinstance(by, str) else {}))


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
    """How its rows were joined by position with those of other tables, and what shows it; empty with ids."""


def _segments_by(choice: ColumnChoice) -> str:
    ids = choice.roles.get("segment")
    if ids is None:
        return choice.joined or "by position"
    return f"by {'+'.join(ids) or 'the column without a name'}"


def in_words(choices: Sequence[ColumnChoice], baseline: str) -> list[str]:
    """Return sentences about what was taken; files from which the same was taken share one."""
    alike: dict[str, list[ColumnChoice]] = {}
    for choice in choices:
        words = [f"{role} {'+'.join(names)}" for role, names in choice.roles.items() if role != "segment"]
        words.append(f"segments {_segments_by(choice)}")
        words += [f"ignored {', '.join(name or repr(name) for name in choice.ignored)}"] * bool(choice.ignored)
        alike.setdefault("; ".join(words), []).append(choice)
    sentences = []
    for taken, group in alike.items():
        systems = [name for choice in group for name in choice.systems]
        start = f"{', '.join(choice.table for choice in group)}: " + f"systems {', '.join(systems)}; " * bool(systems)
        if all(len(choice.systems) == 1 for choice in group):
            files: dict[str, list[str]] = {}
            for choice in group:
                files.setdefault(choice.systems[0], []).append(choice.table)
            start = ", ".join(f"{system} is {listed(of_system)}" for system, of_system in files.items()) + "; "
        sentences.append(f"{start}{taken}.")
    return [*sentences, f"The baseline is {baseline}."] if sentences else []
