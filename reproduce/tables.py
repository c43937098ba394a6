"""Printed tables, whose digits are compared with those that the docstring of a script expects."""

import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WIDTH = 10


def number(value: float | None, digits: int = 4) -> str:
    """Return a value as a table has it."""
    return "-" if value is None else f"{value:.{digits}f}"


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Mapping[str, Sequence[str]],
    expected: str | None = None,
) -> int:
    """Print a table, and return the exit status: 1 if a docstring has its title and expects another
    row of a name.
    """
    width = max(20, *(len(name) + 2 for name in rows))
    lines = {
        name: name.ljust(width) + "".join(cell.rjust(WIDTH) for cell in cells)
        for name, cells in rows.items()
    }
    print(
        title,
        " " * width + "".join(column.rjust(WIDTH) for column in columns),
        *lines.values(),
        sep="\n",
    )
    _, has_title, table = (expected or "").partition(f"{title}\n")
    wanted = {
        line.split()[0]: line
        for line in table.partition("\n\n")[0].splitlines()[1:]
        if has_title and line
    }
    differing = [
        wanted[name]
        for name, line in lines.items()
        if wanted.get(name, line).split() != line.split()
    ]
    for line in differing:
        print(f"Expected: {line.strip()}", file=sys.stderr)
    return int(bool(differing))
