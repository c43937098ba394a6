"""Columns of texts in tables, and the values in them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Literal

from bertscore_onnx.errors import (
    Argument,
    InputError,
    InputTypeError,
    either,
    meant,
    shortened,
    shown_names,
)
from bertscore_onnx.tables.roles import USUAL_NAMES, several_usual_names, usual_columns


class UnreadableRow(dict[str, object]):
    """A row of a file that cannot be read, with the reason in place of its values."""

    def __init__(self, reason: str) -> None:
        """Give the reason, without the place of the row."""
        super().__init__()
        self.reason = reason


ColumnName = str | int
"""The name of a column; a number in a data frame without names."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of texts."""

    names: tuple[str, ...]
    """Its name, or several possible names, of which a table may have one."""

    option: str | Argument
    """The option, or argument, that names it; empty if none does."""

    may_hold_lists: bool = False
    """Whether a value may be a list of texts, in formats that have lists."""

    may_be_empty: bool = False
    """Whether a value may have no text: an empty list, or null."""

    is_id: bool = False
    """Whether its values are ids: texts or whole numbers. A row may have none."""

    role: str = ""
    """The role by whose usual names it is found; empty if it has the names above."""

    @property
    def name(self) -> str:
        """The name of a column that was found."""
        return self.names[0]

    @property
    def possible_names(self) -> tuple[str, ...]:
        """The names by which a table may have it, the most usual first."""
        return self.names or USUAL_NAMES[self.role]

    def find(self, available: Sequence[str], place: str, advice: str = "") -> str:
        """Return its name among the available columns.

        Raise InputError, with the place, if not exactly one has it.
        """
        return self.find_all(available, place, advice)[0].name

    def find_all(
        self, available: Sequence[str], place: str, advice: str = ""
    ) -> "list[TextColumn]":
        """Return it as the available columns have it, each with one name.

        There are several only of numbered references, of which all but the first may be empty.

        Raise InputError, with the place, if no column has its name, or too many.
        """
        found = [name for name in self.names if name in available]
        if self.role:
            found = usual_columns(self.role, available, place, self.option)
        elif len(found) > 1:
            raise several_usual_names(found, place, self.option)
        if not found:
            raise self._not_found(available, place, advice)
        columns: list[TextColumn] = []
        for name in found:
            number = available.count(name)
            if number > 1:
                raise InputError(f"{place}: there are {number} columns {name!r}; expected one.")
            may_be_empty = self.may_be_empty or len(columns) > 0
            columns.append(replace(self, names=(name,), role="", may_be_empty=may_be_empty))
        return columns

    def _not_found(self, available: Sequence[str], place: str, advice: str) -> InputError:
        """Return the error for a table without this column."""
        wanted = either(map(repr, self.possible_names))
        problem = f"{place}: there is no column {wanted}, "
        if available:
            shown = [shortened(name) if isinstance(name, str) else name for name in available]
            problem += f"only {shown_names(list(map(repr, shown)))}."
        else:
            problem += "nor any other."
        # A single column is named already.
        if len(available) > 1:
            choices = list(map(str, available))
            near = [meant(str(name), choices) for name in self.possible_names]
            problem += next(filter(None, near), "")
        remedy = _remedy(available)
        if self.option and not remedy:
            return InputError(f"{problem} Name one with ", self.option, f"{advice}.")
        return InputError(f"{problem} {remedy or 'Add it.'}")

    def texts_of(self, value: object, place: str) -> list[str]:
        """Return the texts of a value in this column, which was found.

        Raise InputError, with the place, if it is no text.

        NaN counts as null. If the column may hold lists, a printed list is refused: it could be
        several texts, or one.
        """
        if isinstance(value, str):
            if self.may_hold_lists and _is_printed_list(value):
                raise InputError(
                    f"{place}: the column {self.name!r} holds {shortened(value)!a}, a printed "
                    "list; expected a text. Write a list as a list, which JSON lines have, or a "
                    "column for each reference, reference=r1+r2."
                )
            return [value]
        if isinstance(value, UnreadableRow):
            raise InputError(f"{place}: {value.reason}")
        if isinstance(value, tuple):
            value = list(value)
        elif hasattr(value, "tolist"):  # an array, or a Series
            value = value.tolist()
        if self.is_id and not isinstance(value, list | dict):
            return [id_text(value)]
        if self.may_be_empty and is_null(value):
            return []
        may_be_list = self.may_hold_lists and (value or self.may_be_empty)
        if may_be_list and isinstance(value, list) and all(isinstance(text, str) for text in value):
            return value
        raise InputError(
            f"{place}: the column {self.name!r} holds {_described(value)}; expected "
            f"{self._expected()}.{self._hint(value)}"
        )

    def _expected(self) -> str:
        """Return the kinds of values that it may hold."""
        if self.is_id:
            return "a text, or a whole number"
        if self.may_be_empty:
            return "a text, a list of texts, or null"
        if self.may_hold_lists:
            return "a text, or a list of one or more"
        return "a text"

    def _hint(self, value: object) -> str:
        """Return what to do about a value that is no text; empty for some."""
        if self.may_be_empty or self.is_id:
            return ""
        if is_null(value) or (isinstance(value, list) and any(map(is_null, value))):
            return " Leave the row out, or make the text empty, which scores 0."
        is_list_of_texts = isinstance(value, list) and value and isinstance(value[0], str)
        if is_list_of_texts and not self.may_hold_lists:
            return " Candidates are scored one by one: write a row for each."
        return ""


def find_columns(
    columns: Iterable[TextColumn], available: Sequence[str], place: str, advice: str = ""
) -> list[TextColumn]:
    """Return columns as the available ones have them.

    Raise InputError, with the place, for one that is missing.
    """
    found = []
    for column in columns:
        found += column.find_all(available, place, advice)
    return found


def texts_of_row(columns: Iterable[TextColumn], values: Iterable[object], place: str) -> list[str]:
    """Return the texts in some columns of a row.

    Raise InputError, with the place, where a value has none.
    """
    texts = []
    for column, value in zip(columns, values, strict=True):
        texts += column.texts_of(value, place)
    return texts


_QUOTED = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""


_ITEM = rf"(?:{_QUOTED}|np\.str_\({_QUOTED}\)|None|nan|null)"


_LIST = rf"\[(?:{_ITEM}|[\s,])*+\]"


_PRINTED_LIST = re.compile(
    # as Python, JSON and numpy print it
    rf"(?:array\()?\[(?:{_LIST}|{_ITEM}|[\s,])*+\](?:,\s*dtype=.+\))?"
    r"|.*\n(?:(?:Name|Length): [^\n]*, )?dtype: \S+",  # a Series, as pandas prints it
    re.DOTALL,
)


def _is_printed_list(text: str) -> bool:
    """Return whether a text is square brackets around nothing but quoted texts and nulls, or ends
    with pandas' line of a `dtype`.
    """
    # Such beginnings are rare, and faster to find than the expression is to match.
    may_be_list = text.lstrip()[:1] == "[" or "dtype" in text
    return may_be_list and _PRINTED_LIST.fullmatch(text.strip()) is not None


def id_text(value: object) -> str:
    """Return an id as a text, as TSV and CSV have it; empty for null."""
    if is_null(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _remedy(names: Sequence[str]) -> str:
    """Return what to do about columns that are none; nothing if they may be."""
    if str(next(iter(names), "")).startswith("sep="):  # as Excel reads it
        return "Delete this line, which is for Excel alone."
    if {"columns", "data"} <= set(names):
        return "Write an object for each row, as pandas does with orient='records'."
    return ""


_NULLS = {"name": {""}, "number": {"", "n/a", "na", "nan", "none", "null"}}
"""The texts that count as null by the kind of column, of any case and with spaces around; none in a
column of texts.
"""


def is_null(value: object, kind: Literal["text", "name", "number"] = "text") -> bool:
    """Return whether a value is null in a column of this kind: None, NaN or a text in `_NULLS`."""
    if isinstance(value, str):
        return kind != "text" and value.strip().lower() in _NULLS[kind]
    return value is None or (isinstance(value, float) and isnan(value))


_KINDS = {bool: "true or false", int: "a number", float: "a number", dict: "an object"}


def _described(value: object) -> str:
    if is_null(value):
        return "null"
    if not isinstance(value, list):
        return _KINDS.get(type(value), f"a value of type {type(value).__name__}")
    if not value:
        return "an empty list"
    for item in value:
        if not isinstance(item, str):
            return f"a list with {_described(item)} in it"
    return "a list"


def number_text(value: str | float) -> str | float:
    """Return a number, or its text in a file.

    Raise ValueError if that has an underscore, which Python would skip.
    """
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)
    return value


def column_names(value: object, argument: str) -> tuple[str, ...]:
    """Return one name of a column, or several.

    Raise InputTypeError, with the argument, for anything else.
    """
    names: tuple[Any, ...] = (value,)
    if isinstance(value, list | tuple):
        names = tuple(value)
    if names and all(isinstance(name, str | int) for name in names):
        return names
    shown = names[0] if len(names) == 1 else value
    raise InputTypeError(
        f"{argument} is {shown!r}; expected the name of a column, or a list of names of references."
    )
