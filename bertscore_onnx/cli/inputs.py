"""The files that commands read: chosen by options, and read together row by row."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import typer

from bertscore_onnx.cli.specs import NO_COLUMNS, TEXT_ROLES, ColumnNames, dialect_of
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import ID_COLUMNS, NO_IDS, REFERENCE_COLUMNS, Column, TextsOfRow, context_column
from bertscore_onnx.tables.sources import (
    DEFAULT_DIALECT,
    STANDARD_INPUT,
    Dialect,
    InputFormat,
    Source,
    format_of,
    open_source,
    read_lines,
    read_whole_rows,
    refuse_other_formats,
)

if TYPE_CHECKING:
    from bertscore_onnx.tables.readers import RawRow, TableReader


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read."""

    name: str
    """Its name, or `-` for standard input."""

    columns: tuple[Column, ...] = ()
    """The columns of texts; none for the format text, where each line is a text."""

    dialect: Dialect = DEFAULT_DIALECT
    """The format that an option requested, and how the rows of TSV and CSV are written."""

    added: tuple[str, ...] = ()
    """The columns that will be added, so the file must not have them."""

    is_context: bool = False
    """Whether the texts of a row are the sentences before a pair."""

    ids: tuple[Column, ...] = ()
    """The columns of ids, if several tables have to agree on ids."""

    groups: Column | None = None
    """The column of the rows' groups, if this file has it."""

    @property
    def format(self) -> InputFormat:
        """The requested format, or the format of the name."""
        return self.dialect.format or format_of(self.name)

    def rows(self, source: Source, kept: "KeptRows | None" = None) -> "Iterator[InputRow]":
        """Yield the rows of the file, which was opened, and keep the rows of a table.

        InputError is raised if the file has no rows, or a group has no name.
        """
        if self.format == "text":
            lines = _no_json(source) if self.dialect.format is None else read_lines(source)
            yield from (([line], "", {}) for line in lines)
            return
        table = self.open_table(source)
        groups = [] if self.groups is None else [self.groups]
        ids = [column for column in self.ids if self._has(table, column)]
        columns = (*self.columns, *groups, *ids)
        rows = kept.watch(table, columns) if kept is not None and kept.keeps_rows else table.texts(columns)
        number = 0
        for number, row in enumerate(rows, 1):
            end = len(row) - len(ids)
            texts, group = row[: end - len(groups)], row[end - len(groups) : end]
            if groups and not group[0].strip():
                raise InputError(
                    f"{source.title}, row {number}: the column {groups[0].names[0]!r} holds nothing; expected the "
                    "name of a group. Fill it in, or leave the row out."
                )
            names = {column.names[0]: name for column, name in zip(ids, row[end:], strict=True) if name}
            yield texts, "".join(group), names
        if not number:
            raise InputError(f"{source.title} has no rows; expected one for each text.")

    def counted(self, number: int) -> str:
        """Return a number with its unit: the lines, or the rows, of this file."""
        return f"{number} {self.unit}{'' if number == 1 else 's'}"

    @property
    def unit(self) -> str:
        """The unit of this format: a line or a row."""
        return "line" if self.format == "text" else "row"

    def open_table(self, source: Source) -> "TableReader":
        """Open the file as a table, from its start."""
        from bertscore_onnx.tables.readers import open_table  # costs start-up time

        return open_table(source, self.format, self.dialect, added=self.added)

    def _has(self, table: "TableReader", ids: Column) -> bool:
        """Return whether a table has a column of ids, or may have it; if no option names it, it has no texts."""
        [name] = ids.names
        if ids.option:
            return True
        return not any(name in column.names for column in self.columns) and (
            table.names is None or table.names.count(name) == 1
        )


InputRow = tuple[list[str], str, dict[str, str]]
"""The texts of a row, the name of its group, and its ids by their columns, as far as a file has these."""


def _no_json(source: Source) -> Iterator[str]:
    """Yield the lines; raise InputError if the first one is a JSON object."""
    lines = read_lines(source)
    first = next(lines)
    if first.startswith("{") and first.rstrip().endswith("}"):
        import msgspec  # costs start-up time and is needed only here

        with suppress(msgspec.DecodeError, RecursionError):
            msgspec.json.decode(first)
            raise InputError(
                f"{source.title} seems to hold JSON lines. Add --input-format jsonl to read them, or --input-format "
                "text if these lines are the texts."
            )
    yield first
    yield from lines


def read_rows(files: Iterable[InputFile]) -> Iterator[list[str]]:
    """Yield the texts of each row, file after file."""
    for file in files:
        with _open(file) as source:
            yield from (texts for texts, _, _ in file.rows(source))


@contextmanager
def _open(file: InputFile, *, to_read_again: bool = False) -> Iterator[Source]:
    """Open a file; Parquet has to be seekable, since it is read from its end."""
    with open_source(file.name, to_read_again=to_read_again or file.format == "parquet") as source:
        yield source


# Files that are read together: the rows of the same number belong together.

TextPair = tuple[str, list[str]]
"""A candidate and its references, in the order of the files."""


class KeptRows:
    """The rows of the file of candidates, kept until they are scored: some thousand are read ahead."""

    def __init__(self, *, keeps: bool = True, as_texts: bool = False, num_before: int = 0) -> None:
        """Keep rows as they are read to be scored, after `num_before` readings for idf weights.

        With `as_texts` the rows of tables are kept as pairs, too.
        """
        self.keeps_rows, self._keeps_pairs, self._num_before = keeps and not as_texts, keeps, num_before
        self._waiting: deque[RawRow] = deque()
        self.candidates: tuple[InputFile, Source]
        """The file of the candidates, once it is open."""
        self.table: TableReader | None = None
        """The table of the rows, once it is read; None for a text file, whose rows are pairs."""
        self.numbers_of_references: set[int] = set()
        """How many references pairs have; of a pipe, those that were read."""
        self.has_several_references = False
        """Whether a pair of the files has several references, or one of a pipe may have them."""
        self.has_contexts = False
        """Whether a pair of the files has a context that is not blank, or one of a pipe may have it."""
        self.is_blank = True
        """Whether a side of all pairs that were read is blank."""
        self.groups: deque[str] = deque()
        """The groups of the rows that wait, if a file has them."""

    def begin(self) -> "KeptRows | None":
        """Return itself, if the rows of the next reading are those to be scored."""
        self._num_before -= 1
        return self if self._num_before < 0 else None

    def watch(self, table: "TableReader", columns: Sequence[Column]) -> Iterator[list[str]]:
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
    """The pairs of seekable files: sized, and read from the start each time, one iteration at a time."""

    def __init__(
        self, files: Sequence[tuple[InputFile, Source]], number: int, kept: KeptRows, held: "HeldRows | None" = None
    ) -> None:
        """Read files of `number` rows each; the rows of all files but the first are held."""
        self._files = files
        self._number = number
        self._kept = kept
        self._held = held

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self._number

    def __iter__(self) -> Iterator[TextsOfRow]:
        """Yield the pairs."""
        from bertscore_onnx.text.texts import in_context

        files, watching = self._files, self._kept.begin()
        (first, source), *others = files
        num_texts = len([file for file, _ in files if not file.is_context])
        iterators = [first.rows(source, watching), *(file.rows(source) for file, source in others)]
        for number, rows in enumerate(_side_by_side(files, iterators, self._held)):
            if None in rows:
                longer = next(file for file, row in zip(files, rows, strict=True) if row is not None)
                raise _unequal(files[rows.index(None)], number, longer, None)
            candidate, *references = [text for texts, _, _ in rows[:num_texts] for text in texts]
            if watching is not None:
                watching.groups.extend(group for _, group, _ in rows if group)
                watching.add((candidate, references))
                watching.numbers_of_references.add(len(references))
                watching.is_blank &= not (candidate.strip() and any(text.strip() for text in references))
            context = rows[-1][0] if num_texts < len(files) else None
            text, *texts_in_context = in_context([candidate, *references], context, "context")
            yield text, texts_in_context


@contextmanager
def open_pairs(
    files: Sequence[InputFile], kept: KeptRows | None = None, *, to_read_again: bool = False
) -> Iterator[Iterable[TextsOfRow]]:
    """Open files that have a row for each pair, check that their numbers of rows are equal, and yield the pairs.

    Rows are paired by position, and by ids where tables have the same ids in another order; the other files are then
    held. The first text in a row of the first file is the candidate, all others are its references; a file of contexts
    comes last. Seekable files are read once here, so that their faults are found before anything is scored, and yield
    `TextPairs`; the fault of a pipe is found when it is read. One of the files may be `-`, standard input; pipes are
    spooled to temporary files if they are `to_read_again`. The rows of the first file are `kept` as they are read.
    """
    with ExitStack() as stack:
        opened = [(file, stack.enter_context(_open(file, to_read_again=to_read_again))) for file in files]
        seekable = [(file, source) for file, source in opened if source.is_seekable]
        kept = kept or KeptRows(keeps=False)
        kept.candidates = opened[0]
        with_texts = [(file, source) for file, source in opened if not file.is_context]
        num_texts = sum(1 if file.format == "text" else len(file.columns) for file, _ in with_texts)
        may_have_lists = any(file.format == "jsonl" and not source.is_seekable for file, source in with_texts)
        with_lists = [
            (position, len(file.columns))
            for position, (file, _) in enumerate(seekable)
            if file.format != "text" and not file.is_context
        ]
        contexts = [position for position, (file, _) in enumerate(seekable) if file.is_context]
        kept.has_contexts = any(file.is_context and not source.is_seekable for file, source in opened)

        def checked(held: HeldRows | None = None) -> int:
            number = 0
            for rows in _side_by_side(seekable, [file.rows(source) for file, source in seekable], held):
                number += 1
                if None in rows:
                    numbers = [sum(1 for _ in file.rows(source)) for file, source in seekable]
                    other = next(position for position, of_file in enumerate(numbers) if of_file != numbers[0])
                    raise _unequal(seekable[0], numbers[0], seekable[other], numbers[other])
                added = sum(len(rows[at][0]) - most for at, most in with_lists)
                kept.numbers_of_references.add(num_texts - 1 + added)
                kept.has_contexts |= any(sentence.strip() for at in contexts for sentence in rows[at][0])
            return number

        held = None
        try:
            number = checked()
        except _OtherIdError:
            held = _rows_by_id(opened) if len(seekable) == len(opened) else None
            if held is None:
                raise
            number = checked(held)
        kept.has_several_references = may_have_lists or max(kept.numbers_of_references, default=num_texts - 1) > 1
        pairs = TextPairs(opened, number, kept, held)
        yield pairs if len(seekable) == len(opened) else iter(pairs)


HeldRows = list[tuple[str, dict[str, InputRow]]]
"""For each file but the first the name of a column of ids in the first, and its own rows by these ids."""


class _OtherIdError(InputError):
    """A row has different ids in two tables."""


def _rows_by_id(files: Sequence[tuple[InputFile, Source]]) -> HeldRows | None:
    """Return the rows of all files but the first by their ids; None unless all have the same ids, each once."""
    if not all(file.ids for file, _ in files):
        return None
    first, *others = (read_whole_rows(file.rows(source), source.title, itemgetter(0)) for file, source in files)
    held: HeldRows = []
    for rows in others:
        own, other = _compared(first[0][2], rows[0][2])
        by_id = {ids.get(other, ""): (texts, group, ids) for texts, group, ids in rows}
        if sorted(ids.get(own, "") for _, _, ids in first) != sorted(by_id) or len(by_id) < len(rows):
            return None
        held.append((own, by_id))
    return held


def _compared(ids: dict[str, str], other_ids: dict[str, str]) -> tuple[str, str]:
    """Return the names of two ids to compare: of the first column that both tables have, or else the first of each."""
    shared = [name for name in ids if name in other_ids]
    return (shared[0], shared[0]) if shared else (next(iter(ids), ""), next(iter(other_ids), ""))


def _side_by_side(
    files: Sequence[tuple[InputFile, Source]], rows: Sequence[Iterator[InputRow]], held: HeldRows | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of all files of the same number, or of the same id; None for a file that has ended.

    InputError is raised if a row has different ids in two tables: in a column that both have, or else in the first.
    """
    if held is not None:
        yield from ((row, *(by_id[row[2].get(own, "")] for own, by_id in held)) for row in rows[0])
        return
    for number, together in enumerate(zip_longest(*rows), 1):
        with_ids = [(source, row[2]) for (_, source), row in zip(files, together, strict=True) if row and row[2]]
        for source, ids in with_ids[1:]:
            first, first_ids = with_ids[0]
            own, other = _compared(first_ids, ids)
            if first_ids[own] != ids[other]:
                raise _OtherIdError(
                    f"Row {number} is {first_ids[own]!r} in {first.title} and {ids[other]!r} in {source.title}; "
                    "expected the same segments in both, each once. If these are not ids of segments, name the column "
                    "that has them with --columns id=NAME, or add --columns id=none."
                )
        yield together


def _unequal(
    file: tuple[InputFile, Source], number: int, other: tuple[InputFile, Source], other_number: int | None
) -> InputError:
    """Return the error for files with different numbers of rows; None for a larger number that is not known."""
    longer, source = other if other_number is None or other_number > number else file
    place = 1 + (number if other_number is None else min(number, other_number))
    more = "more" if other_number is None else other[0].counted(other_number)
    return InputError(
        f"{file[1].title} has {file[0].counted(number)} and {other[1].title} has {more}; expected as many in each "
        f"file, in the same order: {longer.unit} {place} of {source.title} has no partner. Blank lines of a text file "
        "count: they are empty texts."
    )


# The choice of files, formats and columns by the options of the command line.


def reference_columns(columns: ColumnNames = NO_COLUMNS) -> tuple[Column, ...]:
    """Return the columns of references, by default `reference` or `references`."""
    alternatives: list[tuple[str, ...]] = [(name,) for name in columns.references] or [REFERENCE_COLUMNS]
    return tuple(Column(names, "--columns reference=NAME", may_hold_lists=True) for names in alternatives)


def _id_columns(columns: ColumnNames) -> tuple[Column, ...]:
    """Return the columns of ids; tables are compared by the first that they share. None if without ids."""
    name = columns("id")
    if name == NO_IDS:
        return ()
    if name:
        return (Column((name,), "--columns id=NAME", is_id=True),)
    return tuple(Column((name,), "", is_id=True) for name in ID_COLUMNS)


def choose_inputs(
    candidates: Sequence[str],
    references: Sequence[str],
    *,
    columns: ColumnNames = NO_COLUMNS,
    input_formats: Sequence[str] = (),
    context: str | None = None,
    added: Sequence[str] = (),
    by: str | None = None,
) -> list[InputFile]:
    """Return the files to read: of candidates, references and the context; raise typer.BadParameter if options clash.

    There must be one file of candidates; without files of references these are in it, too. The formats are one for all
    files, or two for candidates and references; without any, each file has that of its suffix, as that of the context
    always has, with the settings of the first format. The file of candidates may not have columns that are to be
    `added`. `by` is the column of groups, in the first file that is a table.
    """
    if len(candidates) > 1:
        raise typer.BadParameter(
            f"there are {len(candidates)} files of candidates, {', '.join(candidates)}; expected one. "
            "`bertscore-onnx compare` compares several.",
            param_hint="--cand",
        )
    check_standard_input([*candidates, *references, context or ""])
    if len(input_formats) > (2 if references else 1):
        raise typer.BadParameter(
            f"there are {len(input_formats)} formats, {', '.join(input_formats)}; expected one, or with -r a second "
            "one for the references.",
            param_hint="--input-format",
        )
    dialects = [dialect_of(spec) for spec in input_formats or (None,)]
    candidate = Column((columns("candidate") or "candidate",), "--columns candidate=NAME")
    of_references = reference_columns(columns)
    of_first = (candidate,) if references else (candidate, *of_references)
    first = input_file(candidates[0], of_first, dialects[0], tuple(added))
    others = [input_file(name, of_references, dialects[-1]) for name in references]
    if first.format == "text" and not others:
        raise typer.BadParameter(
            f"give the references, -r FILE. {first.name} is read as text, one candidate per line; a table with both, "
            "in TSV, CSV, JSON lines or Parquet, is recognised by its name or by --input-format.",
            param_hint="--ref",
        )
    files = [first, *others]
    tables = [position for position, file in enumerate(files) if file.format != "text"]
    if context is not None:
        column = context_column(columns("context") or "context", "--columns context=NAME")
        files.append(replace(input_file(context, (column,), replace(dialects[0], format=None)), is_context=True))
    check_tables(files, columns)
    ids = _id_columns(columns) if len([file for file in files if file.format != "text"]) > 1 else ()
    if by is not None:
        if not tables:
            raise _no_table("--by")
        files[tables[0]] = replace(files[tables[0]], groups=Column((by,), "--by COLUMN", is_id=True))
    return [file if file.format == "text" else replace(file, ids=ids) for file in files]


def input_file(
    name: str, columns: tuple[Column, ...], dialect: Dialect = DEFAULT_DIALECT, added: tuple[str, ...] = ()
) -> InputFile:
    """Return a file to read; raise InputError if its name is a spreadsheet's."""
    if dialect.format is None:
        refuse_other_formats(name)
    return InputFile(name, columns, dialect, added)


def check_standard_input(names: Sequence[str], options: str = "--cand, --ref") -> None:
    """Raise typer.BadParameter if standard input is given twice."""
    if names.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("standard input, -, can be only one of the files.", param_hint=options)


def check_tables(files: Sequence[InputFile], columns: ColumnNames) -> None:
    """Raise typer.BadParameter for an option about tables if no file is a table."""
    if any(file.format != "text" for file in files):
        return
    if columns.keys() & TEXT_ROLES:
        raise _no_table("--columns")
    if any(file.dialect.has_settings for file in files):
        raise _no_table("--input-format")


def _no_table(option: str) -> typer.BadParameter:
    return typer.BadParameter(
        "it has no effect: none of the files is a table. A format is recognised by the end of the file's name, such as "
        ".tsv, or by --input-format FORMAT.",
        param_hint=option,
    )


def lines_of(name: str, what: str) -> list[str]:
    """Read a file of lines that is held whole, within `MAX_HELD_BYTES`; messages call its content `what`."""
    with open_source(name) as source:
        return read_whole_rows(read_lines(source, what), source.title, lambda line: [line])
