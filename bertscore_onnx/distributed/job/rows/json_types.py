"""The types of the fields of JSON lines, which nothing says but their values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bertscore_onnx.distributed.job.rows.records import Record
from bertscore_onnx.errors import InputError

if TYPE_CHECKING:
    import pyarrow


class JsonTypes:
    """The types of the fields of a file, which come out as its rows are added.

    A field of whole and of other numbers is of float64, and one of objects has the keys of all of them; a field that is
    missing in a row is null there.
    """

    def __init__(self, title: str) -> None:
        """Start without rows, of a file of this title."""
        self._title = title
        self._types: dict[str, pyarrow.DataType] = {}
        self._conflicts: dict[str, str] = {}
        self._with_lists: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The fields that occur, in the order of their first row."""
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
                    self._types[name] = _merged(before, pyarrow.array(values).type)
                except (pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
                    self._conflicts[name] = str(error)

    def of_texts(self, name: str) -> "pyarrow.DataType":
        """Return the type of a column of texts: lists of them where a row has a list."""
        import pyarrow

        return pyarrow.list_(pyarrow.string()) if name in self._with_lists else pyarrow.string()

    def of(self, name: str) -> "pyarrow.DataType":
        """Return the type of another column.

        Raises:
            InputError: its values have none in common, or one that Parquet does not have.
        """
        conflict = self._conflicts.get(name) or _unwritable(self._types[name])
        if conflict:
            raise InputError(
                f"{self._title}: the values of {name!r} are not of one type ({conflict}). Name the columns to keep in "
                "`columns`, without this one, or make its values alike."
            )
        return self._types[name]


def texts_as(value: object, *, is_list: bool) -> str | list[str] | None:
    """Return the text, or the texts, of a value in the form that its column has; None where it holds something else."""
    if isinstance(value, str):
        return [value] if is_list else value
    if is_list and isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    return None


def _merged(one: "pyarrow.DataType", other: "pyarrow.DataType") -> "pyarrow.DataType":
    import pyarrow

    schemas = [pyarrow.schema([("values", each)]) for each in (one, other)]
    return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type


def _unwritable(given: Any) -> str:
    """Return what keeps a type from being written: objects without any key."""
    if given.num_fields == 0:
        return "objects without keys" if str(given) == "struct<>" else ""
    fields = [given.field(position) for position in range(given.num_fields)]
    return next(filter(None, (_unwritable(field.type) for field in fields)), "")
