"""Prints rows with their columns aligned, within a width."""

import os
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
        width: the most characters of a line; cells of the widest columns then take more lines. None for no limit.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        widths = _narrowed(widths, [len(cell) for cell in rows[0]], width)
    for row in rows:
        cells = [
            [cell] if len(cell) <= size else textwrap.wrap(cell, size) for cell, size in zip(row, widths, strict=True)
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


def _narrowed(widths: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Return widths that fit into a total, taken from the widest first; none below its least."""
    narrowed = list(widths)
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - total
    while excess > 0:
        column = max(range(len(narrowed)), key=lambda number: narrowed[number] - least[number] > 0 and narrowed[number])
        if narrowed[column] <= least[column]:
            break
        narrowed[column] -= 1
        excess -= 1
    return narrowed
