"""Looks at an input file of any format, and reads its rows."""

import os
from collections.abc import Iterator, Sequence

from bertscore_onnx.distributed.job.rows.input_table import InputTable, RowBatch, TableSettings
from bertscore_onnx.distributed.job.rows.parquet import inspect_parquet, read_parquet_rows
from bertscore_onnx.distributed.job.rows.text_files import inspect_text_file, read_text_file
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.sources import format_of


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


def read_rows(table: InputTable, settings: TableSettings, start: int, stop: int) -> Iterator[RowBatch]:
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
