"""What is known of an input file before its rows are scored, and a batch of its rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.batches import Column

if TYPE_CHECKING:
    import pyarrow

MAX_ROWS = 256
"""The most rows of a batch; batches are small, since a row may be large."""

MAX_BATCH_BYTES = 8_000_000
"""About how large a batch may be, if it has more than one row."""


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Which columns to take of every input file, and how text files are written."""

    candidate: str | None = None
    """The column of candidates; None for `candidate`."""

    reference: str | None = None
    """The column of references; None for `reference` or `references`."""

    columns: tuple[str, ...] | None = None
    """The columns to keep beside the scores; None for all."""

    has_header: bool = True
    has_quotes: bool = True
    """As `delimited.Dialect` has them, for CSV and TSV."""

    def text_columns(self) -> tuple[Column, Column]:
        """Return the columns of candidates and of references."""
        references = (self.reference,) if self.reference else ("reference", "references")
        return (
            Column((self.candidate or "candidate",), "`candidate`"),
            Column(references, "`reference`", may_hold_lists=True),
        )

    def find(self, names: Sequence[str], place: str) -> tuple[str, str]:
        """Return the names of the two columns of texts among those of a file; an InputError where one is missing."""
        candidate, reference = self.text_columns()
        return candidate.find(names, place), reference.find(names, place)

    def kept(self, names: Sequence[str], taken: Sequence[str], title: str) -> list[str]:
        """Return the columns to keep among those of a file.

        Args:
            names: the columns of the file.
            taken: the names of the columns that scores are put into.
            title: the file.

        Raises:
            InputError: one is missing, there more than once, or has the name of one of scores.
        """
        if self.columns is None:
            kept = list(names)
        else:
            kept = [Column((name,), "`columns`").find(names, title) for name in self.columns]
        twice = [name for name in kept if kept.count(name) > 1]
        if twice:
            raise InputError(f"{title}: there are several columns {twice[0]!r}. Name those to keep in `columns`.")
        clashing = [name for name in kept if name in taken]
        if clashing:
            raise InputError(
                f"{title}: there is a column {clashing[0]!r} already, and scores would go there. Rename it, or name "
                "the columns to keep in `columns`."
            )
        return kept


@dataclass(frozen=True, slots=True)
class InputTable:
    """An input file whose columns and rows are known."""

    name: str
    """As it was given, which messages call it by."""

    path: str
    """Its absolute path."""

    format: Literal["csv", "tsv", "jsonl", "parquet"]
    size: int
    """Bytes."""

    rows: int
    candidate: str
    reference: str
    """The columns of the texts."""

    schema: "pyarrow.Schema"
    """That of the columns to keep."""


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Consecutive rows of a file."""

    first: int
    """The number of its first row, from 0."""

    kept: "pyarrow.RecordBatch"
    """The columns to keep, (rows,)."""

    candidates: list[object]
    references: list[object]
    """The values of the columns of texts, (rows,), which may be something else than texts."""

    @classmethod
    def without_rows(cls, table: InputTable) -> "RowBatch":
        """Return a batch with the columns of a file."""
        import pyarrow

        columns = [pyarrow.nulls(0, field.type) for field in table.schema]
        return cls(0, pyarrow.RecordBatch.from_arrays(columns, schema=table.schema), [], [])

    @property
    def stop(self) -> int:
        """The number after that of its last row."""
        return self.first + len(self.candidates)

    def between(self, start: int, stop: int) -> "RowBatch":
        """Return those of its rows that are from one number up to another."""
        begin, end = max(start, self.first) - self.first, min(stop, self.stop) - self.first
        return RowBatch(
            self.first + begin,
            self.kept.slice(begin, end - begin),
            self.candidates[begin:end],
            self.references[begin:end],
        )
