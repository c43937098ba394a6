"""What is known of an input file before its rows are scored, and a batch of its rows."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.readers import Dialect, check_type, read_objects, read_rows, unreadable
from bertscore_onnx.tables.sources import Source, format_of, open_source

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet


MAX_ROWS = 256
"""The most rows of a batch; batches are small, since a row may be large."""

MAX_BATCH_BYTES = 8_000_000
"""About how large a batch may be, if it has more than one row."""


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Which columns to take of every input file, and how text files are written."""

    candidate: str | None = None
    """The column of candidates; None for `candidate`."""

    reference: str | None = None
    """The column of references; None for `reference` or `references`."""

    columns: tuple[str, ...] | None = None
    """The columns to keep beside the scores; None for all."""

    has_header: bool = True
    has_quotes: bool = True
    """As `delimited.Dialect` has them, for CSV and TSV."""

    def text_columns(self) -> tuple[Column, Column]:
        """Return the columns of candidates and of references."""
        references = (self.reference,) if self.reference else ("reference", "references")
        return (
            Column((self.candidate or "candidate",), "`candidate`"),
            Column(references, "`reference`", may_hold_lists=True),
        )

    def find(self, names: Sequence[str], place: str) -> tuple[str, str]:
        """Return the names of the two columns of texts among those of a file; an InputError where one is missing."""
        candidate, reference = self.text_columns()
        return candidate.find(names, place), reference.find(names, place)

    def kept(self, names: Sequence[str], taken: Sequence[str], title: str) -> list[str]:
        """Return the columns to keep among those of a file.

        Args:
            names: the columns of the file.
            taken: the names of the columns that scores are put into.
            title: the file.

        Raises:
            InputError: one is missing, there more than once, or has the name of one of scores.
        """
        if self.columns is None:
            kept = list(names)
        else:
            kept = [Column((name,), "`columns`").find(names, title) for name in self.columns]
        twice = [name for name in kept if kept.count(name) > 1]
        if twice:
            raise InputError(f"{title}: there are several columns {twice[0]!r}. Name those to keep in `columns`.")
        clashing = [name for name in kept if name in taken]
        if clashing:
            raise InputError(
                f"{title}: there is a column {clashing[0]!r} already, and scores would go there. Rename it, or name "
                "the columns to keep in `columns`."
            )
        return kept


@dataclass(frozen=True, slots=True)
class InputTable:
    """An input file whose columns and rows are known."""

    name: str
    """As it was given, which messages call it by."""

    path: str
    """Its absolute path."""

    format: Literal["csv", "tsv", "jsonl", "parquet"]
    size: int
    """Bytes."""

    rows: int
    candidate: str
    reference: str
    """The columns of the texts."""

    schema: "pyarrow.Schema"
    """That of the columns to keep."""


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Consecutive rows of a file."""

    first: int
    """The number of its first row, from 0."""

    kept: "pyarrow.RecordBatch"
    """The columns to keep, (rows,)."""

    candidates: list[object]
    references: list[object]
    """The values of the columns of texts, (rows,), which may be something else than texts."""

    @classmethod
    def without_rows(cls, table: InputTable) -> "RowBatch":
        """Return a batch with the columns of a file."""
        import pyarrow

        columns = [pyarrow.nulls(0, field.type) for field in table.schema]
        return cls(0, pyarrow.RecordBatch.from_arrays(columns, schema=table.schema), [], [])

    @property
    def stop(self) -> int:
        """The number after that of its last row."""
        return self.first + len(self.candidates)

    def between(self, start: int, stop: int) -> "RowBatch":
        """Return those of its rows that are from one number up to another."""
        begin, end = max(start, self.first) - self.first, min(stop, self.stop) - self.first
        return RowBatch(
            self.first + begin,
            self.kept.slice(begin, end - begin),
            self.candidates[begin:end],
            self.references[begin:end],
        )


# Rows of CSV, TSV and JSON lines, as values by the names of their columns.


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


# The types of the fields of JSON lines, which nothing says but their values.


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


# Rows of Parquet files.


def inspect_parquet(
    name: str, path: str, settings: TableSettings, taken: Sequence[str]
) -> tuple[int, str, str, "pyarrow.Schema"]:
    """Return the number of rows, the columns of candidates and references, and the schema of those to keep.

    Args:
        name: the file, for a message.
        path: where it is.
        settings: which columns.
        taken: the columns that scores are put into.

    Raises:
        InputError: it is damaged; a column is missing, or is not of texts.
    """
    import pyarrow

    with _opened(name, path) as file:
        schema = file.schema_arrow
        found = settings.find(schema.names, name)
        for column, there in zip(settings.text_columns(), found, strict=True):
            check_type(schema.field(there).type, column, there, name)
        kept = settings.kept(schema.names, taken, name)
        return file.metadata.num_rows, *found, pyarrow.schema([schema.field(one) for one in kept])


def read_parquet_rows(table: InputTable, start: int, stop: int) -> Iterator[RowBatch]:
    """Yield batches of rows, which are cut alike whatever rows are asked for, and begin with each row group.

    Args:
        table: the file.
        start, stop: the rows that are needed, from one number up to another; some before and after them come too.

    Raises:
        InputError: the file is damaged.
    """
    import pyarrow

    names = list(dict.fromkeys([*table.schema.names, table.candidate, table.reference]))
    first = 0
    with _opened(table.name, table.path) as file:
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            end = first + group.num_rows
            if first < stop and start < end:
                size = max(1, min(MAX_ROWS, MAX_BATCH_BYTES * group.num_rows // max(1, group.total_byte_size)))
                for batch in file.iter_batches(size, row_groups=[number], columns=names, use_threads=False):
                    kept = [batch.column(name) for name in table.schema.names]
                    yield RowBatch(
                        first,
                        pyarrow.RecordBatch.from_arrays(kept, schema=table.schema),
                        batch.column(table.candidate).to_pylist(),
                        batch.column(table.reference).to_pylist(),
                    )
                    first += len(batch)
            first = end


@contextmanager
def _opened(name: str, path: str) -> Iterator["parquet.ParquetFile"]:
    import pyarrow
    from pyarrow import parquet

    try:
        # without these two settings it would read a whole row group at a time
        with parquet.ParquetFile(path, buffer_size=1_000_000, pre_buffer=False) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(name, error) from error


# Rows of CSV, TSV and JSON lines: the same texts that `score` reads of them.


def inspect_text_file(
    name: str, path: str, text_format: TextFormat, settings: TableSettings, taken: Sequence[str]
) -> tuple[int, str, str, "pyarrow.Schema"]:
    """Read a file to its end; as `inspect_parquet`, with the errors of `Records`.

    In CSV and TSV all columns are strings. In JSON lines types are those of the values, and a file without rows has
    just the columns of texts.
    """
    import pyarrow

    with open_source(path, title=name) as source:
        records = Records(source, text_format, settings)
        if records.names is not None:
            found = settings.find(records.names, records.place)
            kept = settings.kept(records.names, taken, name)
            rows = sum(map(len, records.batches()))
            return rows, *found, pyarrow.schema([(one, pyarrow.string()) for one in kept])
        rows, types = 0, JsonTypes(name)
        for batch in records.batches():
            rows += len(batch)
            types.add(batch)
    names = types.names if rows else [column.names[0] for column in settings.text_columns()]
    found = settings.find(names, name)
    kept = settings.kept(names, taken, name) if rows else names
    fields = [(one, types.of_texts(one) if one in found else types.of(one)) for one in kept]
    return rows, *found, pyarrow.schema(fields)


def read_text_file(
    table: InputTable, text_format: TextFormat, settings: TableSettings, stop: int
) -> Iterator[RowBatch]:
    """Yield batches of rows from the first on, up to one that is past `stop`.

    Raises:
        InputError: a row cannot be read as the format says; says the line.
    """
    first = 0
    with open_source(table.path, title=table.name) as source:
        for records in Records(source, text_format, settings).batches():
            yield RowBatch(
                first,
                _kept(table, records),
                [record.get(table.candidate) for record in records],
                [record.get(table.reference) for record in records],
            )
            first += len(records)
            if first >= stop:
                return


def _kept(table: InputTable, records: Sequence[Record]) -> "pyarrow.RecordBatch":
    import pyarrow

    columns = []
    for field in table.schema:
        values = [record.get(field.name) for record in records]
        if field.name in (table.candidate, table.reference):
            is_list = pyarrow.types.is_list(field.type)
            values = [texts_as(value, is_list=is_list) for value in values]
        try:
            columns.append(pyarrow.array(values, field.type))
        except (pyarrow.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(
                f"{table.name}: the column {field.name!r} cannot be kept as {field.type} ({error}). Name the columns "
                "to keep in `columns`, without this one."
            ) from error
    return pyarrow.RecordBatch.from_arrays(columns, schema=table.schema)


# Looks at an input file of any format, and reads its rows.


def inspect_table(name: str, settings: TableSettings, taken: Sequence[str]) -> InputTable:
    """Return what is known of a file before its rows are scored; of Parquet that stands at its end.

    Args:
        name: the file.
        settings: which columns to take.
        taken: the columns that scores are put into.

    Raises:
        InputError: it cannot be read; or a column is missing, or cannot be taken.
    """
    path, kind = os.path.abspath(name), format_of(name)
    if kind == "text":
        raise InputError(
            f"{name}: expected a name that ends in .parquet, .jsonl, .csv or .tsv, the last three also with .gz."
        )
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise InputError(f"Cannot read {name!r} ({error.strerror}). Check the name and its permissions.") from error
    if kind == "parquet":
        rows, candidate, reference, schema = inspect_parquet(name, path, settings, taken)
    else:
        rows, candidate, reference, schema = inspect_text_file(name, path, kind, settings, taken)
    return InputTable(name, path, kind, size, rows, candidate, reference, schema)


def read_part_rows(table: InputTable, settings: TableSettings, start: int, stop: int) -> Iterator[RowBatch]:
    """Yield the rows from one number up to another; where a batch is cut does not depend on these.

    Args:
        table: the file.
        settings: those it was inspected with.
        start, stop: the rows that are needed; some before and after them may come too.

    Raises:
        InputError: the file is damaged, or not the one that was inspected.
    """
    if os.path.isfile(table.path) and os.stat(table.path).st_size != table.size:
        raise changed(table)
    if table.format == "parquet":
        return read_parquet_rows(table, start, stop)
    return read_text_file(table, table.format, settings, stop)


def changed(table: InputTable) -> InputError:
    """Return the error that says that a file was written again while its rows were scored."""
    return InputError(f"{table.name} has changed since the job began. Leave input files as they are while it runs.")
