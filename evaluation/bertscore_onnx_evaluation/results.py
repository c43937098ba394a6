"""What all results of an evaluation share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, ClassVar

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.aligned import filled, terminal_width
from bertscore_onnx.tables.table import Table, TableFormat, plural


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

    def _blocks(self) -> Iterator[str]:
        """Yield the tables of text, with their titles and notes."""
        raise NotImplementedError

    def _latex(self) -> Iterator[str]:
        raise NotImplementedError


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
