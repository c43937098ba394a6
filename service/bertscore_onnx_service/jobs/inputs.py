"""Input files of a job.

`find_inputs` finds the files, `inspect_table` looks at columns and rows before anything is scored,
and `read_rows` yields batches of rows.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bertscore_onnx.bundle.store import FileStamp, file_digest, file_stamp
from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.columns import TextColumn
from bertscore_onnx.tables.formats import TEXT, Dialect, format_of, refuse_other_formats
from bertscore_onnx.tables.readers import Records, TableReader, open_table
from bertscore_onnx.tables.row_reader import TextColumns, text_columns
from bertscore_onnx.tables.score_columns import Errors, check_free
from bertscore_onnx.tables.sources import Source, open_source, refuse_datasets

if TYPE_CHECKING:
    import pyarrow

_KEPT = Argument("columns", option="--keep NAME...")
"""The argument that names the columns to keep."""

_ENDINGS = ".parquet, .jsonl, .csv or .tsv"
"""The endings of the names of inputs, for messages."""


def find_inputs(names: Sequence[str]) -> list[str]:
    """Return the files that the names stand for, in their order.

    The files of a pattern or a folder are in the order of their names. In patterns `**` stands for
    folders. Folders stand for the Parquet, JSON lines, CSV and TSV files in them whose names do not
    begin with `.` or `_`.

    InputError is raised for a name without files, and for a file that occurs twice.
    """
    if not names:
        raise InputError("There are no inputs; expected one file at least.")
    files: list[str] = []
    for name in names:
        files += _files_of(name)

    first_names: dict[str, str] = {}
    for file in files:
        first = first_names.setdefault(os.path.realpath(file), file)
        if first is not file:
            error = f"{file} is given twice, the first time as {first}. Give each file once."
            raise InputError(error)
    return files


def _files_of(name: str) -> list[str]:
    """Return the files of a folder or of a pattern, or the file itself."""
    if "://" in name:
        raise InputError(
            f"{name} is not a path on this machine. Mount it; or use `score_dataset` of "
            "bertscore_onnx_service.jobs.ray or `score_dataframe` of "
            "bertscore_onnx_service.jobs.spark, whose engines read such URLs themselves."
        )
    if os.path.isdir(name):
        return _files_in(name)
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]

    paths = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 -- absolute too
    files = [path for path in paths if not os.path.isdir(path)]
    if not files:
        raise InputError(f"No file matches the pattern {name}; expected at least one.")
    return files


def _files_in(folder: str) -> list[str]:
    """Return the files of a folder that are tables and not hidden."""
    refuse_datasets(Path(folder))
    files = []
    for path in sorted(Path(folder).iterdir()):
        is_hidden = path.name[0] in "._"
        if not is_hidden and path.is_file() and format_of(str(path)) != "text":
            files.append(str(path))
    if not files:
        raise InputError(f"The folder {folder} has no file that ends in {_ENDINGS}.")
    return files


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a job that determine its output, beside inputs and signature."""

    candidate: str | None
    """The column of candidates; None for the one with a usual name."""

    reference: str | tuple[str, ...] | None
    """The column of references, or several; None for one with a usual name."""

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

    def text_columns(self) -> TextColumns:
        """Return the columns of the texts."""
        return text_columns(self.candidate, self.reference, self.context, _role)

    def kept_columns(self, names: Sequence[str], added: Sequence[str], title: str) -> list[str]:
        """Return the columns to keep.

        InputError is raised if one is missing, there twice, or called like an added one.
        """
        kept = list(names)
        if self.columns is not None:
            kept = [TextColumn((name,), _KEPT).find(names, title) for name in self.columns]
        for name in kept:
            if kept.count(name) > 1:
                several = f"{title}: there are several columns {name!r}. "
                raise InputError(f"{several}Name those to keep in ", _KEPT, ".")
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

    format: str
    stamp: FileStamp
    """Its stamp before it was first read.

    All rows are read from a file with this stamp.
    """

    sha256: str
    rows: int
    texts: TextColumns

    schema: "pyarrow.Schema"
    """The schema of the columns to keep."""


def inspect_table(name: str, settings: Settings, added: Sequence[str]) -> InputTable:
    """Inspect a file before its rows are scored.

    A text file is read to its end, of Parquet the footer. InputError is raised if it cannot be
    read, or if a column is missing, is not of texts, or is called like one of the columns that are
    added.
    """
    refuse_other_formats(name)
    path = os.path.abspath(name)
    kind = format_of(name)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            advice = "inputs are read several times. Write it to a file."
            raise InputError(f"{name} is a pipe or a device, and {advice}")
        stamp = file_stamp(path)
        sha256 = file_digest(Path(path))
    except OSError as error:
        reason = f"Cannot read {name!r} ({error.strerror})."
        raise InputError(f"{reason} Check the name and its permissions.") from error

    with open_source(path, title=name) as source:
        if kind == TEXT:
            source.decompressed()  # which refuses binary files
            endings = f"{_ENDINGS}, the last three also with .gz"
            raise InputError(f"{name}: expected a name that ends in {endings}.")
        table = _open(source, kind, settings)
        rows, texts, schema = _inspect(table, settings, added, name)
    return InputTable(name, path, kind, stamp, sha256, rows, texts, schema)


def _open(source: Source, kind: str, settings: Settings) -> TableReader:
    """Open an input as a table."""
    dialect = Dialect(settings.has_header, settings.has_quotes, settings.delimiter)
    return open_table(source, kind, dialect, keep_faults=settings.errors == "null")


def _inspect(
    table: TableReader, settings: Settings, added: Sequence[str], title: str
) -> tuple[int, TextColumns, "pyarrow.Schema"]:
    """Return the number of rows, the columns of texts, and the schema to keep.

    A table whose rows have their own columns has those of texts alone if it has no rows.
    """
    columns = settings.text_columns()
    if table.names is not None:
        texts = columns.find(table.names, table.place, table.advice)
        table.check_types(texts)
        kept = settings.kept_columns(table.names, added, title)
    types = table.column_types()
    if table.names is None:
        kept = types.names or [column.possible_names[0] for column in columns]
        texts = columns.find(kept, title)
        if types.names:
            kept = settings.kept_columns(kept, added, title)
    names_of_texts = [column.name for column in texts]
    remedy = (
        "Name the columns to keep in ",
        _KEPT,
        ", without this one, or make its values alike.",
    )
    return types.num_rows, texts, types.schema(kept, names_of_texts, remedy)


def check_unchanged(table: InputTable) -> None:
    """Raise InputError if a file is not the inspected file."""
    try:
        is_changed = file_stamp(table.path) != table.stamp
    except OSError:
        is_changed = True
    if is_changed:
        raise InputError(
            f"{table.name} has changed since the job began. The parts that are complete have the "
            "scores of the file as it was: restore it and start the job again to resume it, or "
            "score the new file into another folder."
        )


# Batches of rows: where they are cut depends on the file alone.


def read_rows(
    table: InputTable,
    settings: Settings,
    start: int,
    stop: int,
) -> Iterator[tuple[int, Records]]:
    """Yield batches with the number of their first row.

    All rows from `start` up to `stop` are among them. InputError is raised if the file is damaged,
    or not the inspected file.
    """
    check_unchanged(table)
    try:
        with open_source(table.path, title=table.name) as source:
            names_of_texts = [column.name for column in table.texts]
            names = dict.fromkeys([*table.schema.names, *names_of_texts])
            yield from _open(source, table.format, settings).batches(names, start, stop)
    except InputError:
        check_unchanged(table)  # a file that is being written may be damaged in any way
        raise


def kept_batch(batch: Records, table: InputTable) -> "pyarrow.RecordBatch":
    """Return the columns to keep, in the types of the table.

    InputError is raised if a value does not have its type.
    """
    import pyarrow

    columns = batch.arrays(table.schema, table.name)
    return pyarrow.RecordBatch.from_arrays(columns, schema=table.schema)
