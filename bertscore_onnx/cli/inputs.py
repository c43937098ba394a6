"""The files that commands read.

`choose_inputs` chooses them by options, and `open_pairs` reads them together, row by row.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING

import typer

from bertscore_onnx.cli.specs import NO_COLUMNS, ColumnNames, dialect_of
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import TextColumn, context_column, find_columns, id_text
from bertscore_onnx.tables.formats import (
    DEFAULT_DIALECT,
    FORMATS,
    TEXT,
    Dialect,
    format_of,
    formats_with_settings,
    refuse_other_formats,
)
from bertscore_onnx.tables.roles import (
    ROLES_OF_FORMS,
    USUAL_NAMES,
    check_forms,
    check_order_of_ids,
    id_columns,
)
from bertscore_onnx.tables.row_reader import TextsOfRow, text_columns
from bertscore_onnx.tables.sources import (
    STANDARD_INPUT,
    Source,
    open_source,
    read_lines,
    read_whole_rows,
)

if TYPE_CHECKING:
    from bertscore_onnx.tables.readers import RawRow, TableReader
    from bertscore_onnx.tables.repeats import RepeatCounter
    from bertscore_onnx.tables.whole_table import WholeTable


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

    @property
    def format(self) -> str:
        """The requested format, or the format of the name."""
        return self.dialect.format or format_of(self.name)

    @property
    def is_table(self) -> bool:
        """Whether the file has columns; otherwise each line is a text."""
        return self.format != TEXT

    def rows(self, source: Source, kept: "KeptRows | None" = None) -> "Iterator[InputRow]":
        """Yield the rows of the opened file, and keep the rows of a table.

        InputError is raised if the file has no rows, or a group has no name.
        """
        if not self.is_table:
            lines = _no_json(source) if self.dialect.format is None else read_lines(source)
            for line in lines:
                yield [line], ""
            return
        table = self.open_table(source)
        columns = self.columns
        if self.groups is not None:
            columns += (self.groups,)
        if kept is not None and kept.keeps_rows:
            rows = kept.watch(table, columns)
        else:
            rows = map(itemgetter(0), table.rows(columns, keeps_rows=False))
        number = 0
        for number, row in enumerate(rows, 1):
            if self.groups is None:
                yield row, ""
                continue
            *texts, group = row
            if not group.strip():
                raise InputError(
                    f"{source.title}, row {number}: the column {self.groups.names[0]!r} holds "
                    "nothing; expected the name of a group. Fill it in, or leave the row out."
                )
            yield texts, group
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


InputRow = tuple[list[str], str]
"""The texts of a row, and the name of its group, which is empty in files without groups."""


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
        with _open(file) as source:
            for texts, _ in file.rows(source):
                yield texts


@contextmanager
def _open(file: InputFile, *, to_read_again: bool = False) -> Iterator[Source]:
    """Open a file; some tables have to be seekable, as Parquet, which is read from its end."""
    is_seekable = file.is_table and FORMATS[file.format].is_seekable
    with open_source(file.name, to_read_again=to_read_again or is_seekable) as source:
        yield source


# Files that are read together: the rows of the same number belong together.

TextPair = tuple[str, list[str]]
"""A candidate and its references, in the order of the files."""


class KeptRows:
    """The rows of the file of candidates, kept until they are scored: some thousand."""

    def __init__(self, *, keeps: bool = True, as_texts: bool = False, num_before: int = 0) -> None:
        """Keep rows as they are read to be scored.

        That is after `num_before` readings for idf weights. With `as_texts` the rows of tables are
        kept as pairs, too.
        """
        self.keeps_rows = keeps and not as_texts
        self._keeps_pairs = keeps
        self._num_before = num_before
        self._waiting: deque[RawRow] = deque()
        self.candidates: tuple[InputFile, Source]
        """The file of the candidates, once it is open."""
        self.table: TableReader | None = None
        """The table of the rows, once it is read; None for a text file, whose rows are pairs."""
        self.numbers_of_references: set[int] = set()
        """How many references pairs have; of a pipe, those that were read."""
        self.may_have_lists = False
        """Whether a row of a pipe may have several references, unlike those before."""
        self.has_contexts = False
        """Whether a pair of the files has a context that is not blank, or one of a pipe may have
        it.
        """
        self.is_blank = True
        """Whether a side of all pairs that were read is blank."""
        self.groups: deque[str] = deque()
        """The groups of the rows that wait, if a file has them."""
        self.repeats: RepeatCounter | None = None
        """Counts the rows that repeat others, if a command asks for it."""
        self.joins: list[str] = []
        """What is said of how tables were joined."""

    @property
    def has_several_references(self) -> bool:
        """Whether a pair that was read has several references, or another may have them."""
        return self.may_have_lists or max(self.numbers_of_references, default=1) > 1

    def begin(self) -> "KeptRows | None":
        """Return itself, if the rows of the next reading are those to be scored."""
        self._num_before -= 1
        return self if self._num_before < 0 else None

    def watch(self, table: "TableReader", columns: Sequence[TextColumn]) -> Iterator[list[str]]:
        """Yield the texts of a table, and keep its rows."""
        self.table = table
        for texts, row in table.rows(columns):
            self._waiting.append(row)
            yield texts

    def add(self, pair: TextPair) -> None:
        """Keep a pair of a text file."""
        if self._keeps_pairs and self.table is None:
            self._waiting.append(pair)

    def take(self) -> "RawRow":
        """Remove and return the next row; None if none is kept."""
        return self._waiting.popleft() if self._keeps_pairs else None


class TextPairs:
    """The pairs of seekable files, which are counted, and read from the start each time."""

    def __init__(self, files: Sequence["OpenFile"], number: int, kept: KeptRows) -> None:
        """Read files of `number` rows each."""
        self._files = files
        self._number = number
        self._kept = kept

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self._number

    def __iter__(self) -> Iterator[TextsOfRow]:
        """Yield the pairs."""
        from bertscore_onnx.text.texts import in_context

        kept = self._kept.begin()
        # a file of contexts is the last
        num_files = len([opened for opened in self._files if not opened.file.is_context])
        for rows in _rows_together(self._files, kept):
            texts: list[str] = []
            for texts_of_file, _ in rows[:num_files]:
                texts += texts_of_file
            candidate, *references = texts
            if kept is not None:
                kept.groups.extend(group for _, group in rows if group)
                kept.add((candidate, references))
                kept.numbers_of_references.add(len(references))
                has_reference = any(text.strip() for text in references)
                kept.is_blank &= not (candidate.strip() and has_reference)
            context = rows[-1][0] if num_files < len(rows) else None
            if kept is not None and kept.repeats is not None:
                kept.repeats.add([*texts, *(context or ())])
            text, *texts_in_context = in_context([candidate, *references], context, "context")
            yield text, texts_in_context


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that was opened, and the order of its rows."""

    file: InputFile
    source: Source
    order: Sequence[int] | None = None
    """The row for each pair of all files; None for the order in which they stand."""

    def rows(self, kept: KeptRows | None = None) -> Iterator[InputRow]:
        """Yield the rows in the order of the pairs."""
        if self.order is None:
            yield from self.file.rows(self.source, kept)
            return
        rows = read_whole_rows(self.file.rows(self.source), self.source.title, itemgetter(0))
        for number in self.order:
            yield rows[number]


@contextmanager
def open_pairs(
    files: Sequence[InputFile], kept: KeptRows | None = None, *, to_read_again: bool = False
) -> Iterator[Iterable[TextsOfRow]]:
    """Open files that have a row for each pair, and yield the pairs.

    Their numbers of rows must be equal. Tables are joined by the law in docs/tables.md, for which
    they are read whole; all other rows belong together by position. The first text in a row of the
    first file is the candidate, all others are its references; a file of contexts comes last.
    Seekable files are read once here, so that their faults are found before anything is scored, and
    yield `TextPairs`; the fault of a pipe is found when it is read. One of the files may be `-`,
    standard input; a pipe is spooled to a temporary file if it is `to_read_again`, or is a table
    beside another file. The rows of the first file are `kept` as they are read.
    """
    with ExitStack() as stack:
        opened = []
        for file in files:
            is_joined = len(files) > 1 and file.is_table
            source = stack.enter_context(_open(file, to_read_again=to_read_again or is_joined))
            opened.append(OpenFile(file, source))
        kept = kept or KeptRows(keeps=False)
        kept.candidates = files[0], opened[0].source
        opened = _joined(opened, kept)
        seekable = [opened_file for opened_file in opened if opened_file.source.is_seekable]
        number = _check_rows(seekable, opened, kept)
        pairs = TextPairs(opened, number, kept)
        yield pairs if len(seekable) == len(opened) else iter(pairs)


def _joined(opened: Sequence[OpenFile], kept: KeptRows) -> list[OpenFile]:
    """Return files in the order of the rows of the first table.

    InputError is raised if that is not clear.
    """
    tables = [position for position, table in enumerate(opened) if table.file.is_table]
    if not tables or len(opened) == 1:
        return list(opened)
    if len(tables) < len(opened):
        text = next(opened_file for opened_file in opened if not opened_file.file.is_table)
        for position in tables:
            table = opened[position]
            check_order_of_ids(_ids_of_rows(table), table.source.title, text.source.title)
    if len(tables) == 1:
        return list(opened)
    from bertscore_onnx.tables.joins import join_tables  # costs start-up time, as numpy does

    joined = list(opened)
    first = opened[tables[0]]
    whole = _whole_table(first)
    outputs = USUAL_NAMES["candidate"]
    for candidate in opened[0].file.columns[:1]:
        outputs = candidate.names or outputs
    # A table of pairs may have their contexts too.
    others = {}
    for position in tables[1:]:
        if opened[position].file.name != first.file.name:
            others[position] = _whole_table(opened[position])
    texts = first.file.texts_among(whole.names)
    for position, other_whole in others.items():
        texts += opened[position].file.texts_among(other_whole.names)
    for position, other_whole in others.items():
        other = opened[position]
        join = join_tables(whole, other_whole, first.file.segment, outputs=outputs, texts=texts)
        if (join.rows != range(len(whole))).any():
            joined[position] = replace(other, order=join.rows.tolist())
        kept.joins.append(f"{first.source.title} and {other.source.title} are joined {join.how}.")
    return joined


def _check_rows(seekable: Sequence[OpenFile], opened: Sequence[OpenFile], kept: KeptRows) -> int:
    """Return the number of pairs in seekable files.

    What their texts show is kept. InputError is raised at a fault.
    """
    kept.has_contexts = False
    for opened_file in opened:
        if not opened_file.source.is_seekable:
            kept.has_contexts |= opened_file.file.is_context
            kept.may_have_lists |= opened_file.file.has_columns_by_row

    number = 0
    for rows in _rows_together(seekable):
        number += 1
        num_texts = 0
        for opened_file, (texts, _) in zip(seekable, rows, strict=True):
            if opened_file.file.is_context:
                kept.has_contexts |= any(sentence.strip() for sentence in texts)
            else:
                num_texts += len(texts)
        # Those of a pipe are counted when it is read.
        if len(seekable) == len(opened):
            kept.numbers_of_references.add(num_texts - 1)  # the first text is the candidate
    return number


def _whole_table(opened: OpenFile) -> "WholeTable":
    from bertscore_onnx.tables.readers import read_whole
    from bertscore_onnx.tables.whole_table import WholeTable

    reader = opened.file.open_table(opened.source)
    rows = read_whole(reader)
    names = reader.names
    if not names:
        names = list(dict.fromkeys(name for _, record in rows for name in record))
    return WholeTable(opened.source.title, names, rows)


def _ids_of_rows(opened: OpenFile) -> Iterator[tuple[str, str]]:
    """Yield the place of each row of a table and its id, if the table has ids."""
    for place, record in opened.file.open_table(opened.source).records():
        names = id_columns(
            list(record),
            opened.file.segment,
            others=opened.file.texts_among(list(record)),
            title=opened.source.title,
        )
        if not names:
            return
        yield place, "+".join(id_text(record[name]) for name in names)


def _rows_together(
    files: Sequence[OpenFile], kept: KeptRows | None = None
) -> Iterator[tuple[InputRow, ...]]:
    """Yield the rows of the same number; keep those of the first file.

    InputError is raised if a file has more rows.
    """
    iterators = []
    for opened in files:
        iterators.append(opened.rows(kept))
        kept = None
    for number, rows in enumerate(zip_longest(*iterators)):
        if None in rows:
            with_row = [opened for opened, row in zip(files, rows, strict=True) if row is not None]
            raise _has_more_rows(with_row[0], files[rows.index(None)], number)
        yield rows


def _has_more_rows(longer: OpenFile, shorter: OpenFile, number: int) -> InputError:
    """Return the error for a file that has more rows than another, which has this number."""
    total = "more"
    if longer.source.is_seekable:
        total = longer.file.counted(sum(1 for _ in longer.rows()))
    return InputError(
        f"{shorter.source.title} has {shorter.file.counted(number)} and "
        f"{longer.source.title} has {total}; expected as many in each file, in the same "
        f"order: {longer.file.unit} {number + 1} of {longer.source.title} has no partner. "
        "Blank lines of a text file count: they are empty texts."
    )


# The choice of files, formats and columns by the options of the command line.


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
    candidate = text_columns(columns("candidate"), None, argument=_role_option).candidate
    of_references = reference_columns(columns)
    of_first = (candidate,) if references else (candidate, *of_references)
    first = input_file(candidates[0], of_first, dialects[0], tuple(added))
    with_references = [input_file(name, of_references, dialects[-1]) for name in references]
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
    if context is not None:
        column = context_column(columns("context") or "context", "--columns context=NAME")
        by_suffix = replace(dialects[0], format=None)
        files.append(replace(input_file(context, (column,), by_suffix), is_context=True))
    for dialect in dialects:
        check_tables(files, dialect, columns)
    check_forms(columns, "score", [*_forms_of(files, with_references or [first]), output])
    if by is not None:
        if not tables:
            raise _no_table("--by")
        groups = TextColumn((by,), "--by COLUMN", is_id=True)
        files[tables[0]] = replace(files[tables[0]], groups=groups)
    segment = columns.get("segment", ())
    for position, file in enumerate(files):
        if file.is_table:
            files[position] = replace(file, segment=segment)
    return files


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


def input_file(
    name: str,
    columns: tuple[TextColumn, ...],
    dialect: Dialect = DEFAULT_DIALECT,
    added: tuple[str, ...] = (),
) -> InputFile:
    """Return a file to read; raise InputError if its name is a spreadsheet's."""
    if dialect.format is None:
        refuse_other_formats(name)
    return InputFile(name, columns, dialect, added)


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


def lines_of(name: str, what: str) -> list[str]:
    """Read a file of lines that is held whole, within `MAX_HELD_BYTES`.

    Messages call its content `what`.
    """
    with open_source(name) as source:
        return read_whole_rows(read_lines(source, what), source.title, lambda line: [line])
