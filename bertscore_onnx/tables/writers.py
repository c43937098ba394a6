"""Writes the rows of tables beside their scores, whatever the formats.

Rows are copied as the input has them where the formats are the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertscore_onnx.tables.readers import RawRow, Record, Records, TableReader
from bertscore_onnx.tables.score_columns import ScoreColumns

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class RowsToWrite:
    """The rows of a table, or of text files, and the columns of their scores."""

    table: TableReader | None
    """The table of the rows; None for rows of text files, each a candidate with its references."""

    added: ScoreColumns
    columns: "Sequence[str] | pyarrow.Schema" = ()
    """The columns of rows that have their own: by name for formats with lines, or their types."""

    with_texts: bool = True
    """Whether the columns of the rows are written, or the scores alone."""

    def record(self, row: RawRow) -> Record:
        """Return the values of a row by column."""
        if self.table is not None:
            return self.table.record_of(row)
        candidate, references = row
        return {"candidate": candidate, "references": references}

    def batch(self, rows: Sequence[RawRow]) -> Records:
        """Return rows as a batch."""
        if self.table is not None:
            return self.table.batch_of(rows)
        return Records(list(map(self.record, rows)))

    def schema(self) -> "pyarrow.Schema":
        """Return the columns with their types."""
        import pyarrow

        if not self.with_texts:
            return pyarrow.schema([])
        if self.table is not None:
            return self.columns or self.table.schema
        return pyarrow.schema(
            {"candidate": pyarrow.string(), "references": pyarrow.list_(pyarrow.string())}
        )
