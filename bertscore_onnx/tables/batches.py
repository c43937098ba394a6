"""Batches in the forms that engines hand over: their columns, and how scores are put beside these."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputTypeError
from bertscore_onnx.tables.scored import SIGNATURE, ScoredRows

if TYPE_CHECKING:
    import pandas
    import pyarrow

Batch = Any
"""A mapping of column names to arrays or lists, a `pyarrow.Table` or `RecordBatch`, or a `pandas.DataFrame`."""


class Table(ABC):
    """A batch in one of the forms."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    @abstractmethod
    def values(self, name: str) -> list[object]:
        """Return a column as Python objects, (rows,), lists among them as lists."""

    @abstractmethod
    def with_scores(self, scored: ScoredRows) -> Batch:
        """Return the batch in its form, with the scores as further columns."""


def table_of(batch: Batch) -> Table:
    """Return a batch with its columns at hand.

    Raises:
        InputTypeError: it has none of the forms.
    """
    if isinstance(batch, Mapping):
        return _Arrays(batch)
    package = type(batch).__module__.partition(".")[0]
    if package == "pyarrow" and hasattr(batch, "schema"):
        return _Arrow(batch)
    if package == "pandas" and hasattr(batch, "columns"):
        return _Frame(batch)
    raise InputTypeError(
        f"The batch is a {type(batch).__name__}; expected a dict of columns, a pyarrow.Table or RecordBatch, or a "
        "pandas.DataFrame."
    )


class _Arrow(Table):
    def __init__(self, batch: "pyarrow.Table | pyarrow.RecordBatch") -> None:
        self._batch = batch

    @property
    def names(self) -> Sequence[str]:
        return list(self._batch.schema.names)

    def values(self, name: str) -> list[object]:
        return _listed(self._batch.column(name).to_pylist())  # Ray's tensors come as arrays

    def with_scores(self, scored: ScoredRows) -> Batch:
        import pyarrow

        fields, values = scored.columns.fields(), scored.values()
        metadata = {**(self._batch.schema.metadata or {}), SIGNATURE: str(scored.signature)}
        schema = pyarrow.schema([*self._batch.schema, *fields], metadata)
        columns = [pyarrow.array(values[field.name], field.type) for field in fields]
        return type(self._batch).from_arrays([*self._batch.columns, *columns], schema=schema)


class _Arrays(Table):
    def __init__(self, batch: Mapping[str, Any]) -> None:
        self._batch = batch

    @property
    def names(self) -> Sequence[str]:
        return list(self._batch)

    def values(self, name: str) -> list[object]:
        return _listed(self._batch[name])

    def with_scores(self, scored: ScoredRows) -> Batch:
        return {**self._batch, **_arrays_of(scored)}


class _Frame(Table):
    def __init__(self, batch: "pandas.DataFrame") -> None:
        self._batch = batch

    @property
    def names(self) -> Sequence[str]:
        return list(self._batch.columns)

    def values(self, name: str) -> list[object]:
        return _listed(self._batch[name].to_numpy(dtype=object, na_value=None))

    def with_scores(self, scored: ScoredRows) -> Batch:
        columns = _arrays_of(scored)
        if scored.columns.may_be_null and not scored.columns.all_layers:
            import pandas

            numbers = {**dict.fromkeys(("precision", "recall", "f1"), "Float32"), "best_reference": "Int64"}
            columns.update((name, pandas.array(columns[name], kind)) for name, kind in numbers.items())
        return self._batch.assign(
            **{name: list(column) if column.ndim > 1 else column for name, column in columns.items()}
        )


def _arrays_of(scored: ScoredRows) -> dict[str, NDArray[Any]]:
    """Return the columns as arrays; of objects where a value may be None."""
    values = scored.values()
    if scored.columns.may_be_null:
        return {name: _array_of_objects(column) for name, column in values.items()}
    types = dict.fromkeys(values, np.float32) | {"best_reference": np.int64}
    shape = (0, 0) if scored.columns.all_layers else (0,)
    return {
        name: np.array(column, dtype=types[name]) if column else np.zeros(shape, dtype=types[name])
        for name, column in values.items()
    }


def _array_of_objects(values: list[object]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _listed(values: Any) -> list[object]:
    """Return values as Python objects, arrays of references as lists."""
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [item.tolist() if isinstance(item, np.ndarray) else item for item in items]
