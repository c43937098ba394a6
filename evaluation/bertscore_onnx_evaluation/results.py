"""What all results of an evaluation share."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, ClassVar

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.aligned import filled, terminal_width
from bertscore_onnx_evaluation.table import Table, TableFormat, markdown_text


class Result(ABC):
    """The result of an evaluation, which can be written as a table or as JSON."""

    __slots__ = ()
    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv")

    def table(self, table_format: TableFormat = "text") -> str:
        """Write a table, without a line end after its last line.

        Text fits the terminal, or 80 columns.

        Args:
            table_format: "text" for reading, "tsv" for a row for each result, with all digits,
                "latex", or "markdown" for the summary of a build; not every result has all of them.

        Raises:
            InputError: there is no such format.
        """
        if table_format not in self._FORMATS:
            raise InputError(
                f"There is no format {table_format!r}. Choose one of {', '.join(self._FORMATS)}."
            )
        if table_format == "tsv":
            return Table((), list(self._rows())).tsv()
        if table_format == "latex":
            return "\n\n".join(self._latex())
        if table_format == "markdown":
            return _markdown("\n\n".join(self._blocks(Table.markdown)))
        return filled("\n\n".join(self._blocks(Table.text)), terminal_width())

    def __str__(self) -> str:
        """Return the table as text."""
        return self.table()

    def _repr_html_(self) -> str:
        """Return a table as a notebook shows it."""
        return f"<pre>{escape(self.table(self._FORMATS[0]))}</pre>"

    def to_json(self) -> str:
        """Write one JSON object; a missing value is null."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""

    @abstractmethod
    def _rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of TSV."""

    def _blocks(self, write: Callable[[Table], str]) -> Iterator[str]:
        """Yield the blocks of text, with tables as `write` returns them."""
        raise NotImplementedError  # only called for a format in `_FORMATS`

    def _latex(self) -> Iterator[str]:
        """Yield the blocks of LaTeX."""
        raise NotImplementedError


def _markdown(text: str) -> str:
    """Escape the lines that are no rows of a table, and leave one blank line between blocks."""
    lines = []
    for line in text.splitlines():
        is_row = line.startswith("|")
        lines.append(line if is_row else markdown_text(line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
