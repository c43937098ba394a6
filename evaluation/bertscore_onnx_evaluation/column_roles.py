"""The columns of the tables that `compare` reads, by their roles.

Also what was taken from each of the tables.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.columns import column_names
from bertscore_onnx.tables.roles import (
    DOCUMENT_COLUMNS,
    NO_IDS,
    USUAL_NAMES,
    first_usual,
    id_columns,
    roles_of_command,
    usual_columns,
)
from bertscore_onnx.tables.table import listed
from bertscore_onnx.tables.whole_table import WholeTable

ROLES = roles_of_command("compare")
"""The roles of columns, in the order in which the output has them."""


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


def roles_of(
    columns: Mapping[str, str | Sequence[str]] | None,
    by: object = None,
) -> Roles:
    """Return the roles that a caller names.

    InputError is raised for another role, or several columns where one counts.
    """
    named = {}
    for role, names in (columns or {}).items():
        if role not in ROLES:
            expected = ", ".join(ROLES)
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
    """How its rows were joined with those of other tables, and what shows it; empty if there are
    no others.
    """


def _segments_by(choice: ColumnChoice) -> str:
    ids = choice.roles.get("segment")
    if choice.joined or ids is None:
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
