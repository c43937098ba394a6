"""A file whose rows are texts, in any of the formats."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.batches import Column
from bertscore_onnx.tables.sources import InputFormat, Source, open_source, read_lines


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is to be read, and how."""

    name: str
    """Its name, or `-` for standard input."""

    format: InputFormat = "text"
    is_format_said: bool = False
    """Whether the format was asked for; else it is that of the name, and text that looks like a table is refused."""

    columns: tuple[Column, ...] = ()
    """The columns to take texts from; none for text, of which each line is one."""

    has_header: bool = True
    has_quotes: bool = True
    """As `delimited.Dialect` has them, for TSV and CSV."""


class OpenFile:
    """An input file while it is open."""

    def __init__(self, file: InputFile, source: Source) -> None:
        """Take what is to be read."""
        self.title = source.title
        """What to call it in a message."""
        self.unit = "line" if file.format == "text" else "row"
        """What its texts stand in."""
        self.is_rereadable = source.is_rereadable
        """Whether it can be read more than once."""
        self._file = file
        self._source = source

    def rows(self) -> Iterator[list[str]]:
        """Yield the texts of each row, from the first row on each time, where it `is_rereadable`.

        Raises:
            InputError: there are none, or what is there cannot be read as the format says.
        """
        row = None
        for row in self._rows():
            yield row
        if row is None:
            raise InputError(f"{self.title} has no rows; expected one for each text.")

    def count(self) -> int:
        """Read all rows and return their number; errors are those of `rows`."""
        return sum(1 for _ in self.rows())

    def _rows(self) -> Iterator[list[str]]:
        file, source = self._file, self._source
        match file.format:  # each has its reader imported here, for they cost start-up time
            case "text":
                return ([line] for line in (read_lines(source) if file.is_format_said else _no_json(source)))
            case "tsv" | "csv":
                from bertscore_onnx.tables.readers import Dialect, read_delimited

                dialect = Dialect("\t" if file.format == "tsv" else ",", file.has_header, file.has_quotes)
                return read_delimited(source, file.columns, dialect)
            case "jsonl":
                from bertscore_onnx.tables.readers import read_json_lines

                return read_json_lines(source, file.columns)
            case "parquet":
                from bertscore_onnx.tables.readers import read_parquet

                return read_parquet(source, file.columns)


def _no_json(source: Source) -> Iterator[str]:
    """Yield the lines, unless the first is a JSON object: those of JSON lines are no texts."""
    lines = read_lines(source)
    first = next(lines)
    if first.startswith("{") and first.rstrip().endswith("}") and _is_json(first):
        raise InputError(
            f"{source.title} seems to hold JSON lines. Add --input-format jsonl to read them, or --input-format text "
            "if these lines are the texts."
        )
    yield first
    yield from lines


def _is_json(line: str) -> bool:
    import msgspec  # costs start-up time and is needed only here

    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


@contextmanager
def open_input(file: InputFile, *, to_read_again: bool = False) -> Iterator[OpenFile]:
    """Open a file for as long as the block lasts.

    Args:
        file: the file.
        to_read_again: whether it must be rereadable; then a pipe is read to its end, into a temporary file. So is one
            of Parquet, which is read from its end.

    Raises:
        InputError: it cannot be opened.
    """
    with open_source(file.name, to_read_again=to_read_again or file.format == "parquet") as source:
        yield OpenFile(file, source)
