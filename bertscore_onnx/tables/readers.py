"""Reads tables row by row, whatever their format.

A few rows are in memory at a time.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import TextColumn, UnreadableRow, find_columns, texts_of_row
from bertscore_onnx.tables.formats import DEFAULT_DIALECT, FORMATS, Dialect
from bertscore_onnx.tables.score_columns import check_free
from bertscore_onnx.tables.sources import Source

if TYPE_CHECKING:
    import pyarrow

    from bertscore_onnx.tables.arrow import ColumnTypes

Record = dict[str, object]
"""The values of a row by column."""

PlacedRecord = tuple[str, Record]
"""The place of a row, such as `pairs.tsv, line 3`, and its values."""

RawRow = Any
"""A row as the file has it: its text without the line end, or in Parquet a batch and the number of
its row.
"""


class Records:
    """Consecutive rows of a table, as mappings or as a format has them."""

    def __init__(self, rows: Sequence[Record]) -> None:
        """Wrap the rows."""
        self._rows = rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __getitem__(self, rows: slice) -> "Records":
        """Return some of the rows."""
        return type(self)(self._rows[rows])

    def values(self, name: str) -> list[object]:
        """Return the values of a column, (rows,); None where a row lacks it.

        An `UnreadableRow` stands for the value of a row that cannot be read.
        """
        values = []
        for record in self._rows:
            is_readable = not isinstance(record, UnreadableRow)
            values.append(record.get(name) if is_readable else record)
        return values

    def arrays(self, schema: "pyarrow.Schema", title: str) -> "list[pyarrow.Array]":
        """Return the columns of a schema; raise InputError for a value of another type."""
        from bertscore_onnx.tables.arrow import column_of  # needs pyarrow

        return [column_of(self._rows, field, title) for field in schema]


class TableReader(ABC):
    """The rows of an open table, which can be read once.

    A format has to give its records; the other methods are faster in some formats.
    """

    names: list[str] | None = None
    """The columns; None if each row has its own."""

    added: Collection[str] = ()
    """The columns that are to be added, which it may not have."""

    size = 0
    """About the bytes of memory that all rows so far take."""

    place: str
    """The place of the names, for messages."""

    advice = ""
    """Extra advice in the error for a missing column."""

    signature = ""
    """The signature of the scores, if the file has one."""

    @abstractmethod
    def records(self) -> Iterator[PlacedRecord]:
        """Yield the rows."""

    def raw_records(self) -> Iterator[tuple[str, Record, RawRow]]:
        """Yield the rows as mappings, and as the file has them."""
        for place, record in self.records():
            yield place, record, record

    def find(self, columns: Iterable[TextColumn]) -> list[TextColumn]:
        """Return columns as the table has them; raise InputError for one that holds no texts."""
        found = find_columns(columns, self.names or (), self.place, self.advice)
        self.check_types(found)
        return found

    def check_types(self, columns: Iterable[TextColumn]) -> None:
        """Raise InputError if a column that was found is not of texts."""
        return

    def rows(
        self, columns: Iterable[TextColumn], *, keeps_rows: bool = True
    ) -> Iterator[tuple[list[str], RawRow]]:
        """Yield the texts of some columns, and the rows.

        A row is as the file has it, if rows are kept. InputError is raised if a column is missing,
        or holds no texts.
        """
        available: list[str] | None = None
        for place, record, raw_row in self.raw_records():
            # Most rows have the columns of the row before.
            if list(record) != available:
                available = list(record)
                check_free(available, self.added, place)
                found = find_columns(columns, available, place, self.advice)
            values = [record.get(column.name) for column in found]
            yield texts_of_row(found, values, place), raw_row

    @property
    def schema(self) -> "pyarrow.Schema":
        """The columns with their types, if all rows have the same; strings by default."""
        import pyarrow

        return pyarrow.schema([(name, pyarrow.string()) for name in self.names or ()])

    def record_of(self, row: RawRow) -> Record:
        """Return the values of a row that was read."""
        record: Record = row
        return record

    def batch_of(self, rows: Sequence[RawRow]) -> Records:
        """Return rows that were read as a batch."""
        return Records(list(map(self.record_of, rows)))

    def column_types(self) -> "ColumnTypes":
        """Read the table to its end, and return the types of its columns."""
        from bertscore_onnx.tables.arrow import ColumnTypes  # needs pyarrow

        known = None
        if self.names is not None:
            known = self.schema
        types = ColumnTypes(self.place, known)
        for records in _batches_of_records(self):
            types.add(records)
        return types

    def batches(
        self, names: Collection[str], start: int, stop: int
    ) -> Iterator[tuple[int, Records]]:
        """Yield batches of some columns with the number of their first row.

        All rows from `start` up to `stop` are among them.
        """
        first = 0
        for records in _batches_of_records(self):
            yield first, Records(records)
            first += len(records)
            if first >= stop:
                return


class HeadedReader(TableReader):
    """A table whose rows all have its columns."""

    names: list[str]

    @abstractmethod
    def values(
        self, names: Sequence[str], *, keeps_rows: bool = False
    ) -> Iterator[tuple[str, Sequence[object] | UnreadableRow, RawRow]]:
        """Yield the place of each row, its values in some columns, and the row if it is kept."""

    def records(self) -> Iterator[PlacedRecord]:
        """Yield the rows."""
        check_header(self.names, self.place)
        for place, values, _ in self.values(self.names):
            if isinstance(values, UnreadableRow):
                yield place, values
            else:
                yield place, dict(zip(self.names, values, strict=True))

    def rows(
        self, columns: Iterable[TextColumn], *, keeps_rows: bool = True
    ) -> Iterator[tuple[list[str], RawRow]]:
        """Yield the texts of some columns, and the rows."""
        found = self.find(columns)
        names = list(map(attrgetter("name"), found))
        for place, values, row in self.values(names, keeps_rows=keeps_rows):
            yield texts_of_row(found, values, place), row


def open_table(
    source: Source,
    table_format: str,
    dialect: Dialect = DEFAULT_DIALECT,
    *,
    added: Collection[str] = (),
    keep_faults: bool = False,
) -> TableReader:
    """Open a table.

    Some formats need a seekable source. InputError is raised if the table has a column
    that is to be added.
    """
    reader_class = FORMATS[table_format].load_reader()
    reader: TableReader = reader_class(source, table_format, dialect, keep_faults)
    reader.added = added
    check_free(reader.names or (), added, reader.place)
    return reader


MAX_ROWS = 256
"""The most rows of a batch; batches are small, since a row may be large."""

MAX_BATCH_SIZE = 8_000_000
"""About how many characters, or bytes in Parquet, a batch may have, if it has more than one row."""


def _batches_of_records(table: TableReader) -> Iterator[list[Record]]:
    """Yield the rows in batches of `MAX_ROWS`, or of about `MAX_BATCH_SIZE` characters."""
    batch: list[Record] = []
    start = table.size
    for _, record in table.records():
        batch.append(record)
        if len(batch) == MAX_ROWS or table.size - start >= MAX_BATCH_SIZE:
            yield batch
            batch = []
            start = table.size
    if batch:
        yield batch


def check_header(names: Sequence[str], place: str) -> None:
    """Raise InputError for a column that occurs again.

    A row by columns has one value of each.
    """
    for name, number in Counter(names).items():
        if number > 1:
            raise InputError(
                f"{place}: there are {number} columns {name!r}; expected one. Rename them."
            )
