"""Pairs of texts in files that are read together, row by row."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from bertscore_onnx.cli.inputs import InputFile, InputRow, open_file
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import id_text
from bertscore_onnx.tables.roles import check_order_of_ids, id_columns
from bertscore_onnx.tables.row_reader import TextsOfRow
from bertscore_onnx.tables.sources import Source, read_whole_rows

if TYPE_CHECKING:
    from bertscore_onnx.tables.readers import RawRow, TableReader
    from bertscore_onnx.tables.repeats import RepeatCounter
    from bertscore_onnx.tables.whole_table import WholeTable


TextPair = tuple[str, list[str]]
"""A candidate and its references, in the order of the files."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that was opened, and the order of its rows."""

    file: InputFile
    source: Source
    order: Sequence[int] | None = None
    """The row for each pair of all files; None for the order in which they stand."""

    def rows(self, kept: "TableReader | None" = None) -> Iterator[InputRow]:
        """Yield the rows in the order of the pairs, those of a `kept` table as they stand too."""
        if self.order is None:
            yield from self.file.rows(self.source, kept)
            return
        rows = read_whole_rows(self.file.rows(self.source), self.source.title, itemgetter(0))
        for number in self.order:
            yield rows[number]


class TextPairs:
    """The pairs of open files, whose rows are kept until they are scored: some thousand."""

    def __init__(
        self,
        files: Sequence[OpenFile],
        joins: Sequence[str],
        keeps: Literal["rows", "texts"] | None,
        num_before: int,
        repeats: "RepeatCounter | None",
    ) -> None:
        """Read the seekable files once, so that their faults are found.

        Args:
            files: the files in the order of their texts; one of contexts is the last.
            joins: how tables were joined, a sentence for each.
            keeps: keep the rows of the file of candidates, where those of text files are pairs; or
                the pairs; None for neither.
            num_before: how many readings, for idf weights, come before that of the scorer.
            repeats: counts the rows that repeat others, in the reading of the scorer.
        """
        self.files = files
        self.joins = joins
        self.table: TableReader | None = None
        """The table of the rows, once it is read; None where they are pairs."""
        self.numbers_of_references: set[int] = set()
        """How many references pairs have; of a pipe, those that were read."""
        self.has_contexts = False
        """Whether a pair has a context that is not blank, or one of a pipe may have it."""
        self.is_blank = True
        """Whether a side of all pairs that were read is blank."""
        self._may_have_lists = False
        self._keeps = keeps
        self._num_before = num_before
        self._repeats = repeats
        self._waiting: deque[tuple[RawRow, str]] = deque()
        self.number = self._check_rows()

    def _check_rows(self) -> int:
        """Return the number of pairs in seekable files, and note what their texts show."""
        seekable = []
        for opened in self.files:
            if opened.source.is_seekable:
                seekable.append(opened)
            else:
                self.has_contexts |= opened.file.is_context
                self._may_have_lists |= opened.file.has_columns_by_row
        number = 0
        for rows in _rows_together(seekable):
            number += 1
            num_texts = 0
            for opened, (texts, _, _) in zip(seekable, rows, strict=True):
                if opened.file.is_context:
                    self.has_contexts |= any(sentence.strip() for sentence in texts)
                else:
                    num_texts += len(texts)
            # Those of a pipe are counted when it is read.
            if len(seekable) == len(self.files):
                self.numbers_of_references.add(num_texts - 1)  # the first text is the candidate
        return number

    @property
    def may_have_several_references(self) -> bool:
        """Whether a pair that was read has several references, or another may have them."""
        return self._may_have_lists or max(self.numbers_of_references, default=1) > 1

    def __iter__(self) -> Iterator[TextsOfRow]:
        """Yield the pairs, and keep what is asked for in the reading of the scorer."""
        from bertscore_onnx.text.texts import in_context

        is_scored = self._num_before == 0
        self._num_before -= 1
        table = None
        first = self.files[0]
        if is_scored and self._keeps == "rows" and first.file.is_table:
            table = first.file.open_table(first.source)
            self.table = table
        has_contexts = self.files[-1].file.is_context
        for rows in _rows_together(self.files, table):
            context = None
            if has_contexts:
                *rows, (context, _, _) = rows
            texts: list[str] = []
            group = ""  # which the rows of one file at most have
            for texts_of_file, group_of_file, _ in rows:
                texts += texts_of_file
                group += group_of_file
            candidate, *references = texts
            if is_scored:
                self._keep((candidate, references), group, rows[0][-1])
                if self._repeats is not None:
                    self._repeats.add([*texts, *(context or ())])
            text, *others = in_context(texts, context, "context")
            yield text, others

    def _keep(self, pair: TextPair, group: str, raw: "RawRow") -> None:
        candidate, references = pair
        self.numbers_of_references.add(len(references))
        has_reference = any(text.strip() for text in references)
        self.is_blank &= not (candidate.strip() and has_reference)
        if self._keeps is None:
            raw = None
        elif self.table is None:
            raw = pair
        self._waiting.append((raw, group))

    def take(self) -> "tuple[RawRow, str]":
        """Remove and return the next row, None if none is kept, and its group."""
        return self._waiting.popleft()


class CountedPairs(TextPairs):
    """The pairs of seekable files, which are read from the start each time."""

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self.number


@contextmanager
def open_pairs(
    files: Sequence[InputFile],
    keeps: Literal["rows", "texts"] | None = None,
    *,
    num_before: int = 0,
    repeats: "RepeatCounter | None" = None,
    to_read_again: bool = False,
) -> Iterator[TextPairs]:
    """Open files that have a row for each pair, and yield the pairs.

    Their numbers of rows must be equal. Tables are joined by the law in docs/tables.md, for which
    they are read whole; all other rows belong together by position. The first text in a row of the
    first file is the candidate, all others are its references; a file of contexts comes last.
    Seekable files are read once here, so that their faults are found before anything is scored, and
    yield `CountedPairs`; the fault of a pipe is found when it is read. One of the files may be `-`,
    standard input; a pipe is spooled to a temporary file if it is `to_read_again`, or is a table
    beside another file. The other options are those of `TextPairs`.
    """
    with ExitStack() as stack:
        opened = []
        for file in files:
            is_joined = len(files) > 1 and file.is_table
            source = stack.enter_context(open_file(file, to_read_again=to_read_again or is_joined))
            opened.append(OpenFile(file, source))
        are_seekable = all(opened_file.source.is_seekable for opened_file in opened)
        pairs_class = CountedPairs if are_seekable else TextPairs
        yield pairs_class(*_joined(opened), keeps, num_before, repeats)


def _joined(opened: list[OpenFile]) -> tuple[list[OpenFile], list[str]]:
    """Return files in the order of the rows of the first table, and how they were joined.

    InputError is raised if that is not clear.
    """
    tables = [opened_file for opened_file in opened if opened_file.file.is_table]
    if not tables or len(opened) == 1:
        return opened, []
    if len(tables) < len(opened):
        text = next(opened_file for opened_file in opened if not opened_file.file.is_table)
        for table in tables:
            check_order_of_ids(_ids_of_rows(table), table.source.title, text.source.title)
    if len(tables) == 1:
        return opened, []
    from bertscore_onnx.tables.joins import join_tables  # costs start-up time, as numpy does

    first = tables[0]
    whole = _whole_table(first)
    outputs = opened[0].file.columns[0].possible_names
    others = {}
    for position, opened_file in enumerate(opened):
        # A table of pairs may have their contexts too.
        if opened_file.file.is_table and opened_file.file.name != first.file.name:
            others[position] = _whole_table(opened_file)
    texts = first.file.texts_among(whole.names)
    for position, other_whole in others.items():
        texts += opened[position].file.texts_among(other_whole.names)
    joins = []
    for position, other_whole in others.items():
        other = opened[position]
        join = join_tables(whole, other_whole, first.file.segment, outputs=outputs, texts=texts)
        if (join.rows != range(len(whole))).any():
            opened[position] = replace(other, order=join.rows.tolist())
        joins.append(f"{first.source.title} and {other.source.title} are joined {join.how}.")
    return opened, joins


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
    files: Sequence[OpenFile], kept: "TableReader | None" = None
) -> Iterator[Sequence[InputRow]]:
    """Yield the rows of the same number; the first file may have a `kept` table.

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
