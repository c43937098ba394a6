"""Reads files that belong together row by row: candidates, and one or more references of each."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePath

import typer

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.sources import STANDARD_INPUT, InputFormat, Source, format_of, open_source, read_lines

# A file whose rows are texts, in any of the formats.


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


TextPair = tuple[str, list[str]]
"""A candidate and its references, in the order of the files."""


class TextPairs:
    """The pairs of rereadable files; they are rereadable too, and their number is known."""

    def __init__(self, files: Sequence[OpenFile], number: int) -> None:
        """Take the files, of `number` rows each."""
        self._files = files
        self._number = number

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self._number

    def __iter__(self) -> Iterator[TextPair]:
        """Read the files from their start; only one iteration can go on at a time."""
        return _read_in_step(self._files)


@contextmanager
def open_pairs(files: Sequence[InputFile], *, to_read_again: bool = False) -> Iterator[Iterable[TextPair]]:
    """Open files of which each has a row for each pair.

    Rereadable files are read once here, so that what is wrong with them is found before anything is scored.

    Args:
        files: the first text in a row of the first file is the candidate, all others are its references. One of the
            files may be `-`, standard input.
        to_read_again: whether the pairs must be rereadable; then pipes are read to their end, into temporary files.

    Yields:
        The pairs, which are read as they are needed: `TextPairs`, or an iterator where a file is a pipe.

    Raises:
        InputError: a file cannot be read, or the numbers of rows differ; that of a pipe is known at its end only.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(open_input(file, to_read_again=to_read_again)) for file in files]
        counted = [(file, file.count()) for file in opened if file.is_rereadable]
        for file, number in counted[1:]:
            if number != counted[0][1]:
                raise _unequal(*counted[0], file, number)
        yield TextPairs(opened, counted[0][1]) if len(counted) == len(opened) else _read_in_step(opened)


def read_side_by_side(files: Sequence[InputFile]) -> list[list[list[str]]]:
    """Return the texts in each row of each file; raise InputError unless all files have as many rows."""
    with ExitStack() as stack:
        opened = [stack.enter_context(open_input(file)) for file in files]
        rows = [[*file.rows()] for file in opened]
    for file, of_file in zip(opened, rows, strict=True):
        if len(of_file) != len(rows[0]):
            raise _unequal(opened[0], len(rows[0]), file, len(of_file))
    return rows


def _read_in_step(files: Sequence[OpenFile]) -> Iterator[TextPair]:
    for number, rows in enumerate(zip_longest(*(file.rows() for file in files))):
        if None in rows:
            longer = next(file for file, row in zip(files, rows, strict=True) if row is not None)
            raise _unequal(files[rows.index(None)], number, longer, None)
        candidate, *references = [text for row in rows for text in row]
        yield candidate, references


def _unequal(file: OpenFile, number: int, other: OpenFile, other_number: int | None) -> InputError:
    longer = other if other_number is None or other_number > number else file
    place = 1 + (number if other_number is None else min(number, other_number))
    return InputError(
        f"{_counted(file, number)} and {_counted(other, other_number)}; expected as many in each file, in the "
        f"same order: {longer.unit} {place} of {longer.title} has no partner. Blank lines of a text file count: they "
        "are empty texts."
    )


def _counted(file: OpenFile, number: int | None) -> str:
    return f"{file.title} has " + ("more" if number is None else f"{number} {file.unit}{'' if number == 1 else 's'}")


# The columns of candidates and references, as the options of the command line name them.


def candidate_column(name: str | None = None) -> Column:
    """Return the column of candidates, by default `candidate`."""
    return Column((name,) if name else ("candidate",), "--candidate-column")


def reference_columns(names: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return the columns of references, by default `reference` or `references`."""
    alternatives = [(name,) for name in names] if names else [("reference", "references")]
    return tuple(Column(some, "--reference-column", may_hold_lists=True) for some in alternatives)


# Chooses the files to read, their formats and their columns, from the options of the command line.


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What the options say of files with columns."""

    candidate_column: str | None = None
    reference_columns: Sequence[str] = ()
    input_format: InputFormat | None = None
    """That of all files; None for what each name says."""

    reference_format: InputFormat | None = None
    """That of the files of references, where it is another."""

    no_header: bool = False
    no_quotes: bool = False


def choose_inputs(candidates: Sequence[str], references: Sequence[str], options: TableOptions) -> list[InputFile]:
    """Return the files to read, that of the candidates first.

    Args:
        candidates: what was given as a file of candidates, of which there must be one.
        references: the files of references; without one they are in that of the candidates.
        options: how to read them.

    Raises:
        typer.BadParameter: the options do not fit together.
    """
    _check_names(candidates, references)
    candidate = candidate_column(options.candidate_column)
    of_references = reference_columns(options.reference_columns)
    first = candidates[0]
    files = [
        _input_file(first, options.input_format, (candidate,) if references else (candidate, *of_references), options),
        *(
            _input_file(name, options.reference_format or options.input_format, of_references, options)
            for name in references
        ),
    ]
    _check_columns(files, options)
    return files


def choose_documents(names: Sequence[str], options: TableOptions) -> list[InputFile]:
    """Return the files to read, whose columns are those of references.

    Args:
        names: what was given as files of references.
        options: how to read them.

    Raises:
        typer.BadParameter: the options do not fit together.
    """
    _check_standard_input(names, "--ref")
    columns = reference_columns(options.reference_columns)
    files = [_input_file(name, options.input_format, columns, options) for name in names]
    _check_effects(options, set(), {file.format for file in files})
    return files


def choose_systems(systems: Sequence[str], references: Sequence[str]) -> tuple[dict[str, InputFile], list[InputFile]]:
    """Return the file of each system by the system's name, and the files of references.

    A system is called after its file, without folder and endings; if two would have one name, by the path as given.
    """
    if len(systems) < 2:
        raise typer.BadParameter(
            "there is one system; expected a baseline and at least one to compare with it, such as -c BASE -c OTHER.",
            param_hint="--cand",
        )
    _check_standard_input([*systems, *references])
    for position, name in enumerate(systems):
        if any(_is_same_file(name, other) for other in systems[:position]):
            raise typer.BadParameter(f"{name} is given twice; each system counts once.", param_hint="--cand")
    stems = [PurePath(PurePath(name.removesuffix(".gz")).stem).name for name in systems]
    options = TableOptions()
    of_systems = {
        stem if stems.count(stem) == 1 and stem not in systems else name: _input_file(
            name, None, (candidate_column(),), options
        )
        for name, stem in zip(systems, stems, strict=True)
    }
    return of_systems, [_input_file(name, None, reference_columns(), options) for name in references]


def _is_same_file(name: str, other: str) -> bool:
    return name == other or (os.path.isfile(name) and os.path.isfile(other) and Path(name).samefile(other))


def _input_file(name: str, said: InputFormat | None, columns: tuple[Column, ...], options: TableOptions) -> InputFile:
    return InputFile(
        name,
        said or format_of(name),
        said is not None,
        columns=columns,
        has_header=not options.no_header,
        has_quotes=not options.no_quotes,
    )


def _check_names(candidates: Sequence[str], references: Sequence[str]) -> None:
    if len(candidates) > 1:
        raise typer.BadParameter(
            f"there are {len(candidates)} files of candidates, {', '.join(candidates)}; expected one. "
            "`bertscore-onnx compare` compares several.",
            param_hint="--cand",
        )
    _check_standard_input([*candidates, *references])


def _check_standard_input(names: Sequence[str], options: str = "--cand, --ref") -> None:
    if names.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("standard input, -, can be only one of the files.", param_hint=options)


def _check_columns(files: Sequence[InputFile], options: TableOptions) -> None:
    """Raise where the references are missing, or there is no file that an option could be about."""
    candidates, *references = (file.format for file in files)
    if candidates == "text" and not references:
        raise typer.BadParameter(
            f"give the references, -r FILE. {files[0].name} is read as text, one candidate a line; a table with both, "
            "in TSV, CSV, JSON lines or Parquet, is known by its name or by --input-format.",
            param_hint="--ref",
        )
    if options.reference_format and not references:
        raise typer.BadParameter("it has no effect without -r.", param_hint="--reference-format")
    _check_effects(options, {candidates}, set(references or [candidates]))


def _check_effects(options: TableOptions, candidates: set[InputFormat], references: set[InputFormat]) -> None:
    """Raise where no file is in a format that an option could be about."""
    delimited = {"tsv", "csv"} & (candidates | references)
    for option, given, has_effect in (
        ("--candidate-column", options.candidate_column, candidates != {"text"}),
        ("--reference-column", options.reference_columns, references != {"text"}),
        ("--no-header", options.no_header, delimited),
        ("--no-quotes", options.no_quotes, delimited),
    ):
        if given and not has_effect:
            raise typer.BadParameter(
                "it has no effect, for no file that it could be about is a table. A format is known by the end of the "
                "file's name, such as .tsv, or by --input-format.",
                param_hint=option,
            )


# Keeps the texts of pairs from when they are read until their scores are known.


class KeptPairs:
    """The texts of pairs that are read some thousand ahead of their scores."""

    def __init__(self, *, read_before: bool) -> None:
        """With `read_before` the pairs are read once to their end, for idf weights, before they are read to be kept."""
        self._is_read_before = read_before
        self._waiting: deque[TextPair] = deque()

    def keep(self, pairs: Iterable[TextPair]) -> Iterable[TextPair]:
        """Return the pairs, which are kept as they are read; they have a number where they had one."""
        return _Watched(pairs, self) if isinstance(pairs, TextPairs) else self.watch(pairs)

    def watch(self, pairs: Iterable[TextPair]) -> Iterator[TextPair]:
        """Yield the pairs of one reading."""
        is_kept, self._is_read_before = not self._is_read_before, False
        for pair in pairs:
            if is_kept:
                self._waiting.append(pair)
            yield pair

    def take(self) -> TextPair:
        """Return the next pair, and keep it no longer."""
        return self._waiting.popleft()


class _Watched:
    """Pairs that can be read again, and whose number is known."""

    def __init__(self, pairs: TextPairs, kept: KeptPairs) -> None:
        self._pairs = pairs
        self._kept = kept

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[TextPair]:
        return self._kept.watch(self._pairs)
