"""Batches in the forms that engines pass.

`adapt` wraps a batch: its columns are read, and scores put beside them.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputTypeError
from bertscore_onnx.scores import Signature
from bertscore_onnx.tables.score_columns import SIGNATURE, ScoreColumns, Values
from bertscore_onnx.text.texts import describe

Batch = Any
"""A batch in any of its forms.

It is a mapping of column names to arrays or lists, a `pyarrow.Table` or `RecordBatch`, a frame of
pandas or polars, or a `datasets.Dataset`.
"""


class BatchAdapter:
    """A batch in one of its forms; by itself that of a mapping of columns."""

    def __init__(self, batch: Batch, names: Iterable[str]) -> None:
        """Wrap a batch with these columns."""
        self._batch = batch
        self.names = list(names)

    def values(self, name: str) -> list[object]:
        """Return a column as Python objects, (rows,), with lists as lists."""
        column = self._batch[name]
        if isinstance(column, str | bytes | Set | np.ma.MaskedArray):
            shown = describe(column)
            raise InputTypeError(
                f"The column {name!r} is {shown}; expected a list, with a value for each row.",
            )
        return _as_list(column)

    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        """Return the batch in its form, with the scores as further columns."""
        return {**self._batch, **_arrays_of(columns, values)}


_SET_REMEDY = 'Give one of its datasets, such as `datasets["test"]`.'
_REMEDIES = {
    "LazyFrame": "Call its `collect()` first.",
    "IterableDataset": "Read it whole, `Dataset.from_list([*dataset])`, or score it with its "
    "`map(ScoreBatch(...), batched=True)`.",
    "Series": "Give the data frame that it is a column of.",
    "list": "`pandas.DataFrame(rows)` makes one of a list of rows.",
    "DatasetDict": _SET_REMEDY,
    "IterableDatasetDict": _SET_REMEDY,
}
"""What to do with a form that is no batch, by the name of its class."""


def check_form(batch: Batch, title: str = "The batch") -> None:
    """Raise InputTypeError, with the title, for what only looks like a batch.

    A batch may have no columns of several levels either.
    """
    if type(batch).__name__ in _REMEDIES:
        raise _no_batch(batch, title)
    levels = getattr(getattr(batch, "columns", None), "nlevels", 1)
    if levels > 1:
        raise InputTypeError(
            f"{title} has columns of {levels} levels; expected one name for each. Join them with "
            '`frame.columns = frame.columns.map("_".join)`.'
        )


def _no_batch(batch: Batch, title: str) -> InputTypeError:
    name = type(batch).__name__
    shown = describe(batch) if isinstance(batch, str | list | None) else f"of type {name}"
    remedy = _REMEDIES.get(name, "")
    message = (
        f"{title} is {shown}; expected a dict of columns, a pyarrow.Table or RecordBatch, "
        f"a DataFrame of pandas or polars, or a datasets.Dataset. {remedy}"
    )
    return InputTypeError(message.rstrip())


def adapt(batch: Batch, title: str = "The batch") -> BatchAdapter:
    """Return the adapter of a batch.

    Raises InputTypeError, with the title, for any other form.
    """
    check_form(batch, title)
    if isinstance(batch, Mapping):
        return BatchAdapter(batch, batch)
    form = _FORMS.get(_package_of(batch))
    names = getattr(batch, "column_names", getattr(batch, "columns", None))
    if form is None or names is None:
        raise _no_batch(batch, title)
    return form(batch, names)


class _Arrow(BatchAdapter):
    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        import pyarrow

        # At once, as a batch without columns has no rows, and takes no column of others.
        fields = list(self._batch.schema)
        arrays = list(self._batch.columns)
        for field in columns.fields():
            fields.append(field)
            arrays.append(pyarrow.array(values[field.name], field.type))
        metadata = self._batch.schema.metadata or {}
        schema = pyarrow.schema(fields, {**metadata, SIGNATURE: str(signature)})
        return type(self._batch).from_arrays(arrays, schema=schema)


class _Pandas(BatchAdapter):
    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        added: dict[str, Any] = _arrays_of(columns, values)
        if columns.may_be_null and not columns.all_layers:
            import pandas

            types = columns.types(_NULLABLE.__getitem__, list)
            added = {name: pandas.array(array, types[name]) for name, array in added.items()}
        # A column of pandas has one dimension: it holds the numbers of all layers as arrays.
        for name, array in added.items():
            if array.ndim > 1:
                added[name] = list(array)
        return self._batch.assign(**added)


class _Polars(BatchAdapter):
    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        import polars

        kinds = {
            "float32": polars.Float32,
            "int64": polars.Int64,
            "bool": polars.Boolean,
            "string": polars.String,
        }
        types = columns.types(kinds.__getitem__, polars.List)
        added = []
        for name, column in values.items():
            added.append(polars.Series(name, _as_list(column), types[name]))
        return self._batch.with_columns(added)


class _Dataset(BatchAdapter):
    def values(self, name: str) -> list[object]:
        return _as_list(self._batch.with_format(None)[name])

    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        import pyarrow
        from datasets import Features

        features = Features.from_arrow_schema(pyarrow.schema(columns.fields()))
        scored = self._batch
        for name, column in values.items():
            scored = scored.add_column(name, _as_list(column), feature=features[name])
        return scored


_FORMS = {"pyarrow": _Arrow, "pandas": _Pandas, "polars": _Polars, "datasets": _Dataset}
"""The adapters by the package of a batch."""

_NULLABLE = {"float32": "Float32", "int64": "Int64", "bool": "boolean", "string": "object"}
"""What pandas calls the types that hold nulls."""


def _arrays_of(columns: ScoreColumns, values: Values) -> dict[str, NDArray[Any]]:
    """Return the columns as arrays; of objects if a value may be None."""
    if columns.may_be_null:
        return {name: _objects(column) for name, column in values.items()}
    empty = columns.types(lambda kind: np.empty(0, kind), lambda array: array.reshape(0, 0))
    if not values[columns.scores[0]]:
        return empty
    return {name: np.array(column, empty[name].dtype) for name, column in values.items()}


def _objects(values: list[object]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values  # which may be lists
    return array


def _package_of(value: object) -> str:
    return type(value).__module__.partition(".")[0]


_LISTS: dict[str, Callable[[Any], list[object]]] = {
    "numpy": lambda column: column.tolist(),
    "pandas": lambda column: column.to_numpy(dtype=object, na_value=None).tolist(),
    "polars": lambda column: column.to_list(),
    "pyarrow": lambda column: column.to_pylist(),
}
"""How columns become lists, by their package."""


def _as_list(column: Any) -> list[object]:
    """Return a column as Python objects, with arrays of references as lists."""
    to_list = _LISTS.get(_package_of(column), list)
    items = to_list(column)
    for position, item in enumerate(items):
        # Arrow's have arrays where Ray keeps tensors.
        if isinstance(item, np.ndarray):
            items[position] = item.tolist()
    return items
