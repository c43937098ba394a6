"""Reads a whole table: TSV, CSV, JSON lines or Parquet, each but Parquet perhaps packed with gzip."""

from pathlib import Path
from typing import TYPE_CHECKING

from bertscore_onnx.cli.inputs.judgements.table import Table
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.readers import Dialect, read_rows
from bertscore_onnx.tables.sources import InputFormat, Source, format_of, open_source

if TYPE_CHECKING:
    import pyarrow

Record = tuple[str, dict[str, object]]
"""Where a row stands, and its values by column."""


def read_table(
    name: str, input_format: InputFormat | None = None, *, has_header: bool = True, has_quotes: bool | None = None
) -> Table:
    """Read a table to its end.

    Args:
        name: the file, or `-` for standard input.
        input_format: None for the one that the end of the name says, before `.gz`.
        has_header: whether the first line of TSV and CSV has the names; else they are 1, 2, and so on.
        has_quotes: whether a field of TSV and CSV may be in double quotes; None to find out. They are characters like
            others in TSV that cannot be read with quotes, or has a row in each line only without.

    Raises:
        InputError: it cannot be read, has no rows, or is not what its format says.
        MissingExtraError: it is Parquet, and pyarrow is not installed.
    """
    if Path(name).is_dir():
        raise InputError(f"{name!r} is a folder; expected a table, which is a file.")
    chosen = input_format or format_of(name)
    if chosen == "text":
        raise InputError(
            f"{name!r} says no format of a table. Name it .tsv, .csv, .jsonl or .parquet, perhaps with .gz after that, "
            "or add --input-format."
        )
    with open_source(name, to_read_again=True) as source:
        match chosen:
            case "tsv":
                names, rows = _tsv(source, has_header, has_quotes)
            case "csv":
                names, rows = _delimited(source, Dialect(",", has_header, has_quotes is not False))
            case "jsonl":
                names, rows = _json_lines(source)
            case "parquet":
                names, rows = _parquet(source)
    if not rows:
        raise InputError(f"{source.title} has no rows; expected one for each judgement.")
    return Table(source.title, names, rows)


def _tsv(source: Source, has_header: bool, has_quotes: bool | None) -> tuple[list[str], list[Record]]:
    quoted, plain = Dialect("\t", has_header), Dialect("\t", has_header, has_quotes=False)
    if has_quotes is not None:
        return _delimited(source, quoted if has_quotes else plain)
    try:
        names, rows = _delimited(source, plain)
    except InputError:
        return _delimited(source, quoted)
    try:
        as_quoted = _delimited(source, quoted)
    except InputError:
        return names, rows
    return as_quoted if len(as_quoted[1]) == len(rows) else (names, rows)


def _delimited(source: Source, dialect: Dialect) -> tuple[list[str], list[Record]]:
    _, names, rows = read_rows(source, dialect)
    return names, [(place, dict(zip(names, fields, strict=True))) for place, fields in rows]


def _json_lines(source: Source) -> tuple[list[str], list[Record]]:
    """Return the names that any object has, and the objects."""
    from bertscore_onnx.tables.readers import read_objects

    rows = list(read_objects(source))
    return [*dict.fromkeys(name for _, fields in rows for name in fields)], rows


def _parquet(source: Source) -> tuple[list[str], list[Record]]:
    from bertscore_onnx.tables.readers import read_values

    names: list[str] = []

    def choose(schema: "pyarrow.Schema") -> list[str]:
        names.extend(schema.names)
        return names

    return names, [(place, dict(zip(names, values, strict=True))) for place, values in read_values(source, choose)]
