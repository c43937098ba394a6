"""Results as tables: text, TSV or LaTeX from one list of columns; and what all results of an evaluation share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.aligned import aligned, filled, terminal_width

TableFormat = Literal["text", "tsv", "latex"]
Format = Callable[[Any], str]
Column = tuple[str, str, Format]
"""The header, the key of the value in a row, and how the value is written."""

MISSING = "-"
"""Stands for a missing value, whose reason stands below the table."""

_TSV = str.maketrans("\t\n\r", "   ")
"""Characters that would end a column or a row."""

_LATEX = str.maketrans(
    {character: rf"\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


class Table:
    """Rows by key. Text and LaTeX show the columns, in their formats; TSV shows every key, with all digits."""

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], optional: Sequence[str] = ()
    ) -> None:
        """Take the columns; those written by `str` hold names, and are aligned to the left.

        A cell is blank where a row lacks the key. `optional` are the keys of the columns that a narrow terminal does
        not show, the least important first.
        """
        self.columns = columns
        self.rows = rows
        self.optional = optional

    def text(self) -> str:
        """Align the columns within the width of the terminal."""
        keys = [key for _, key, _ in self.columns]
        numbers = [column for column, (_, _, write) in enumerate(self.columns) if write is not str]
        optional = [keys.index(key) for key in self.optional if key in keys]
        lines = aligned(self._cells(), terminal_width(), right=numbers, whole=numbers, optional=optional, has_rule=True)
        return "\n".join(lines)

    def latex(self) -> str:
        """Write a tabular environment; headers and names are escaped, other cells hold LaTeX already."""
        are_names = [write is str for _, _, write in self.columns]
        header, *rows = (
            [
                cell.translate(_LATEX) if row == 0 or is_name else cell
                for cell, is_name in zip(cells, are_names, strict=True)
            ]
            for row, cells in enumerate(self._cells())
        )
        lines = [f" {' & '.join(cells)} \\\\" for cells in (header, *rows)]
        alignment = "".join("l" if is_name else "r" for is_name in are_names)
        begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
        return "\n".join([begin, r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", end])

    def _cells(self) -> list[list[str]]:
        """Return the header and the rows as they are written."""
        rows = ([write(row[key]) if key in row else "" for _, key, write in self.columns] for row in self.rows)
        return [[title for title, _, _ in self.columns], *rows]

    def tsv(self) -> str:
        """Write the header and the rows; a missing value is empty."""
        header = list(dict.fromkeys(key for row in self.rows for key in row))
        cells = [["" if row.get(key) is None else str(row[key]).translate(_TSV) for key in header] for row in self.rows]
        return "\n".join("\t".join(line) for line in [header, *cells])


class Result(ABC):
    """The result of an evaluation, which can be written as a table or as JSON."""

    __slots__ = ()
    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv")

    def table(self, table_format: TableFormat = "text") -> str:
        """Write a table, without a line end after its last line. Text fits the terminal, or 80 columns.

        Args:
            table_format: "text" for reading, "tsv" for a row for each result, with all digits, or "latex"; not every
                result has all of them.

        Raises:
            InputError: there is no such format.
        """
        if table_format not in self._FORMATS:
            raise InputError(f"There is no format {table_format!r}. Choose one of {', '.join(self._FORMATS)}.")
        if table_format == "tsv":
            return Table((), [*self._rows()]).tsv()
        if table_format == "latex":
            return "\n\n".join(self._latex())
        return filled("\n\n".join(self._blocks()), terminal_width())

    def __str__(self) -> str:
        """Return the table as text."""
        return self.table()

    def to_json(self) -> str:
        """Write one JSON object; a missing value is null."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""

    @abstractmethod
    def _rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of TSV."""

    def _blocks(self) -> Iterator[str]:
        """Yield the tables of text, with their titles and notes."""
        raise NotImplementedError

    def _latex(self) -> Iterator[str]:
        raise NotImplementedError


class ResultWithPage(Result):
    """A result that can also be written as a page, and that a notebook shows by itself."""

    __slots__ = ()
    _PAGE: ClassVar[str]
    """The module of `report` that writes it."""

    def to_html(self) -> str:
        """Return a page about it that needs no network; its only script copies a text to quote or a command to run.

        The same result gives the same bytes.

        Raises:
            MissingExtraError: Jinja is not installed.
        """
        page: str = self._page().report_html(self)
        return page

    def _repr_html_(self) -> str:
        """Return the main tables as a notebook shows them."""
        tables: str = self._page().notebook_html(self)
        return tables

    def _page(self) -> Any:
        return import_module(f"bertscore_onnx.evaluation.report.{self._PAGE}")  # costs start-up time


# How values are written.

plain: Format = "{}".format
"""Writes a value as it is, aligned to the right."""


def number(digits: int, *, signed: bool = False, missing: str = MISSING) -> Format:
    """Return a format of numbers with this many decimals, `signed` with a plus sign too."""
    sign = "+" if signed else ""

    def write(value: float | None) -> str:
        return missing if value is None else f"{value:{sign}.{digits}f}"

    return write


def p_value(digits: int) -> Format:
    """Return a format of p-values: no zero before the point, and a bound if all decimals are 0."""

    def write(value: float | None) -> str:
        if value is None:
            return MISSING
        return f"<.{'1':0>{digits}}" if value < 0.5 * 10**-digits else f"{value:.{digits}f}".removeprefix("0")

    return write


def count(value: int | None) -> str:
    """Write a whole number, with a comma at the thousands."""
    return MISSING if value is None else f"{value:,}"


def plural(number: int, noun: str) -> str:
    """Write a number of things, such as `3 systems`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Write names in a sentence, such as `a, b and c`."""
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + "".join(names[-1:])


def with_notes(table: str, notes: Mapping[str, str]) -> str:
    """Write below a table why values of these names are missing."""
    return "\n".join([table, *(f"{name}: {reason}" for name, reason in notes.items() if reason)])


def language_pair_title(language_pair: str, systems: Sequence[str], human_systems: Sequence[str]) -> str:
    """Return the line above the table of a language pair."""
    kind = "human system" if len(human_systems) == 1 else "human systems"
    without = f", without the {kind} {', '.join(human_systems)}" if human_systems else ""
    return f"{language_pair}: {plural(len(systems), 'system')}{without}"


def rows_by_language_pair(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each language pair and metric of a result as a dict."""
    for language_pair, of_pair in result["language_pairs"].items():
        for row in rows_by_metric(of_pair):
            yield {"lang_pair": language_pair, **row}


def rows_by_metric(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each metric and sentinel of a result as a dict."""
    for kind in ("metrics", "sentinels"):
        for metric, values in result[kind].items():
            yield {"metric": metric, "kind": kind, **flatten(values)}


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values under names such as `order_kept_n`, and the ends of intervals as `mrr_low`, `mrr_high`."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}_{inner}": nested for inner, nested in value.items()}
        elif name.endswith("_interval"):
            low, high = value or (None, None)
            flat |= {name.replace("interval", "low"): low, name.replace("interval", "high"): high}
        else:
            flat[name] = value
    return flat
