"""Columns of Arrow from JSON lines and text formats.

`JsonTypes` finds their types, which only the values show; `array_of` makes arrays.
"""

import json
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from bertscore_onnx.errors import Argument, InputError, shortened
from bertscore_onnx.tables.readers import Record

if TYPE_CHECKING:
    import pyarrow


class JsonTypes:
    """The types of the fields of a file, found as its rows are added.

    A field of whole and of other numbers is float64, and a field of objects has the keys of all of
    them; a field that a row lacks is null there.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._types: dict[str, pyarrow.DataType] = {}
        self._conflicts: dict[str, str] = {}
        self._with_lists: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The fields, in the order of their first row."""
        return list(self._types)

    def add(self, records: Sequence[Record]) -> None:
        """Add rows."""
        import pyarrow

        for name in dict.fromkeys(chain.from_iterable(records)):
            values = [record.get(name) for record in records]
            before = self._types.setdefault(name, pyarrow.null())
            if any(isinstance(value, list) for value in values):
                self._with_lists.add(name)
            if name in self._conflicts:
                continue
            try:
                self._types[name] = _common_type(before, pyarrow.array(values).type)
            except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
                self._conflicts[name] = _conflict(before, values)

    def of_texts(self, name: str) -> "pyarrow.DataType":
        """Return the type of a column of texts: lists of them if a row has a list."""
        import pyarrow

        if name in self._with_lists:
            return pyarrow.list_(pyarrow.string())
        return pyarrow.string()

    def of(self, name: str, remedy: tuple[str | Argument, ...]) -> "pyarrow.DataType":
        """Return the type of another column.

        Raise InputError if its values have no common type that Parquet has.
        """
        conflict = self._conflicts.get(name) or _unwritable(self._types[name])
        if conflict:
            raise InputError(
                f"{self._title}: Parquet has no type for all values of {name!r}: {conflict}. ",
                *remedy,
            )
        return self._types[name]


def _common_type(kind: "pyarrow.DataType", other: "pyarrow.DataType") -> "pyarrow.DataType":
    """Return a type that holds the values of both.

    Raise an error of Arrow if there is none.
    """
    import pyarrow

    # Arrow finds common types of the fields of schemas alone.
    schemas = [pyarrow.schema([("values", kind)]), pyarrow.schema([("values", other)])]
    return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type


def _conflict(before: "pyarrow.DataType", values: Sequence[object]) -> str:
    """Return why values have no type in common.

    `before` is the type of the values before them.
    """
    import pyarrow

    kinds = []
    if not pyarrow.types.is_null(before):
        kinds.append(str(before))
    for value in values:
        shown = shortened(json.dumps(value, ensure_ascii=False))
        try:
            kind = pyarrow.array([value]).type
        except OverflowError:
            return f"a whole number is out of the range of int64 in {shown}"
        except (pyarrow.ArrowException, TypeError, ValueError):
            return f"several types are in {shown}"
        if not pyarrow.types.is_null(kind):
            kinds.append(str(kind))
    if set(kinds) == {"int64", "double"}:
        return "whole numbers above 2**53 are among other numbers"
    different = list(dict.fromkeys(kinds))
    return "they are " + " and ".join(shortened(kind, 100) for kind in different[:2])


def _unwritable(kind: Any) -> str:
    """Return why Parquet cannot hold a type; empty if it can.

    The reason is objects without keys.
    """
    if str(kind) == "struct<>":
        return "there are objects without keys"
    for position in range(kind.num_fields):
        reason = _unwritable(kind.field(position).type)
        if reason:
            return reason
    return ""


def array_of(values: Sequence[object], field: "pyarrow.Field", title: str) -> "pyarrow.Array":
    """Return the values of a column as an array.

    Raise InputError if one does not have its type.
    """
    import pyarrow

    try:
        return pyarrow.array(values, field.type)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"{title}: the values of {field.name!r} are not all of the type {field.type}: "
            f"{_conflict(field.type, values)}. Make them alike, or leave the column out."
        ) from error
