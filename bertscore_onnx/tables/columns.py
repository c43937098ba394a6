"""Columns of a table: which of them hold the texts, and whether they do."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isnan

from bertscore_onnx.errors import InputError

_MOST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Column:
    """A column that texts are taken from."""

    names: tuple[str, ...]
    """What it may be called; the first of these that a table has is taken."""

    option: str
    """The option, or argument, that names it; empty where none does."""

    may_hold_lists: bool = False
    """Whether a value may be a list of texts, where the format has lists."""

    def find(self, there: Sequence[str], place: str, advice: str = "") -> str:
        """Return its name among the columns that are there.

        Args:
            there: their names.
            place: the file, and the line where names stand in lines, for a message.
            advice: what else to do where it is not there, for the message.

        Raises:
            InputError: it is not among them, or there more than once.
        """
        for name in self.names:
            if there.count(name) > 1:
                raise InputError(f"{place}: there are {there.count(name)} columns {name!r}; expected one.")
            if name in there:
                return name
        wanted = " or ".join(map(repr, self.names))
        near = [one for name in self.names for one in get_close_matches(name, there, n=1)]
        meant = f" Did you mean {near[0]!r}?" if near else ""
        remedy = f"Name one with {self.option}{advice}." if self.option else "Add it."
        raise InputError(f"{place}: there is no column {wanted}, {_listed(there)}.{meant} {remedy}")

    def texts_of(self, value: object, name: str, place: str) -> list[str]:
        """Return the texts of one value.

        Args:
            value: the value; NaN counts as null.
            name: the column's name, for a message.
            place: the file and the line or row, for a message.

        Raises:
            InputError: it is not a text; nor, where that is allowed, a list of one or more.
        """
        if isinstance(value, str):
            return [value]
        if self.may_hold_lists and isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            return value
        expected = "a text, or a list of one or more" if self.may_hold_lists else "a text"
        raise InputError(f"{place}: the column {name!r} holds {_described(value)}; expected {expected}.{_hint(value)}")


def _listed(names: Sequence[str]) -> str:
    """Return what there is, for a message: not too many names, and none too long."""
    if not names:
        return "nor any other"
    shown = [repr(name if len(name) <= 40 else name[:37] + "...") for name in names[:_MOST_SHOWN]]
    return "only " + ", ".join(shown) + (f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else "")


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


_KINDS = {bool: "true or false", int: "a number", float: "a number", dict: "an object"}


def _described(value: object) -> str:
    if _is_null(value):
        return "null"
    if not isinstance(value, list):
        return _KINDS.get(type(value), f"a value of type {type(value).__name__}")
    others = [one for one in value if not isinstance(one, str)]
    if not value:
        return "an empty list"
    return f"a list with {_described(others[0])} in it" if others else "a list"


def _hint(value: object) -> str:
    if _is_null(value) or (isinstance(value, list) and None in value):
        return " Leave the row out, or make the text empty, which scores 0."
    if isinstance(value, list) and value and isinstance(value[0], str):
        return " Candidates are scored one by one: write a row for each."
    return ""
