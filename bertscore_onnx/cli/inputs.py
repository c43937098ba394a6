"""The files that commands read, chosen by options."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from bertscore_onnx.cli.specs import NO_COLUMNS, ColumnNames, dialect_of
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import TextColumn, find_columns
from bertscore_onnx.tables.formats import (
    DEFAULT_DIALECT,
    FORMATS,
    TEXT,
    Dialect,
    format_of,
    formats_with_settings,
    refuse_other_formats,
)
from bertscore_onnx.tables.roles import ROLES_OF_FORMS, check_forms
from bertscore_onnx.tables.row_reader import text_columns
from bertscore_onnx.tables.sources import STANDARD_INPUT, Source, open_source, read_lines

if TYPE_CHECKING:
    from bertscore_onnx.tables.readers import RawRow, TableReader


InputRow = tuple[list[str], str, "RawRow"]
"""The texts of a row, the name of its group, which is empty in files without groups, and the row as
its table has it, if rows are kept.
"""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read."""

    name: str
    """Its name, or `-` for standard input."""

    columns: tuple[TextColumn, ...] = ()
    """The columns of texts; none for the format text, where each line is a text."""

    dialect: Dialect = DEFAULT_DIALECT
    """The format that an option requested, and how the rows of TSV and CSV are written."""

    added: tuple[str, ...] = ()
    """The columns that will be added, so the file must not have them."""

    is_context: bool = False
    """Whether the texts of a row are the sentences before a pair."""

    segment: tuple[str, ...] = ()
    """The columns of ids that an option names, of which a table has the first that it has."""

    groups: TextColumn | None = None
    """The column of the rows' groups, if this file has it."""

    def __post_init__(self) -> None:
        """Raise InputError if the name is that of another format, such as a spreadsheet."""
        if self.dialect.format is None:
            refuse_other_formats(self.name)

    @property
    def format(self) -> str:
        """The requested format, or the format of the name."""
        return self.dialect.format or format_of(self.name)

    @property
    def is_table(self) -> bool:
        """Whether the file has columns; otherwise each line is a text."""
        return self.format != TEXT

    def rows(self, source: Source, kept: "TableReader | None" = None) -> Iterator[InputRow]:
        """Yield the rows of the opened file, those of a `kept` table as they stand too.

        InputError is raised if the file has no rows, or a group has no name.
        """
        if not self.is_table:
            lines = _no_json(source) if self.dialect.format is None else read_lines(source)
            for line in lines:
                yield [line], "", None
            return
        table = kept or self.open_table(source)
        keeps_rows = kept is not None
        columns = self.columns
        if self.groups is not None:
            columns += (self.groups,)
        number = 0
        for number, (texts, raw) in enumerate(table.rows(columns, keeps_rows=keeps_rows), 1):
            group = ""
            if self.groups is not None:
                group = texts.pop()
                if not group.strip():
                    raise InputError(
                        f"{source.title}, row {number}: the column {self.groups.name!r} holds "
                        "nothing; expected the name of a group. Fill it in, or leave the row out."
                    )
            yield texts, group, raw
        if not number:
            raise InputError(f"{source.title} has no rows; expected one for each text.")

    @property
    def has_columns_by_row(self) -> bool:
        """Whether each row of the file has columns of its own."""
        return self.is_table and FORMATS[self.format].has_columns_by_row

    def texts_among(self, names: Sequence[str]) -> list[str]:
        """Return the columns of texts by their names in this file."""
        return [column.name for column in find_columns(self.columns, names, self.name)]

    def counted(self, number: int) -> str:
        """Return a number with its unit: the lines, or the rows, of this file."""
        return f"{number} {self.unit}{'' if number == 1 else 's'}"

    @property
    def unit(self) -> str:
        """The unit of this format: a line or a row."""
        return "row" if self.is_table else "line"

    def open_table(self, source: Source) -> "TableReader":
        """Open the file as a table, from its start."""
        from bertscore_onnx.tables.readers import open_table  # costs start-up time

        return open_table(source, self.format, self.dialect, added=self.added)


def _no_json(source: Source) -> Iterator[str]:
    """Yield the lines; raise InputError if the first one is a JSON object."""
    lines = read_lines(source)
    first = next(lines)
    if first.startswith("{") and first.rstrip().endswith("}"):
        import msgspec  # costs start-up time and is needed only here

        with suppress(msgspec.DecodeError, RecursionError):
            msgspec.json.decode(first)
            raise InputError(
                f"{source.title} seems to hold JSON lines. Add --input-format jsonl to read them, "
                "or --input-format text if these lines are the texts."
            )
    yield first
    yield from lines


def read_rows(files: Iterable[InputFile]) -> Iterator[list[str]]:
    """Yield the texts of each row, file after file."""
    for file in files:
        with open_file(file) as source:
            for texts, _, _ in file.rows(source):
                yield texts


@contextmanager
def open_file(file: InputFile, *, to_read_again: bool = False) -> Iterator[Source]:
    """Open a file; some tables have to be seekable, as Parquet, which is read from its end."""
    is_seekable = file.is_table and FORMATS[file.format].is_seekable
    with open_source(file.name, to_read_again=to_read_again or is_seekable) as source:
        yield source


_role_option = "--columns {}=NAME".format


def reference_columns(columns: ColumnNames = NO_COLUMNS) -> tuple[TextColumn, ...]:
    """Return the columns of references, by default those with a usual name."""
    return tuple(text_columns(None, columns.references or None, argument=_role_option).references)


def choose_inputs(
    candidates: Sequence[str],
    references: Sequence[str],
    *,
    columns: ColumnNames = NO_COLUMNS,
    input_formats: Sequence[str] = (),
    context: str | None = None,
    added: Sequence[str] = (),
    by: str | None = None,
    output: str = "means alone",
) -> list[InputFile]:
    """Return the files to read: of candidates, references and the context.

    typer.BadParameter is raised if options clash. There must be one file of candidates; without
    files of references these are in it, too. The formats are one for all files, or two for
    candidates and references; without any, each file has that of its suffix, as that of the context
    always has, with the settings of the first format. The file of candidates may not have columns
    that are to be `added`. `by` is the column of groups, in the first file that is a table;
    `output` is the form of the output.
    """
    _check_numbers(candidates, references, input_formats, context)
    dialects = [dialect_of(spec) for spec in input_formats or (None,)]
    texts = text_columns(
        columns("candidate"),
        columns.references or None,
        columns("context") or "context",
        _role_option,
    )
    of_candidates = [texts.candidate]
    if not references:
        of_candidates += texts.references
    first = InputFile(candidates[0], tuple(of_candidates), dialects[0], tuple(added))
    with_references = []
    for name in references:
        with_references.append(InputFile(name, tuple(texts.references), dialects[-1]))
    if not with_references and not first.is_table:
        raise typer.BadParameter(
            f"give the references, -r FILE. {first.name} is read as text, one candidate per line; "
            "a table with both, in TSV, CSV, JSON lines or Parquet, is recognised by its name or "
            "by --input-format.",
            param_hint="--ref",
        )
    files = [first, *with_references]
    # before the file of contexts, which has no groups
    tables = [position for position, file in enumerate(files) if file.is_table]
    if context is not None and texts.context is not None:
        by_suffix = replace(dialects[0], format=None)
        files.append(InputFile(context, (texts.context,), by_suffix, is_context=True))
    for dialect in dialects:
        check_tables(files, dialect, columns)
    check_forms(columns, "score", [*_forms_of(files, with_references or [first]), output])
    if by is not None:
        if not tables:
            raise _no_table("--by")
        groups = TextColumn((by,), "--by COLUMN", is_id=True)
        files[tables[0]] = replace(files[tables[0]], groups=groups)
    segment = columns.get("segment", ())
    return [replace(file, segment=segment) for file in files]


def _check_numbers(
    candidates: Sequence[str],
    references: Sequence[str],
    input_formats: Sequence[str],
    context: str | None,
) -> None:
    """Raise typer.BadParameter if there are too many files or formats."""
    if len(candidates) > 1:
        raise typer.BadParameter(
            f"there are {len(candidates)} files of candidates, {', '.join(candidates)}; expected "
            "one. `bertscore-onnx compare` compares several.",
            param_hint="--cand",
        )
    check_standard_input([*candidates, *references, context or ""])
    if len(input_formats) > (2 if references else 1):
        raise typer.BadParameter(
            f"there are {len(input_formats)} formats, {', '.join(input_formats)}; expected one, "
            "or with -r a second one for the references.",
            param_hint="--input-format",
        )


def _forms_of(files: Sequence[InputFile], of_references: Sequence[InputFile]) -> list[str]:
    """Return the forms of files, of which the first has the candidates."""
    tables = [file for file in files if file.is_table]
    forms = []
    if len(tables) < len(files):
        forms.append("lines of text")
    if files[0].is_table:
        forms.append("a table of candidates")
    if any(file.is_table for file in of_references):
        forms.append("a table of references")
    if any(file.is_context for file in tables):
        forms.append("a table of contexts")
    if tables and len({file.name for file in files}) > 1:
        forms.append("rows that are joined")
    return forms


def check_standard_input(names: Sequence[str], options: str = "--cand, --ref") -> None:
    """Raise typer.BadParameter if standard input is given twice."""
    if names.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter(
            "standard input, -, can be only one of the files.", param_hint=options
        )


def check_tables(
    files: Sequence[InputFile], dialect: Dialect, columns: ColumnNames = NO_COLUMNS
) -> None:
    """Raise typer.BadParameter for options that need a table, if there is none.

    These are the columns of tables, and the settings of TSV and CSV.
    """
    formats = {file.format for file in files}
    if formats <= {TEXT}:
        for role, names in columns.items():
            if role not in ROLES_OF_FORMS["score"]["scores of each pair"]:
                raise _no_table(f"--columns {role}={'+'.join(names)}")
        if dialect.has_settings:
            raise _no_table("--input-format")
    if dialect.has_settings and not formats & formats_with_settings():
        raise typer.BadParameter(
            "it has no effect: none of the files is TSV or CSV.", param_hint="--input-format"
        )


def _no_table(option: str) -> typer.BadParameter:
    return typer.BadParameter(
        "it has no effect: none of the files is a table. A format is recognised by the end of "
        "the file's name, such as .tsv, or by --input-format FORMAT.",
        param_hint=option,
    )
