"""Rows of Parquet files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bertscore_onnx.distributed.job.rows.input_table import (
    MAX_BATCH_BYTES,
    MAX_ROWS,
    InputTable,
    RowBatch,
    TableSettings,
)
from bertscore_onnx.tables.readers import check_type, unreadable

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import parquet


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
