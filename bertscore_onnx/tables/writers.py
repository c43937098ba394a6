"""Writes the rows of tables beside their scores.

Rows are copied as the input has them where the formats are the same.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from bertscore_onnx.errors import needs_extra
from bertscore_onnx.scores import Score
from bertscore_onnx.tables.arrow import array_of
from bertscore_onnx.tables.batches import SIGNATURE, ScoreColumns
from bertscore_onnx.tables.columns import BEST, check_free
from bertscore_onnx.tables.readers import (
    DelimitedReader,
    JsonLinesReader,
    ParquetReader,
    RawRow,
    Record,
    TableReader,
)
from bertscore_onnx.tables.sources import InputFormat

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class RowsToWrite:
    """The rows of a table, or of text files, and the columns of their scores."""

    table: TableReader | None
    """The table of the rows; None for rows of text files, each a candidate with its references."""

    added: ScoreColumns
    columns: "Sequence[str] | pyarrow.Schema" = ()
    """The columns of JSON lines, by name for TSV and CSV, and with their types for Parquet."""

    with_texts: bool = True
    """Whether the columns of the rows are written, or the scores alone."""

    def record(self, row: RawRow) -> Record:
        """Return the values of a row by column."""
        if self.table is not None:
            return self.table.record_of(row)
        candidate, references = row
        return {"candidate": candidate, "references": references}


# Writers of lines turn rows with their scores into text, each with its line end. A row is None
# where scores are written alone.


class DelimitedWriter:
    """Writes TSV or CSV.

    Rows of an input of the same format are copied as they stand.
    """

    head = ""

    def __init__(self, rows: RowsToWrite, table_format: InputFormat) -> None:
        table = rows.table if rows.with_texts else None
        self._rows = rows
        self._source: DelimitedReader | None = None
        self._delimiter = "\t" if table_format == "tsv" else ","
        if isinstance(table, DelimitedReader) and table.format == table_format:
            self._source = table
            self._delimiter = table.delimiter
        self._names: list[str] = []
        if table is not None:
            self._names = table.names or list(rows.columns)
        elif rows.with_texts:
            self._names = ["candidate", "reference"]
        added = delimited(rows.added.names, self._delimiter)
        if self._source is None:
            self.head = delimited([*self._names, *rows.added.names], self._delimiter) + "\n"
        elif self._source.has_header:
            self.head = f"{self._source.header}{self._delimiter}{added}{self._source.line_end}"

    def line(self, row: RawRow, score: Score) -> str:
        """Return a row, with numbers of six decimals."""
        precision, recall, f1, *flags = self._rows.added.row(score)
        scores = [f"{precision:.6f}", f"{recall:.6f}", f"{f1:.6f}", *map(_cell, flags)]
        if self._source is not None:
            return f"{row}{self._delimiter}{self._delimiter.join(scores)}{self._source.line_end}"
        return delimited([*self._cells(row, score), *scores], self._delimiter) + "\n"

    def _cells(self, row: RawRow, score: Score) -> list[str]:
        if not self._rows.with_texts:
            return []
        table = self._rows.table
        if table is None:
            candidate, references = row
            return [candidate, references[score.best_reference]]
        if isinstance(table, DelimitedReader):
            return table.fields_of(row)
        record = table.record_of(row)
        return [_cell(record.get(name)) for name in self._names]


def delimited(cells: Sequence[object], delimiter: str) -> str:
    """Return a row of TSV or CSV without its line end.

    A cell is in quotes if it needs them; None is an empty cell.
    """
    row = io.StringIO()
    # This line end, so that \r is quoted too.
    csv.writer(row, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return row.getvalue().removesuffix("\r\n")


def _cell(value: object) -> str:
    """Return a value of JSON or Parquet as text.

    Null is empty, and lists and objects are JSON.
    """
    if isinstance(value, str):
        return value
    encoded = msgspec.json.encode(value, enc_hook=str).decode()
    if encoded == "null":
        return ""
    if encoded[0] == '"':
        return str(msgspec.json.decode(encoded))
    return encoded


class JsonWriter:
    """Writes one JSON object per line.

    Rows of JSON lines are copied as they stand.
    """

    head = ""

    def __init__(self, rows: RowsToWrite) -> None:
        self._rows = rows
        self._source = rows.table if isinstance(rows.table, JsonLinesReader) else None

    def line(self, row: RawRow, score: Score) -> str:
        """Return an object."""
        added = self._rows.added
        numbers = dict(zip(added.names, added.row(score), strict=True))
        scores = json.dumps(numbers, ensure_ascii=False)
        if not self._rows.with_texts:
            return f"{scores}\n"
        if self._source is not None:
            if added.has_best:  # which is not known before
                check_free(self._source.record_of(row), [BEST], self._source.place)
            return f"{row.strip()[:-1].rstrip()}, {scores[1:]}\n"
        values = msgspec.json.decode(msgspec.json.encode(self._rows.record(row), enc_hook=str))
        return f"{json.dumps(values, ensure_ascii=False)[:-1]}, {scores[1:]}\n"


# Parquet, written in groups of rows; rows read from Parquet are copied with their types.

ROWS_PER_BATCH = 1024

ROW_GROUP_BYTES = 64_000_000
"""About how large a row group becomes in memory before it is written."""


class ParquetWriter:
    """Writes a Parquet file, which is complete once it was closed."""

    def __init__(self, file: BinaryIO, rows: RowsToWrite, signature: str) -> None:
        with needs_extra("parquet,cpu", "Writing Parquet"):
            import pyarrow
            from pyarrow import parquet

        self._rows = rows
        self._source = source_schema(rows)
        metadata = {**(self._source.metadata or {}), SIGNATURE: signature}
        self._schema = pyarrow.schema([*self._source, *rows.added.fields()], metadata)
        self._writer = parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._pending: list[RawRow] = []
        self._scores: list[list[Any]] = []
        self._batches: list[pyarrow.RecordBatch] = []
        self._num_bytes = 0

    def add(self, row: RawRow, score: Score) -> None:
        """Add a row."""
        if self._pending and (len(self._pending) == ROWS_PER_BATCH or self._is_of_other_batch(row)):
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

    def _is_of_other_batch(self, row: RawRow) -> bool:
        return isinstance(self._rows.table, ParquetReader) and row[0] is not self._pending[0][0]

    def _end_batch(self) -> None:
        import pyarrow

        if isinstance(self._rows.table, ParquetReader):
            batch, start = self._pending[0]
            columns = batch.slice(start, len(self._pending)).columns
        elif len(self._source):
            records = [self._rows.record(row) for row in self._pending]
            columns = [_column_of(records, field) for field in self._source]
        else:
            columns = []
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


def source_schema(rows: RowsToWrite) -> "pyarrow.Schema":
    """Return the columns of the rows in Parquet.

    Columns of TSV and CSV are strings.
    """
    import pyarrow

    if not rows.with_texts:
        return pyarrow.schema([])
    if isinstance(rows.table, ParquetReader):
        return rows.table.schema
    if isinstance(rows.table, DelimitedReader):
        return pyarrow.schema([(name, pyarrow.string()) for name in rows.table.names])
    if rows.table is None:
        return pyarrow.schema(
            {"candidate": pyarrow.string(), "references": pyarrow.list_(pyarrow.string())}
        )
    return rows.columns


def _column_of(records: Sequence[Record], field: "pyarrow.Field") -> "pyarrow.Array":
    import pyarrow

    is_list = pyarrow.types.is_list(field.type)
    values = []
    for record in records:
        value = record.get(field.name)
        # In JSON lines, some rows may have a text, and others a list of them.
        if is_list and isinstance(value, str):
            value = [value]
        values.append(value)
    return array_of(values, field, "The table")
