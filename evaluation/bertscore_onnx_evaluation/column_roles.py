"""The columns of tables by their roles, as they are named, and as used."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.columns import column_names
from bertscore_onnx.tables.roles import NO_IDS, ROLES_OF_FORMS, check_uses, roles_of_command
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.systems.input_reader import (
    InputReader,
    InputValues,
    Roles,
    several_columns,
)
from bertscore_onnx_evaluation.table import listed

ROLES = roles_of_command("compare")
"""The roles of columns, in the order in which the output has them."""

OF_SYSTEMS = ("candidate", "score")
"""The roles whose columns are of systems."""


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


def check_roles(reader: InputReader, values: Sequence[InputValues]) -> None:
    """Raise InputError for a named column that no table has, or none of these values uses."""
    available = reader.column_names
    for role, names in reader.roles.named.items():
        for name in names:
            keys = {name}
            if role == "segment" and name not in available:
                keys = {*name.split("+")} - {NO_IDS}
            if not keys <= available.keys():
                tables = "there is no table"
                if available:
                    tables = f"the tables have {', '.join(available)}"
                raise InputError(
                    f"There is no column {name!r}, of ",
                    Argument("columns", {role: name}),
                    f"; {tables}{several_columns(name)}.",
                )
    used = list(dict.fromkeys(chain.from_iterable(map(_used, values))))
    if reader.roles.are_by_position and reader.has_order:
        used.append("segment")
    named = {role: names for role, names in reader.roles.named.items() if role != "group"}
    check_uses(named, ROLES_OF_FORMS["compare"], used)


def _used(values: InputValues) -> dict[str, tuple[str, ...]]:
    """Return the columns that were used, with those of the ids."""
    if values.rows.ids is None:
        return dict(values.roles)
    return {**values.roles, "segment": values.rows.id_columns}


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


def choices_of(
    columns: Sequence[InputValues], how: Mapping[WholeTable, str], named: Roles
) -> tuple[ColumnChoice, ...]:
    """Return what was taken from each table, and from the files of systems.

    `how` is how the rows of tables were joined.
    """
    by_source: dict[object, list[InputValues]] = {}
    for column in columns:
        rows = column.rows
        # Files without columns count only where they are of a system, and lists never.
        if rows.table is not None:
            by_source.setdefault(rows.table, []).append(column)
        elif rows.unit != "value" and column.role in OF_SYSTEMS:
            by_source.setdefault(rows.title, []).append(column)
    choices = []
    for of_source in by_source.values():
        rows = of_source[0].rows
        systems: dict[str, None] = {}
        roles: dict[str, tuple[str, ...]] = {}
        for column in of_source:
            roles |= _used(column)
            if column.role in OF_SYSTEMS:
                systems[column.name] = None
        ignored: list[str] = []
        joined = ""
        if rows.table is not None:
            ignored = _ignored_columns(rows.table, systems, roles)
            joined = how.get(rows.table, "")
        if named.are_by_position:
            joined = "by position, as you said"
        ordered = {role: roles[role] for role in (*ROLES, "group") if role in roles}
        choices.append(ColumnChoice(rows.title, tuple(systems), ordered, tuple(ignored), joined))
    return tuple(choices)


def _ignored_columns(
    table: WholeTable,
    systems: Collection[str],
    roles: Mapping[str, tuple[str, ...]],
) -> list[str]:
    """Return the columns of a table without a use, and unnamed systems."""
    used = {*chain.from_iterable(roles.values()), *systems, *table.levels}
    ignored = dict.fromkeys(name for name in table.names if name not in used)
    if "system" in roles:
        ignored |= dict.fromkeys(table.keys(*roles["system"]))
    shown = [table.shown(name) for name in ignored if name not in systems]
    return list(dict.fromkeys(shown))


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
