"""Pairs of texts in files that are read together, row by row."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING

from bertscore_onnx.cli.inputs import InputFile, InputRow, open_file
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import TextColumn, id_text
from bertscore_onnx.tables.roles import (
    USUAL_NAMES,
    check_order_of_ids,
    id_columns,
)
from bertscore_onnx.tables.row_reader import TextsOfRow
from bertscore_onnx.tables.sources import (
    Source,
    read_whole_rows,
)

if TYPE_CHECKING:
    from bertscore_onnx.tables.readers import RawRow, TableReader
    from bertscore_onnx.tables.repeats import RepeatCounter
    from bertscore_onnx.tables.whole_table import WholeTable


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
            watch = None
            if kept is not None and kept.keeps_rows:
                watch = kept.watch
            yield from self.file.rows(self.source, watch)
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
            source = stack.enter_context(open_file(file, to_read_again=to_read_again or is_joined))
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
    from bertscore_onnx.tables.whole_table import whole_table

    return whole_table(opened.file.open_table(opened.source), opened.source.title)


def _ids_of_rows(opened: OpenFile) -> Iterator[tuple[str, str]]:
    """Yield the place of each row of a table and its id, if the table has ids."""
    columns: list[str] | None = None
    names: tuple[str, ...] = ()
    for place, record in opened.file.open_table(opened.source).records():
        # Only rows of JSON lines may have other columns than the row before.
        if columns != list(record):
            columns = list(record)
            others = opened.file.texts_among(columns)
            title = opened.source.title
            names = id_columns(columns, opened.file.segment, others=others, title=title)
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
