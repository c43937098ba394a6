"""Batches in the forms that engines hand over: their columns, and how scores are put beside these."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.scores import Score
from bertscore_onnx.signature import Signature
from bertscore_onnx.tables.columns import Column

if TYPE_CHECKING:
    import pandas
    import pyarrow


# The texts in the rows of batches, checked row by row.


Errors = Literal["raise", "null"]
"""What becomes of a row that cannot be scored: an error that names it, or nulls and a reason."""


def check_errors(errors: str) -> None:
    """Raise an InputError where this is no treatment of rows."""
    if errors not in get_args(Errors):
        raise InputError(f'errors is {errors!r}; expected "raise" or "null".')


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a batch."""

    pairs: list[tuple[str, list[str]]]
    """The candidate and the references of each row that can be scored."""

    reasons: list[str | None]
    """For each row why it cannot be scored, which does not say where it stands; or None, (rows,)."""


class RowReader:
    """Reads the rows of one batch after the other, and knows how many it has read."""

    def __init__(self, candidate: str, reference: str, errors: Errors, title: str = "", num_read: int = 0) -> None:
        """Take where the texts are.

        Args:
            candidate, reference: the names of the columns.
            errors: what becomes of a row that cannot be scored.
            title: what the rows are of, such as a file, for a message.
            num_read: how many rows stand before the first one that is to be read.

        Raises:
            InputError: there is no such treatment of rows.
        """
        check_errors(errors)
        self._candidate = Column((candidate,), "candidate")
        self._reference = Column((reference,), "reference", may_hold_lists=True)
        self._errors = errors
        self._title = title
        self._num_read = num_read

    def find(self, names: Sequence[str]) -> tuple[str, str]:
        """Return the names of the two columns among all that are there; an InputError where one is missing."""
        title = self._title or "The batch"
        return self._candidate.find(names, title), self._reference.find(names, title)

    def read(self, candidates: Sequence[object], references: Sequence[object]) -> Rows:
        """Check the next rows.

        Args:
            candidates, references: the values of the two columns, (rows,).

        Raises:
            InputError: a row cannot be scored, and is to be an error; it has its number, counted from 1.
        """
        rows = Rows([], [])
        for candidate, reference in zip(candidates, references, strict=True):
            self._num_read += 1
            place = f"{self._title}, row {self._num_read}" if self._title else f"row {self._num_read}"
            try:
                [text] = self._candidate.texts_of(candidate, self._candidate.names[0], place)
                texts = self._reference.texts_of(reference, self._reference.names[0], place)
            except InputError as error:
                if self._errors == "raise":
                    raise
                rows.reasons.append(str(error).removeprefix(f"{place}: "))
            else:
                rows.pairs.append((text, texts))
                rows.reasons.append(None)
        return rows


# The scores of the rows of a batch, as columns.


SIGNATURE = b"bertscore_onnx.signature"
"""The key of the signature in the metadata of an Arrow schema."""

REASON = "error"
"""The column that says why a row has no scores, where rows may have none."""


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """Which columns scores are put into."""

    all_layers: bool
    """Whether each value is a list, with a number for each layer."""

    errors: Errors
    """Whether rows may have none, and a reason."""

    @property
    def names(self) -> list[str]:
        """Their names, in order."""
        return ["precision", "recall", "f1", "best_reference", *([REASON] if self.may_be_null else [])]

    @property
    def may_be_null(self) -> bool:
        """Whether a row may have no scores."""
        return self.errors == "null"

    def check_free(self, names: Sequence[str], title: str, *, ignores_case: bool = False) -> None:
        """Check that there are no columns of these names yet.

        Args:
            names: the columns that are there.
            title: what has them, for a message.
            ignores_case: whether names that differ in case alone are the same.

        Raises:
            InputError: there are some.
        """
        taken = [name for name in names if (name.lower() if ignores_case else name) in self.names]
        if taken:
            raise InputError(
                f"{title} has columns {', '.join(map(repr, taken))} already, and scores would go there. Rename or drop "
                "them first."
            )

    def fields(self) -> "list[pyarrow.Field]":
        """Return them as fields of an Arrow schema."""
        import pyarrow

        types = [*[pyarrow.float32()] * 3, pyarrow.int64()]
        if self.all_layers:
            types = [pyarrow.list_(one) for one in types]
        types += [pyarrow.string()] * self.may_be_null
        return [pyarrow.field(name, one) for name, one in zip(self.names, types, strict=True)]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The scores of the rows of a batch."""

    scores: Sequence[Score]
    """Those of the rows that have some."""

    reasons: Sequence[str | None]
    """For each row why it has none, or None, (rows,)."""

    columns: ScoreColumns
    signature: Signature

    def values(self) -> dict[str, list[object]]:
        """Return the values of each column, (rows,); None where a row has no scores, or has no reason."""
        found = iter(self.scores)
        rows = list(self._rows(found))
        names = self.columns.names
        return {name: [row[position] for row in rows] for position, name in enumerate(names)}

    def _rows(self, found: Iterator[Score]) -> Iterator[tuple[object, ...]]:
        for reason in self.reasons:
            if reason is None:
                score = next(found)
                yield *score, score.best_reference, None
            else:
                yield None, None, None, None, reason


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
