"""Batches in the forms that engines pass: reading their columns, and putting scores beside these."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputTypeError
from bertscore_onnx.scores import Score, Signature
from bertscore_onnx.tables.columns import BEST, REASON, SCORE_NAMES, Errors
from bertscore_onnx.text.texts import describe

if TYPE_CHECKING:
    import pyarrow

SIGNATURE = b"bertscore_onnx.signature"
"""The key of the signature in the metadata of an Arrow schema."""

Values = dict[str, list[object]]
"""The values of the added columns, each (rows,)."""


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The columns that scores are put into."""

    all_layers: bool = False
    """Whether each value is a list, with a number for each layer."""

    errors: Errors = "raise"
    """Whether rows may have nulls, and a reason."""

    scores: tuple[str, ...] = SCORE_NAMES
    """The names of the columns of precision, recall and F1, and maybe of whether a text was truncated, and of the share
    of unknown tokens."""

    has_best: bool = True
    """Whether there is a column of the best reference."""

    @property
    def names(self) -> list[str]:
        """Their names, in order."""
        return [*self.scores, *[BEST] * self.has_best, *[REASON] * self.may_be_null]

    @property
    def may_be_null(self) -> bool:
        """Whether a row may have no scores."""
        return self.errors == "null"

    def fields(self) -> "list[pyarrow.Field]":
        """Return them as fields of an Arrow schema."""
        import pyarrow

        kinds = self.kinds(pyarrow.float32(), pyarrow.int64(), pyarrow.bool_(), pyarrow.string(), pyarrow.list_)
        return [pyarrow.field(name, kinds[name]) for name in self.names]

    def kinds(self, score: Any, position: Any, flag: Any, text: Any, list_of: Callable[[Any], Any]) -> dict[str, Any]:
        """Return the type of each column by its name, given the types of values and, for all layers, of lists."""
        share = score
        if self.all_layers:
            score, position = list_of(score), list_of(position)
        return dict(zip(self.scores, (score, score, score, flag, share), strict=False)) | {BEST: position, REASON: text}

    def row(self, score: Score) -> list[Any]:
        """Return the values for one row with scores."""
        values = [*score, score.truncated, score.unknown][: len(self.scores)]
        return [*values, *[score.best_reference] * self.has_best, *[None] * self.may_be_null]

    def values(self, scores: Sequence[Score], reasons: Sequence[str | None]) -> Values:
        """Return the values for rows, from the scores of rows without a reason, and the reason of each row or None."""
        following = map(self.row, scores)
        nothing = [None] * (len(self.names) - 1)
        rows = [next(following) if reason is None else [*nothing, reason] for reason in reasons]
        return {name: [row[position] for row in rows] for position, name in enumerate(self.names)}


Batch = Any
"""A mapping of column names to arrays or lists, a `pyarrow.Table` or `RecordBatch`, a frame of pandas or polars, or a
`datasets.Dataset`."""


class BatchAdapter(ABC):
    """A batch in one of its forms."""

    def __init__(self, batch: Batch, names: Iterable[str]) -> None:
        """Wrap a batch with these columns."""
        self._batch, self.names = batch, list(names)

    @abstractmethod
    def values(self, name: str) -> list[object]:
        """Return a column as Python objects, (rows,), with lists as lists."""

    @abstractmethod
    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        """Return the batch in its form, with the scores as further columns."""


_REMEDIES = {
    "LazyFrame": "Call its `collect()` first.",
    "IterableDataset": "Read it whole, `Dataset.from_list([*dataset])`, or score it with its "
    "`map(ScoreBatch(...), batched=True)`.",
    "Series": "Give the data frame that it is a column of.",
    "list": "`pandas.DataFrame(rows)` makes one of a list of rows.",
    **dict.fromkeys(("DatasetDict", "IterableDatasetDict"), 'Give one of its datasets, such as `datasets["test"]`.'),
}
"""What to do with a form that is no batch, by the name of its class."""


def check_form(batch: Batch, title: str = "The batch") -> None:
    """Raise InputTypeError, with the title, for what only looks like a batch, and for columns of several levels."""
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
    return InputTypeError(
        f"{title} is {shown}; expected a dict of columns, a pyarrow.Table or RecordBatch, a DataFrame of pandas "
        f"or polars, or a datasets.Dataset. {_REMEDIES.get(name, '')}".rstrip()
    )


def adapt(batch: Batch, title: str = "The batch") -> BatchAdapter:
    """Return the adapter of a batch; raise InputTypeError, with its title, for any other form."""
    check_form(batch, title)
    if isinstance(batch, Mapping):
        return _Arrays(batch, batch)
    package = type(batch).__module__.partition(".")[0]
    if package == "pyarrow" and hasattr(batch, "schema"):
        return _Arrow(batch, batch.schema.names)
    if package == "pandas" and hasattr(batch, "columns"):
        return _Frame(batch, batch.columns)
    if package == "polars" and hasattr(batch, "get_column"):
        return _Polars(batch, batch.columns)
    if package == "datasets" and hasattr(batch, "add_column"):
        return _Dataset(batch, batch.column_names)
    raise _no_batch(batch, title)


class _Arrow(BatchAdapter):
    def values(self, name: str) -> list[object]:
        return _listed(self._batch.column(name).to_pylist())  # Ray's tensors come as arrays

    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        import pyarrow

        fields = columns.fields()
        metadata = {**(self._batch.schema.metadata or {}), SIGNATURE: str(signature)}
        schema = pyarrow.schema([*self._batch.schema, *fields], metadata)
        added = [pyarrow.array(values[field.name], field.type) for field in fields]
        return type(self._batch).from_arrays([*self._batch.columns, *added], schema=schema)


class _Arrays(BatchAdapter):
    def values(self, name: str) -> list[object]:
        if isinstance(self._batch[name], str | bytes | Set | np.ma.MaskedArray):
            raise InputTypeError(
                f"The column {name!r} is {describe(self._batch[name])}; expected a list, with a value for each row."
            )
        return _listed(self._batch[name])

    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        return {**self._batch, **_arrays_of(columns, values)}


class _Frame(BatchAdapter):
    def values(self, name: str) -> list[object]:
        return _listed(self._batch[name].to_numpy(dtype=object, na_value=None))

    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        added = _arrays_of(columns, values)
        if columns.may_be_null and not columns.all_layers:
            import pandas

            kinds = columns.kinds("Float32", "Int64", "boolean", "object", list)
            added.update((name, pandas.array(array, kinds[name])) for name, array in added.items() if name != REASON)
        return self._batch.assign(**{name: list(array) if array.ndim > 1 else array for name, array in added.items()})


class _Polars(BatchAdapter):
    def values(self, name: str) -> list[object]:
        return self._batch.get_column(name).to_list()

    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        import polars

        kinds = columns.kinds(polars.Float32, polars.Int64, polars.Boolean, polars.String, polars.List)
        return self._batch.with_columns(
            [polars.Series(name, _listed(column), kinds[name]) for name, column in values.items()]
        )


class _Dataset(BatchAdapter):
    def values(self, name: str) -> list[object]:
        return _listed(list(self._batch.with_format(None)[name]))

    def with_scores(self, columns: ScoreColumns, values: Values, signature: Signature) -> Batch:
        import pyarrow
        from datasets import Features

        kinds = Features.from_arrow_schema(pyarrow.schema(columns.fields()))
        scored = self._batch
        for name, column in values.items():
            scored = scored.add_column(name, _listed(column), feature=kinds[name])
        return scored


def _arrays_of(columns: ScoreColumns, values: Values) -> dict[str, NDArray[Any]]:
    """Return the columns as arrays; of objects if a value may be None."""
    if columns.may_be_null:
        arrays = {name: np.empty(len(column), dtype=object) for name, column in values.items()}
        for name, column in values.items():
            arrays[name][:] = column  # which may have lists
        return arrays
    empty = (0, 0) if columns.all_layers else (0,)
    kinds = columns.kinds(
        np.zeros(empty, np.float32), np.zeros(empty, np.int64), np.zeros(0, np.bool_), None, lambda item: item
    )
    return {
        name: np.array(column, dtype=kinds[name].dtype) if column else kinds[name] for name, column in values.items()
    }


def _listed(values: Any) -> list[object]:
    """Return values as Python objects, with arrays of references as lists."""
    if type(values).__module__.partition(".")[0] == "pandas":
        values = values.to_numpy(dtype=object, na_value=None)
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [item.tolist() if isinstance(item, np.ndarray) else item for item in items]
