"""Prints rows with their columns aligned, within a width."""

import os
import re
import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import TextIO

_GAP = "  "


def print_table(rows: Sequence[Sequence[str]], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print rows of as many cells each, every column as wide as its widest cell.

    Args:
        rows: the cells.
        file: what to print to; None for standard output.
        width: the most characters of a line; cells of the last columns then take more lines. No word is broken but
            after a hyphen. None for no limit.
    """
    columns = [*zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        widths = _narrowed(widths, [max(map(_longest_word, column)) for column in columns], width)
    for row in rows:
        cells = [
            [cell] if len(cell) <= size else textwrap.wrap(cell, size, break_long_words=False)
            for cell, size in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*cells, fillvalue=""):
            print(_GAP.join(part.ljust(size) for part, size in zip(line, widths, strict=True)).rstrip(), file=file)


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal has, as COLUMNS says or the terminal; None without one."""
    if columns := os.environ.get("COLUMNS", ""):
        return int(columns) if columns.isdecimal() and int(columns) else None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):  # it is none, or closed
        return None


def _longest_word(cell: str) -> int:
    return max(map(len, re.split(r"\s|(?<=-)", cell)))


def _narrowed(widths: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Return widths that fit into a total, taken from the last columns first; none below its least."""
    narrowed = list(widths)
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - total
    for column in reversed(range(len(narrowed))):
        taken = min(max(excess, 0), narrowed[column] - least[column])
        narrowed[column] -= taken
        excess -= taken
    return narrowed
