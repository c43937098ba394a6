"""The formats of files.

`FORMATS` is the table of the formats of tables; all other files are text, a text in each line.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import PurePath
from typing import Any

from bertscore_onnx.errors import InputError


@dataclass(frozen=True, slots=True)
class Dialect:
    """The format of files, and how the rows of a TSV or CSV are written."""

    has_header: bool = True
    """Whether the first row has the names of the columns, which are called 1, 2, and so on
    otherwise.
    """

    has_quotes: bool = True
    """Whether a field may be in double quotes, with inner quotes doubled; otherwise quotes are
    ordinary characters.
    """

    delimiter: str | None = None
    """The character between fields; None for a tab in TSV, and in CSV for the delimiter of the
    header.
    """

    format: str | None = None
    """None for the format that the name of each file shows."""

    def __post_init__(self) -> None:
        """Raise InputError unless the delimiter is a character that ends and quotes no field."""
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise InputError(
                f"The delimiter is {self.delimiter!r}; expected one character, such as ';', or a "
                "tab."
            )

    @property
    def has_settings(self) -> bool:
        """Whether rows are written in another way than by default."""
        return replace(self, format=None) != Dialect()


DEFAULT_DIALECT = Dialect()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A format of tables, with all facts that the package needs."""

    name: str
    """The name that users write."""

    suffixes: tuple[str, ...]
    """The ends of the names of its files, without `.gz`."""

    reader: str
    """Its `TableReader`, as MODULE:CLASS, since modules of formats cost start-up time. It is called
    with a source, the name of the format, a `Dialect`, and whether rows that cannot be read become
    an `UnreadableRow`.
    """

    writer: str
    """The class of its writer. A writer of lines is called with `RowsToWrite` and the name of the
    format, has a `head`, and gives a `line` for each row and score; any other is called with a
    file, `RowsToWrite` and a signature, and has `add` and `close`.
    """

    has_lines: bool = True
    """Whether rows are written as lines of text."""

    is_seekable: bool = False
    """Whether a file is not read from its beginning to its end, so that a pipe is spooled."""

    has_columns_by_row: bool = False
    """Whether each row has columns of its own, which are known at the end."""

    has_settings: bool = False
    """Whether the settings of a `Dialect` count."""

    may_lack_quotes: bool = False
    """Whether quotes are often characters of the texts, which only reading a file shows."""

    def load_reader(self) -> Any:
        """Return the class of its reader."""
        return _load(self.reader)

    def load_writer(self) -> Any:
        """Return the class of its writer."""
        return _load(self.writer)


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


_TSV = FileFormat(
    name="tsv",
    suffixes=(".tsv", ".tab"),
    reader="bertscore_onnx.tables.delimited:DelimitedReader",
    writer="bertscore_onnx.tables.delimited:DelimitedWriter",
    has_settings=True,
    may_lack_quotes=True,
)
_CSV = replace(_TSV, name="csv", suffixes=(".csv",), may_lack_quotes=False)
_JSON_LINES = FileFormat(
    name="jsonl",
    suffixes=(".jsonl", ".ndjson", ".json"),
    reader="bertscore_onnx.tables.json_lines:JsonLinesReader",
    writer="bertscore_onnx.tables.json_lines:JsonWriter",
    has_columns_by_row=True,
)
_PARQUET = FileFormat(
    name="parquet",
    suffixes=(".parquet",),
    reader="bertscore_onnx.tables.parquet:ParquetReader",
    writer="bertscore_onnx.tables.parquet:ParquetWriter",
    has_lines=False,
    is_seekable=True,
)

FORMATS = {"tsv": _TSV, "csv": _CSV, "jsonl": _JSON_LINES, "parquet": _PARQUET}
"""The formats of tables by their names."""

TEXT = "text"
"""The format of all other files, which are no tables."""


def formats_with_settings() -> set[str]:
    """Return the formats for which the settings of a `Dialect` count."""
    return {name for name in FORMATS if FORMATS[name].has_settings}


def format_of(name: str) -> str:
    """Return the format that a file's suffix names, without a final `.gz`.

    Text if it names none.
    """
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    for table_format in FORMATS.values():
        if suffix in table_format.suffixes:
            return table_format.name
    return TEXT


_MARKED = {
    ".srt": "subtitles, with numbers and times",
    ".vtt": "subtitles, with times",
    ".sgm": "SGML, with tags",
    ".sgml": "SGML, with tags",
    ".tmx": "XML, with tags",
    ".xlf": "XML, with tags",
    ".xliff": "XML, with tags",
}


def refuse_other_formats(name: str) -> None:
    """Raise InputError for a file with the suffix of another format.

    Other formats are spreadsheets, and texts with marks that would be scored.
    """
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    if suffix in (".xlsx", ".xlsm", ".xls", ".ods"):
        raise InputError(
            f"{name} is a spreadsheet; expected text or a table. Save its table as CSV in UTF-8."
        )
    if suffix in _MARKED:
        raise InputError(
            f"{name} holds {_MARKED[suffix]}; expected text. Write its texts into a file, one a "
            "line."
        )
