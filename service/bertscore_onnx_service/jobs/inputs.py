"""The input files of a job: their columns and rows before anything is scored, and batches of their rows."""

import glob
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bertscore_onnx.bundle.store import FileStamp, file_digest, file_stamp
from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.arrow import JsonTypes, array_of
from bertscore_onnx.tables.columns import (
    CANDIDATE_COLUMNS,
    REFERENCE_COLUMNS,
    Column,
    Errors,
    UnreadableRow,
    check_free,
    context_column,
)
from bertscore_onnx.tables.readers import (
    MAX_BATCH_SIZE,
    MAX_ROWS,
    Record,
    TableReader,
    check_row_sizes,
    find_texts,
    open_parquet,
    open_table,
    parquet_errors,
    read_batches,
)
from bertscore_onnx.tables.sources import Dialect, InputFormat, Source, format_of, open_source, refuse_other_formats

if TYPE_CHECKING:
    import pyarrow

_KEPT = Argument("columns", option="--keep NAME...")
"""The argument that names the columns to keep."""


def find_inputs(names: Sequence[str]) -> list[str]:
    """Return the files in the order of the names; the files of a pattern or a folder in the order of theirs.

    In patterns `**` stands for folders. Folders stand for the Parquet, JSON lines, CSV and TSV files in them whose
    names do not begin with `.` or `_`. InputError is raised for a name without files, and for a file that occurs twice.
    """
    if not names:
        raise InputError("There are no inputs; expected one file at least.")
    files = [file for name in names for file in _files_of(name)]
    first: dict[str, str] = {}
    for file in files:
        earlier = first.setdefault(os.path.realpath(file), file)
        if earlier is not file:
            raise InputError(f"{file} is given twice, the first time as {earlier}. Give each file once.")
    return files


def _files_of(name: str) -> list[str]:
    if "://" in name:
        raise InputError(
            f"{name} is not a path on this machine. Mount it; or use `score_dataset` of "
            "bertscore_onnx_service.jobs.ray or `score_dataframe` of bertscore_onnx_service.jobs.spark, whose engines "
            "read such URLs themselves."
        )
    if os.path.isdir(name):
        files = [str(file) for file in sorted(Path(name).iterdir()) if file.name[0] not in "._" and file.is_file()]
        files = [file for file in files if format_of(file) != "text"]
        if not files:
            raise InputError(f"The folder {name} has no file that ends in .parquet, .jsonl, .csv or .tsv.")
        return files
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    files = sorted(file for file in glob.glob(name, recursive=True) if not os.path.isdir(file))  # noqa: PTH207 -- absolute too
    if not files:
        raise InputError(f"No file matches the pattern {name}; expected at least one.")
    return files


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a job that determine its output, beside the inputs and the signature of the scores."""

    candidate: str | None
    """The column of candidates; None for the one with a usual name."""

    reference: str | tuple[str, ...] | None
    """The column of references, or several; None for the one with a usual name."""

    context: str | None
    """The column of contexts, if there is one."""

    columns: tuple[str, ...] | None
    """The columns to keep beside the scores; None for all."""

    names: tuple[str, ...]
    """The columns of scores."""

    errors: Errors
    part_rows: int | None
    """The rows of a part; None as long as they are to be decided."""

    has_header: bool
    has_quotes: bool
    delimiter: str | None

    def text_columns(self) -> list[Column]:
        """Return the columns of candidates, of references, and of contexts if there are any."""
        names = (self.reference,) if isinstance(self.reference, str) else self.reference
        references = [(name,) for name in names] if names else [REFERENCE_COLUMNS]
        candidates = (self.candidate,) if self.candidate else CANDIDATE_COLUMNS
        return [
            Column(candidates, _role("candidate")),
            *(Column(names, _role("reference"), may_hold_lists=True) for names in references),
            *([] if self.context is None else [context_column(self.context, _role("context"))]),
        ]

    def kept_columns(self, names: Sequence[str], added: Sequence[str], title: str) -> list[str]:
        """Return the columns to keep; raise InputError if one is missing, there twice, or called like an added one."""
        if self.columns is None:
            kept = list(names)
        else:
            kept = [Column((name,), _KEPT).find(names, title) for name in self.columns]
        twice = [name for name in kept if kept.count(name) > 1]
        if twice:
            raise InputError(f"{title}: there are several columns {twice[0]!r}. Name those to keep in ", _KEPT, ".")
        check_free(kept, added, title, ("name the columns to keep in ", _KEPT))
        return kept


def _role(name: str) -> Argument:
    """Return the argument that names a column of texts."""
    return Argument(name, option=f"--columns {name}=NAME")


@dataclass(frozen=True, slots=True)
class InputTable:
    """An input file that was inspected."""

    name: str
    """The name as it was given, for messages and the manifest."""

    path: str
    """Its absolute path."""

    format: InputFormat
    stamp: FileStamp
    """Its stamp before it was first read: all rows are read from a file with this stamp."""

    sha256: str
    rows: int
    texts: tuple[str, ...]
    """The columns of the texts: of candidates, of references, and of contexts if there are any."""

    schema: "pyarrow.Schema"
    """The schema of the columns to keep."""

    def references(self, settings: Settings) -> tuple[str, ...]:
        """Return the columns of references."""
        return self.texts[1:] if settings.context is None else self.texts[1:-1]


def inspect_table(name: str, settings: Settings, added: Sequence[str]) -> InputTable:
    """Inspect a file before its rows are scored: a text file is read to its end, of Parquet the footer.

    InputError is raised if it cannot be read, or if a column is missing, is not of texts, or is called like one of the
    columns that are added.
    """
    refuse_other_formats(name)
    path, kind = os.path.abspath(name), format_of(name)
    if kind == "text":
        raise InputError(
            f"{name}: expected a name that ends in .parquet, .jsonl, .csv or .tsv, the last three also with .gz."
        )
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{name} is a pipe or a device, and inputs are read several times. Write it to a file.")
        stamp, sha256 = file_stamp(path), file_digest(Path(path))
    except OSError as error:
        raise InputError(f"Cannot read {name!r} ({error.strerror}). Check the name and its permissions.") from error
    if kind == "parquet":
        import pyarrow

        with open_source(path, title=name) as source, parquet_errors(lambda: name), open_parquet(source.raw()) as file:
            rows, schema = file.metadata.num_rows, file.schema_arrow
        texts = find_texts(schema, settings.text_columns(), name)
        kept = settings.kept_columns(schema.names, added, name)
        schema = pyarrow.schema([schema.field(column) for column in kept])
    else:
        with open_source(path, title=name) as source:
            rows, texts, schema = _inspect_rows(_text_table(source, kind, settings), settings, added, name)
    return InputTable(name, path, kind, stamp, sha256, rows, tuple(texts), schema)


def _text_table(source: Source, kind: InputFormat, settings: Settings) -> TableReader:
    dialect = Dialect(settings.has_header, settings.has_quotes, settings.delimiter)
    return open_table(source, kind, dialect, keep_faults=settings.errors == "null")


def _inspect_rows(
    table: TableReader, settings: Settings, added: Sequence[str], title: str
) -> tuple[int, list[str], "pyarrow.Schema"]:
    """Read a text file to its end, and return its number of rows, the columns of texts, and the schema to keep.

    In CSV and TSV all columns are strings. In JSON lines types follow from the values, and a file without rows has
    just the columns of texts.
    """
    import pyarrow

    columns = settings.text_columns()
    if table.names is not None:
        texts = [column.find(table.names, table.place, table.advice) for column in columns]
        kept = settings.kept_columns(table.names, added, title)
        schema = pyarrow.schema([(name, pyarrow.string()) for name in kept])
        return sum(map(len, read_batches(table, MAX_ROWS, MAX_BATCH_SIZE))), texts, schema
    rows, types = 0, JsonTypes(title)
    for records in read_batches(table, MAX_ROWS, MAX_BATCH_SIZE):
        rows += len(records)
        types.add(records)
    names = types.names or [column.names[0] for column in columns]
    texts = [column.find(names, title) for column in columns]
    kept = settings.kept_columns(names, added, title) if types.names else names
    remedy = ("Name the columns to keep in ", _KEPT, ", without this one, or make its values alike.")
    fields = [(name, types.of_texts(name) if name in texts else types.of(name, remedy)) for name in kept]
    return rows, texts, pyarrow.schema(fields)


def check_unchanged(table: InputTable) -> None:
    """Raise InputError if a file is not the inspected file."""
    try:
        is_changed = file_stamp(table.path) != table.stamp
    except OSError:
        is_changed = True
    if is_changed:
        raise InputError(
            f"{table.name} has changed since the job began. The parts that are complete have the scores of the file "
            "as it was: restore it and start the job again to resume it, or score the new file into another folder."
        )


# Batches of rows: where they are cut depends on the file alone.

RawBatch = Any
"""Consecutive rows: a `pyarrow.RecordBatch`, or a list of records; both have a length and slices."""


def read_rows(table: InputTable, settings: Settings, start: int, stop: int) -> Iterator[tuple[int, RawBatch]]:
    """Yield batches with the number of their first row, among them all rows from `start` up to `stop`.

    InputError is raised if the file is damaged, or not the inspected file.
    """
    check_unchanged(table)
    try:
        with open_source(table.path, title=table.name) as source:
            if table.format == "parquet":
                yield from _read_parquet(source.raw(), table, start, stop)
                return
            first = 0
            for records in read_batches(_text_table(source, table.format, settings), MAX_ROWS, MAX_BATCH_SIZE):
                yield first, records
                first += len(records)
                if first >= stop:
                    return
    except InputError:
        check_unchanged(table)  # a file that is being written may be damaged in any way
        raise


def _read_parquet(opened: BufferedIOBase, table: InputTable, start: int, stop: int) -> Iterator[tuple[int, RawBatch]]:
    """Yield the batches of the row groups with the rows; each group begins a batch."""
    names = list(dict.fromkeys([*table.schema.names, *table.texts]))
    first = 0
    with parquet_errors(lambda: table.name), open_parquet(opened) as file:
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            end = first + group.num_rows
            if first < stop and start < end:
                size = max(1, min(MAX_ROWS, MAX_BATCH_SIZE * group.num_rows // max(1, group.total_byte_size)))
                for batch in file.iter_batches(size, row_groups=[number], columns=names, use_threads=False):
                    check_row_sizes(batch, table.name, first)
                    yield first, batch
                    first += len(batch)
            first = end


def values_of(batch: RawBatch, name: str) -> list[object]:
    """Return the values of a column, (rows,): None where a record lacks it, and a row that cannot be read itself."""
    if isinstance(batch, list):
        return [record if isinstance(record, UnreadableRow) else record.get(name) for record in batch]
    column = batch.column(name)
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_value_of(value) for value in column]


def _value_of(value: "pyarrow.Scalar") -> object:
    """Return a value of Parquet."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return UnreadableRow("it is not UTF-8. Write the text again.")


def kept_batch(batch: RawBatch, table: InputTable) -> "pyarrow.RecordBatch":
    """Return the columns to keep, in the types of the table; raise InputError if a value does not have its type."""
    import pyarrow

    if not isinstance(batch, list):
        columns = [batch.column(name) for name in table.schema.names]
    elif not batch:
        columns = [pyarrow.nulls(0, field.type) for field in table.schema]
    else:
        columns = [_array(batch, field, table) for field in table.schema]
    return pyarrow.RecordBatch.from_arrays(columns, schema=table.schema)


def _array(records: Sequence[Record], field: "pyarrow.Field", table: InputTable) -> "pyarrow.Array":
    import pyarrow

    values = [record.get(field.name) for record in records]
    if field.name in table.texts:
        is_list = pyarrow.types.is_list(field.type)
        values = [_texts_as(value, is_list=is_list) for value in values]
    return array_of(values, field, table.name)


def _texts_as(value: object, *, is_list: bool) -> str | list[str | None] | None:
    """Return the text, or the texts, of a value in the form of its column; other values become JSON in a text."""
    if value is None:
        return None
    if is_list:
        return [None if item is None else _text_of(item) for item in (value if isinstance(value, list) else [value])]
    return _text_of(value)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
