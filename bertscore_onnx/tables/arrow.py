"""Values of JSON lines and of text formats as columns of Arrow: their types, which only the values
show, and arrays.
"""

import json
from collections.abc import Sequence
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

        for name in dict.fromkeys(name for record in records for name in record):
            values = [record.get(name) for record in records]
            before = self._types.setdefault(name, pyarrow.null())
            if any(isinstance(value, list) for value in values):
                self._with_lists.add(name)
            if name not in self._conflicts:
                try:
                    schemas = [
                        pyarrow.schema([(name, kind)])
                        for kind in (before, pyarrow.array(values).type)
                    ]
                    self._types[name] = (
                        pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
                    )
                except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
                    self._conflicts[name] = _conflict(before, values)

    def of_texts(self, name: str) -> "pyarrow.DataType":
        """Return the type of a column of texts: lists of them if a row has a list."""
        import pyarrow

        return pyarrow.list_(pyarrow.string()) if name in self._with_lists else pyarrow.string()

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


def _conflict(before: "pyarrow.DataType", values: Sequence[object]) -> str:
    """Return why values have no type in common, given the type of those before."""
    import pyarrow

    kinds = [] if pyarrow.types.is_null(before) else [str(before)]
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
    if {*kinds} == {"int64", "double"}:
        return "whole numbers above 2**53 are among other numbers"
    return "they are " + " and ".join(
        shortened(kind, 100) for kind in list(dict.fromkeys(kinds))[:2]
    )


def _unwritable(kind: Any) -> str:
    """Return the reason why Parquet cannot hold a type, if any: objects without keys."""
    if kind.num_fields == 0:
        return "there are objects without keys" if str(kind) == "struct<>" else ""
    fields = [kind.field(position) for position in range(kind.num_fields)]
    return next(filter(None, (_unwritable(field.type) for field in fields)), "")


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
