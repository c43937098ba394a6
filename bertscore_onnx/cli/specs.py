"""Values of options that are written NAME=VALUE.

For example `--columns candidate=mt reference=first+second`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import typer

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.formats import (
    DEFAULT_DIALECT,
    FORMATS,
    TEXT,
    Dialect,
    formats_with_settings,
)
from bertscore_onnx.tables.score_columns import SCORE_NAMES, check_score_names

_BETWEEN = re.compile(r",\s*(?=\w[\w-]*=)")


def fields_of(
    specs: Iterable[str], known: Collection[str], option: str, advice: str = ""
) -> dict[str, list[str]]:
    """Return the values of each name, in their order, of one option's specs.

    Errors end with the advice. A comma separates two of them only if `NAME=` follows it, and the
    first = separates the name from its value, so that values may contain both. typer.BadParameter
    is raised for anything else, and for an unknown name.
    """
    form = "NAME=VALUE with one of the names"
    if option == "--columns":
        form = "ROLE=NAME with one of the roles"
    fields: dict[str, list[str]] = {}
    for item in chain.from_iterable(map(_BETWEEN.split, specs)):
        name, equals, value = item.partition("=")
        name = name.strip().replace("-", "_")
        # The column of an index that pandas writes has an empty name.
        if name not in known or not (value or (equals and name == "segment")):
            raise typer.BadParameter(
                f"{item!r} is not of the form {form} {', '.join(known)}.{advice}", param_hint=option
            )
        fields.setdefault(name, []).append(value)
    return fields


def single(name: str, values: Sequence[str], option: str) -> str:
    """Return the value of a name.

    typer.BadParameter is raised if it is given several times.
    """
    if len(values) > 1:
        raise typer.BadParameter(
            f"{name} is given {len(values)} times; expected once.", param_hint=option
        )
    return values[0]


# Columns of tables, by the role that they have.


def columns_option(*roles: str) -> Any:
    """Return the option `--columns` for these roles; `columns_of` reads it."""
    return typer.Option(
        "--columns", metavar="ROLE=NAME...", help=f"Name columns, such as {roles[0]}=NAME."
    )


class ColumnNames(dict[str, tuple[str, ...]]):
    """The columns that the options name, by role."""

    def __call__(self, role: str) -> str | None:
        """Return the column of a role; None if the options do not name it."""
        return next(iter(self.get(role, ())), None)

    @property
    def references(self) -> tuple[str, ...]:
        """The columns of references; none if the options do not name them."""
        return self.get("reference", ())

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of the columns of the scores.

        A fourth, truncated, is among them if it is named.
        """
        names = [self(role) or role for role in SCORE_NAMES]
        return (*names, *self.get("truncated", ()))


NO_COLUMNS = ColumnNames()


def columns_of(specs: Iterable[str] | None, *roles: str, advice: str = "") -> ColumnNames:
    """Return the columns that the values of `--columns` name.

    The advice is what else its user may have meant. `reference=a+b` names two columns, and so does
    `reference=a reference=b`, in which + is a character of a name. Of `segment=a segment=b` each
    table has the first that it has; `segment=a+b` is a key of two columns.
    """
    fields = fields_of(specs or (), roles, "--columns", advice)
    columns = ColumnNames()
    for role, values in fields.items():
        if role == "segment":
            columns[role] = tuple(values)
            continue
        if role not in ("reference", "score"):
            columns[role] = (single(role, values, "--columns"),)
            continue
        several = values[0].split("+") if len(values) == 1 else values
        if not all(several):
            raise typer.BadParameter(
                f"{role}={'+'.join(several)} has an empty name. To name columns with a + in their "
                f"names, give {role}=NAME for each, and a single one twice.",
                param_hint="--columns",
            )
        columns[role] = tuple(dict.fromkeys(several))
    try:
        check_score_names(columns.scores)
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--columns") from error
    return columns


# The format of files.


_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
_DELIMITER = (
    " delimiter is a character, which a shell may need in quotes, or comma, semicolon, tab, pipe "
    "or space."
)


def dialect_of(spec: str | None) -> Dialect:
    """Return the format and the settings that a value of `--input-format` names.

    An example is `csv,header=no`.
    """
    if spec is None:
        return DEFAULT_DIALECT
    first, *settings = _BETWEEN.split(spec)
    formats = (TEXT, *FORMATS)
    file_format = first.strip() if first.strip() in formats else None
    if "=" in first:
        settings = [first, *settings]
    elif file_format is None:
        raise _wrong_format(
            f"{first!r} is not one of {', '.join(formats)}. Settings of TSV and CSV follow after "
            "a comma, as in csv,header=no, or stand alone if the format follows from the file's "
            "name, as in header=no."
        )
    fields = fields_of(settings, ("header", "quotes", "delimiter"), "--input-format", _DELIMITER)
    values = {name: single(name, texts, "--input-format") for name, texts in fields.items()}
    if values and file_format not in (None, *formats_with_settings()):
        raise _wrong_format(
            f"{spec!r} has {', '.join(values)}, for TSV and CSV only; expected {file_format} alone."
        )
    delimiter = values.get("delimiter")
    delimiter = None if delimiter is None else _DELIMITERS.get(delimiter, delimiter)
    try:
        return Dialect(_is_yes("header", values), _is_yes("quotes", values), delimiter, file_format)
    except InputError as error:
        raise _wrong_format(f"{error}{_DELIMITER}") from error


def _is_yes(name: str, values: Mapping[str, str]) -> bool:
    value = values.get(name, "yes")
    if value not in ("yes", "no"):
        raise _wrong_format(f"{name} is {value!r}; expected yes or no.")
    return value == "yes"


def _wrong_format(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="--input-format")
