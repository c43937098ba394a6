"""Rows of CSV, TSV and JSON lines, as values by the names of their columns."""

from collections.abc import Iterator
from typing import Literal

from bertscore_onnx.distributed.job.rows.input_table import MAX_BATCH_BYTES, MAX_ROWS, TableSettings
from bertscore_onnx.tables.readers import Dialect, read_objects, read_rows
from bertscore_onnx.tables.sources import Source, open_source

Record = dict[str, object]
TextFormat = Literal["csv", "tsv", "jsonl"]


class Records:
    """The rows of a text file while it is open, a few at a time."""

    def __init__(self, source: Source, text_format: TextFormat, settings: TableSettings) -> None:
        """Begin to read.

        Args:
            source: what to read.
            text_format: its format.
            settings: how fields are written.

        Raises:
            InputError: it is no text, or has no header.
        """
        self.place = source.title
        """Where the names stand, for a message."""
        self.names: list[str] | None = None
        """The names of the columns, where they are known before the rows are read."""
        self._rows: Iterator[Record]
        if text_format == "jsonl":
            is_empty = not source.unpacked().read(1)
            self._rows = iter(()) if is_empty else (fields for _, fields in read_objects(source))
        else:
            dialect = Dialect("\t" if text_format == "tsv" else ",", settings.has_header, settings.has_quotes)
            self.place, names, rows = read_rows(source, dialect)
            self.names = names
            self._rows = (dict(zip(names, fields, strict=True)) for _, fields in rows)

    def batches(self) -> Iterator[list[Record]]:
        """Yield the rows, some at a time, which depends on nothing but the file.

        Raises:
            InputError: a row cannot be read as the format says; says the line.
        """
        batch: list[Record] = []
        size = 0
        for record in self._rows:
            batch.append(record)
            size += sum(len(value) for value in record.values() if isinstance(value, str | list))
            if len(batch) == MAX_ROWS or size >= MAX_BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def read_records(name: str, path: str, text_format: TextFormat, settings: TableSettings) -> Iterator[list[Record]]:
    """Yield the rows of a file, some at a time; errors are those of `Records`."""
    with open_source(path, title=name) as source:
        yield from Records(source, text_format, settings).batches()
