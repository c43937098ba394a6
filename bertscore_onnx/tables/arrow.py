"""Columns of Arrow from rows.

`ColumnTypes` finds their types, which only the values show; `column_of` makes arrays.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow

from bertscore_onnx.errors import Argument, InputError, shortened


class ColumnTypes:
    """The types of the columns of a file, known or found as its rows are added.

    A field of whole and of other numbers is float64, and a field of objects has the keys of all of
    them; a field that a row lacks is null there.
    """

    def __init__(self, title: str, known: pyarrow.Schema | None = None, num_rows: int = 0) -> None:
        self._title = title
        self._known = known
        self._types: dict[str, pyarrow.DataType] = {}
        self._conflicts: dict[str, str] = {}
        self._with_lists: set[str] = set()
        self.num_rows = num_rows

    @property
    def names(self) -> list[str]:
        """The fields, in the order of their first row."""
        return list(self._types)

    def add(self, records: Sequence[Mapping[str, object]]) -> None:
        """Add rows."""
        self.num_rows += len(records)
        if self._known is not None:
            return
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

    def schema(
        self, names: Iterable[str], texts: Collection[str], remedy: tuple[str | Argument, ...]
    ) -> pyarrow.Schema:
        """Return columns with their types, those of texts as lists if a row has a list.

        InputError, with the remedy, is raised if values have no common type that Parquet has.
        """
        fields = []
        for name in names:
            fields.append(self._field(name, remedy, is_text=name in texts))
        return pyarrow.schema(fields)

    def _field(
        self, name: str, remedy: tuple[str | Argument, ...], *, is_text: bool
    ) -> pyarrow.Field:
        """Return a column with its type."""
        if self._known is not None:
            return self._known.field(name)
        if is_text:
            text = pyarrow.string()
            if name in self._with_lists:
                text = pyarrow.list_(text)
            return pyarrow.field(name, text)
        conflict = self._conflicts.get(name) or _unwritable(self._types[name])
        if conflict:
            raise InputError(
                f"{self._title}: Parquet has no type for all values of {name!r}: {conflict}. ",
                *remedy,
            )
        return pyarrow.field(name, self._types[name])


def _common_type(kind: pyarrow.DataType, other: pyarrow.DataType) -> pyarrow.DataType:
    """Return a type that holds the values of both; raise an error of Arrow if there is none."""
    # Arrow finds common types of the fields of schemas alone.
    schemas = [pyarrow.schema([("values", kind)]), pyarrow.schema([("values", other)])]
    return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type


def _conflict(before: pyarrow.DataType, values: Sequence[object]) -> str:
    """Return why values have no type in common with those before, of the type `before`."""
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
    """Return why Parquet cannot hold a type, which is objects without keys; empty if it can."""
    if str(kind) == "struct<>":
        return "there are objects without keys"
    for position in range(kind.num_fields):
        reason = _unwritable(kind.field(position).type)
        if reason:
            return reason
    return ""


def column_of(
    records: Sequence[Mapping[str, object]], field: pyarrow.Field, title: str
) -> pyarrow.Array:
    """Return a column of records in the type of its field.

    Raise InputError if a value does not have it.
    """
    if not records:
        return pyarrow.nulls(0, field.type)
    values = [record.get(field.name) for record in records]
    item = field.type
    is_list = pyarrow.types.is_list(item)
    if is_list:
        item = item.value_type
    if pyarrow.types.is_string(item):
        values = [_texts_as(value, is_list=is_list) for value in values]
    try:
        return pyarrow.array(values, field.type)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"{title}: the values of {field.name!r} are not all of the type {field.type}: "
            f"{_conflict(field.type, values)}. Make them alike, or leave the column out."
        ) from error


def _texts_as(value: object, *, is_list: bool) -> str | list[str | None] | None:
    """Return the text, or the texts, of a value in the form of its column."""
    if value is None or not is_list:
        return _text_of(value)
    if not isinstance(value, list):
        return [_text_of(value)]
    return list(map(_text_of, value))


def _text_of(value: object) -> str | None:
    """Return None and texts as they are, and any other value as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
