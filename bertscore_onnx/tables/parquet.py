"""Parquet, with the extra `parquet`."""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO

from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.scores import Score
from bertscore_onnx.tables.columns import TextColumn, UnreadableRow
from bertscore_onnx.tables.formats import Dialect
from bertscore_onnx.tables.readers import (
    MAX_BATCH_SIZE,
    MAX_ROWS,
    HeadedReader,
    RawRow,
    Record,
    Records,
)
from bertscore_onnx.tables.score_columns import SIGNATURE
from bertscore_onnx.tables.sources import MAX_LINE_BYTES, VALUE_BYTES, Source
from bertscore_onnx.tables.writers import RowsToWrite

if TYPE_CHECKING:
    import pyarrow

    from bertscore_onnx.tables.arrow import ColumnTypes


class ArrowRows(Records):
    """Rows as Arrow has them."""

    def __init__(self, batch: "pyarrow.RecordBatch") -> None:
        super().__init__(batch)
        self.batch = batch

    def values(self, name: str) -> list[object]:
        """Return the values of a column."""
        column = self.batch.column(name)
        try:
            return column.to_pylist()
        except UnicodeDecodeError:
            return [_value_of(value) for value in column]

    def arrays(self, schema: "pyarrow.Schema", title: str) -> "list[pyarrow.Array]":
        """Return the columns of a schema."""
        if schema.names == self.batch.schema.names:
            return self.batch.columns
        return [self.batch.column(name) for name in schema.names]


def _value_of(value: "pyarrow.Scalar") -> object:
    """Return a value of Parquet."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return UnreadableRow("it is not UTF-8. Write the text again.")


class ParquetReader(HeadedReader):
    """Parquet."""

    def __init__(self, source: Source, name: str, dialect: Dialect, keep_faults: bool) -> None:
        self.place = source.title
        self._num_read = 0
        with needs_extra("parquet,cpu", "Reading Parquet"):
            from pyarrow import parquet

        with _parquet_errors(self._progress):
            # With its defaults it would read a whole row group at a time.
            self._file = parquet.ParquetFile(source.raw(), buffer_size=1_000_000, pre_buffer=False)
            self._schema = self._file.schema_arrow
        self.names = self._schema.names
        metadata = self._schema.metadata or {}
        self.signature = metadata.get(SIGNATURE, b"").decode(errors="replace")

    @property
    def schema(self) -> "pyarrow.Schema":
        """The columns with their types."""
        return self._schema

    def check_types(self, columns: Iterable[TextColumn]) -> None:
        """Raise InputError if a column that was found is not of texts."""
        for column in columns:
            _check_type(self.schema.field(column.name).type, column, self.place)

    def column_types(self) -> "ColumnTypes":
        """Return the types of the columns."""
        from bertscore_onnx.tables.arrow import ColumnTypes

        return ColumnTypes(self.place, self.schema, self._file.metadata.num_rows)

    def batch_of(self, rows: Sequence[RawRow]) -> Records:
        """Return rows that were read as a batch."""
        import pyarrow

        slices = []
        for _, group in groupby(rows, key=lambda row: id(row[0])):
            of_batch = list(group)
            records, start = of_batch[0]
            slices.append(records.batch.slice(start, len(of_batch)))
        [batch] = pyarrow.Table.from_batches(slices).combine_chunks().to_batches()
        return ArrowRows(batch)

    def batches(
        self, names: Collection[str], start: int = 0, stop: int = sys.maxsize
    ) -> Iterator[tuple[int, Records]]:
        """Yield batches of some columns; each row group begins a batch."""
        metadata = self._file.metadata
        end = 0
        with _parquet_errors(self._progress):
            for number in range(metadata.num_row_groups):
                group = metadata.row_group(number)
                first = end
                end += group.num_rows
                if first >= stop or end <= start:
                    continue
                # As many rows as have about the size of a batch, if all rows are of one size.
                num_rows = MAX_BATCH_SIZE * group.num_rows // max(1, group.total_byte_size)
                size = max(1, min(MAX_ROWS, num_rows))
                for batch in self._file.iter_batches(
                    size, row_groups=[number], columns=list(names), use_threads=False
                ):
                    _check_row_sizes(batch, self.place, first)
                    self.size += batch.nbytes + VALUE_BYTES * batch.num_rows * batch.num_columns
                    yield first, ArrowRows(batch)
                    first += len(batch)
                    self._num_read = first

    def record_of(self, row: RawRow) -> Record:
        """Return the values of a row."""
        records, position = row
        [record] = records.batch.slice(position, 1).to_pylist()
        return dict(record)

    def values(
        self, names: Sequence[str], *, keeps_rows: bool = False
    ) -> Iterator[tuple[str, Sequence[object], RawRow]]:
        """Yield the place of each row, its values in some columns, and the row if it is kept."""
        for first, rows in self.batches(self.names if keeps_rows else names):
            columns = map(rows.values, names)
            for position, values in enumerate(zip(*columns, strict=True)):
                yield f"{self.place}, row {first + position + 1}", values, (rows, position)

    def _progress(self) -> str:
        return f"{self.place}, after row {self._num_read}," if self._num_read else self.place


def _check_row_sizes(batch: "pyarrow.RecordBatch", title: str, num_read: int) -> None:
    """Raise InputError if a row has more than `MAX_LINE_BYTES` characters.

    `num_read` rows are before the batch.
    """
    if batch.nbytes <= MAX_LINE_BYTES:
        return
    columns = [column.to_pylist() for column in batch.columns]
    for row, values in enumerate(zip(*columns, strict=True), num_read + 1):
        if sum(map(_size, values)) > MAX_LINE_BYTES:
            raise InputError(
                f"{title} has more than {MAX_LINE_BYTES:,} bytes in row {row}; texts of that size "
                "are not scored."
            )


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value))
    return 0


@contextmanager
def _parquet_errors(place: Callable[[], str]) -> Iterator[None]:
    """Raise InputError for a file that is damaged, or is not Parquet."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{place()} cannot be read as Parquet: it is damaged, or in another format. Write or "
            "copy it again."
        ) from error


def _check_type(kind: "pyarrow.DataType", column: TextColumn, title: str) -> None:
    from pyarrow import types

    item = kind
    lists = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    if column.may_hold_lists and any(is_kind(item) for is_kind in lists):
        item = item.value_type
    if types.is_dictionary(item):
        item = item.value_type
    if column.is_id or (column.may_be_empty and types.is_null(item)):
        return
    if not (types.is_string(item) or types.is_large_string(item) or types.is_string_view(item)):
        expected = "string, or a list of that" if column.may_hold_lists else "string"
        raise InputError(
            f"{title}: the column {column.name!r} is of type {kind}; expected {expected}."
        )


ROWS_PER_BATCH = 1024

ROW_GROUP_BYTES = 64_000_000
"""About how large a row group becomes in memory before it is written."""


class ParquetWriter:
    """Writes a Parquet file in groups of rows; rows read from Parquet keep their types."""

    def __init__(self, file: BinaryIO, rows: RowsToWrite, signature: str) -> None:
        with needs_extra("parquet,cpu", "Writing Parquet"):
            import pyarrow
            from pyarrow import parquet

        self._rows = rows
        self._source = rows.schema()
        metadata = {**(self._source.metadata or {}), SIGNATURE: signature}
        self._schema = pyarrow.schema([*self._source, *rows.added.fields()], metadata)
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._pending: list[RawRow] = []
        self._scores: list[list[Any]] = []
        self._batches: list[pyarrow.RecordBatch] = []
        self._num_bytes = 0

    def add(self, row: RawRow, score: Score) -> None:
        """Add a row."""
        if len(self._pending) == ROWS_PER_BATCH:
            self._end_batch()
        self._pending.append(row)
        self._scores.append(self._rows.added.row(score))

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        if self._pending:
            self._end_batch()
        if self._batches:
            self._write_row_group()
        self._writer.close()

    def _end_batch(self) -> None:
        import pyarrow

        columns = []
        if len(self._source):
            columns = self._rows.batch(self._pending).arrays(self._source, "The table")
        kinds = self._schema.types[len(self._source) :]
        scores = map(pyarrow.array, zip(*self._scores, strict=True), kinds)
        self._batches.append(
            pyarrow.RecordBatch.from_arrays([*columns, *scores], schema=self._schema)
        )
        self._num_bytes += self._batches[-1].nbytes
        self._pending = []
        self._scores = []
        if self._num_bytes >= ROW_GROUP_BYTES:
            self._write_row_group()

    def _write_row_group(self) -> None:
        import pyarrow

        rows = pyarrow.Table.from_batches(self._batches)
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._batches = []
        self._num_bytes = 0
