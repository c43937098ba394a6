"""Values of options that are written NAME=VALUE, such as `--columns candidate=mt reference=first+second`."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import SCORE_NAMES, check_score_names

_BETWEEN = re.compile(r",\s*(?=\w[\w-]*=)")


def fields_of(specs: Iterable[str], known: Collection[str], option: str, advice: str = "") -> dict[str, list[str]]:
    """Return the values of each name, in their order, of one option's specs; errors end with the advice.

    A comma separates two of them only if `NAME=` follows it, and the first = separates the name from its value, so
    that values may contain both. typer.BadParameter is raised for anything else, and for an unknown name.
    """
    form = "ROLE=NAME with one of the roles" if option == "--columns" else "NAME=VALUE with one of the names"
    fields: dict[str, list[str]] = {}
    for item in (item for spec in specs for item in _BETWEEN.split(spec)):
        name, _, value = item.partition("=")
        name = name.strip().replace("-", "_")
        if name not in known or not value:
            raise typer.BadParameter(
                f"{item!r} is not of the form {form} {', '.join(known)}.{advice}",
                param_hint=option,
            )
        fields.setdefault(name, []).append(value)
    return fields


def single(name: str, values: Sequence[str], option: str) -> str:
    """Return the value of a name; raise typer.BadParameter if it is given several times."""
    if len(values) > 1:
        raise typer.BadParameter(f"{name} is given {len(values)} times; expected once.", param_hint=option)
    return values[0]


# Columns of tables, by the role that they have.


ROLES = {
    "candidate": "candidate",
    "reference": "reference (several: reference=first+second)",
    "context": "context",
    "id": "id (by default called segment, segment_id, seg_id, id or line; id=none pairs rows by position)",
    "document": "document",
    "system": "system",
    "lang_pair": "lang_pair",
    "human": "human",
    "annotator": "annotator (or rater)",
    "label": "label",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "truncated": "truncated (written only if it is named)",
}
"""The roles of columns as the help describes them, with the names that columns have unless others are given."""

TEXT_ROLES, SCORE_ROLES = ("candidate", "reference", "context"), ("precision", "recall", "f1", "truncated")


def columns_option(*roles: str, **own: str) -> Any:
    """Return the option `--columns` for these roles, some with a description of their own; `columns_of` reads it."""
    described = ", ".join((ROLES | own)[role] for role in roles)
    return typer.Option(
        "--columns",
        metavar="ROLE=NAME...",
        help=f"Columns of a table by their roles, such as {roles[0]}=NAME. The roles are {described}.",
    )


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns that the options name, by role."""

    names: Mapping[str, tuple[str, ...]]

    def __call__(self, role: str) -> str | None:
        """Return the column of a role; None if the options do not name it."""
        return next(iter(self.names.get(role, ())), None)

    @property
    def references(self) -> tuple[str, ...]:
        """The columns of references; none if the options do not name them."""
        return self.names.get("reference", ())

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of the columns of the scores, and of a fourth, truncated, if it is named."""
        names = [self(role) or role for role in SCORE_NAMES]
        return (*names, *self.names.get("truncated", ()))


NO_COLUMNS = ColumnNames({})


def columns_of(specs: Iterable[str] | None, *roles: str, advice: str = "") -> ColumnNames:
    """Return the columns that the values of `--columns` name; the advice is what else its user may have meant.

    `reference=a+b` names two columns, and so does `reference=a reference=b`, in which + is a character of a name.
    """
    fields = fields_of(specs or (), roles, "--columns", advice)
    several = fields.pop("reference", [])
    several = several[0].split("+") if len(several) == 1 else several
    if not all(several):
        raise typer.BadParameter(
            f"reference={'+'.join(several)} has an empty name. To name columns with a + in their names, give "
            "reference=NAME for each, and a single one twice.",
            param_hint="--columns",
        )
    names = {role: (single(role, values, "--columns"),) for role, values in fields.items()}
    columns = ColumnNames(names | ({"reference": tuple(dict.fromkeys(several))} if several else {}))
    try:
        check_score_names(columns.scores)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--columns") from error
    return columns
