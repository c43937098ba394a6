"""Tables of text, aligned by tabulate."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from bertscore_onnx.errors import InputError, needs_extra


def tabulated(
    rows: Sequence[Sequence[str]], header: Sequence[str], *, names: Sequence[int] = (0,), table_format: str = "simple"
) -> str:
    """Align rows, numbers to the right.

    Args:
        rows: cells, written as they are.
        header: the names of the columns.
        names: the columns that hold names, which are aligned to the left.
        table_format: as tabulate calls it.

    Raises:
        MissingExtraError: tabulate is not installed.
    """
    with needs_extra("evaluation", "Writing a table"):
        from tabulate import tabulate
    alignment = ["left" if column in names else "right" for column in range(len(header))]
    return str(tabulate(rows, header, tablefmt=table_format, colalign=alignment, disable_numparse=True))


# The results of the tasks as tables to read, or as TSV with all digits and the names that JSON has.


TableFormat = Literal["text", "tsv"]

MISSING = "-"
"""Stands for a value that is missing, whose reason is told below the table."""


def is_tsv(table_format: TableFormat) -> bool:
    """Return whether to write TSV; raise InputError if there is no such format."""
    if table_format not in get_args(TableFormat):
        raise InputError(f"There is no format {table_format!r}. Choose one of {', '.join(get_args(TableFormat))}.")
    return table_format == "tsv"


def rows_by_language_pair(whole: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return a row for each language pair and metric of a result as a dict."""
    return [
        {"lang_pair": language_pair, "metric": metric, **flatten(values)}
        for language_pair, of_pair in whole["language_pairs"].items()
        for metric, values in of_pair["metrics"].items()
    ]


def flatten(values: Mapping[str, Any]) -> dict[str, object]:
    """Return what is nested by names such as `ii_right` and `mrr_low`."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}_{inner}": one for inner, one in value.items()}
        elif name.endswith("_interval"):
            low, high = value or (None, None)
            flat |= {name.replace("interval", "low"): low, name.replace("interval", "high"): high}
        else:
            flat[name] = value
    return flat


def to_tsv(rows: Sequence[Mapping[str, object]]) -> str:
    """Write rows as TSV, with the columns of all of them."""
    header = list(dict.fromkeys(name for row in rows for name in row))
    cells = [["" if row.get(name) is None else str(row[name]) for name in header] for row in rows]
    return "\n".join("\t".join(line) for line in [header, *cells])


def with_notes(table: str, notes: Sequence[str]) -> str:
    """Write notes below a table."""
    return "\n".join([table, *(note for note in notes if note)])


def language_pair_title(language_pair: str, systems: Sequence[str], people: Sequence[str]) -> str:
    """Return the line above the table of a language pair."""
    without = f", without {', '.join(people)}, who are people" if people else ""
    return f"{language_pair}: {len(systems)} system{'s' * (len(systems) != 1)}{without}"


def missing_note(name: str, reason: str) -> str:
    """Return a note that gives the reason of a missing value, or nothing."""
    return f"{name}: {reason}" if reason else ""


def format_number(value: float | None, digits: int = 4) -> str:
    """Write a number, or a dash for a missing one."""
    return MISSING if value is None else f"{value:.{digits}f}"


def format_p(value: float | None) -> str:
    """Write a p-value without its leading zero."""
    return "<.0001" if value is not None and value < 0.00005 else format_number(value).removeprefix("0")


def format_signed(value: float | None) -> str:
    """Write a number with its sign, or a dash for a missing one."""
    return MISSING if value is None else f"{value:+.4f}"
