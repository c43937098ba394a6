"""Rows of CSV, TSV and JSON lines: the same texts that `score` reads of them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bertscore_onnx.distributed.job.rows.input_table import InputTable, RowBatch, TableSettings
from bertscore_onnx.distributed.job.rows.json_types import JsonTypes, texts_as
from bertscore_onnx.distributed.job.rows.records import Record, Records, TextFormat
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.sources import open_source

if TYPE_CHECKING:
    import pyarrow


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
