"""Tables and sentences as text within the width of a terminal: one renderer for commands and results."""

import re
import shutil
import textwrap
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

_GAP = "  "

_LONGEST_WORD = 16
"""Longer words, such as names of systems, may be broken."""


def terminal_width() -> int:
    """Return the width given by COLUMNS or by the terminal; 80 without a terminal."""
    return shutil.get_terminal_size().columns


def filled(text: str, width: int) -> str:
    """Break lines that are longer than a width between words; a longer word, such as a signature, stays whole.

    So does `p = 0.0225`.
    """
    lines = (
        textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) if len(line) > width else [line]
        for line in text.replace(" = ", "\0=\0").split("\n")
    )
    return "\n".join(part for parts in lines for part in parts).replace("\0=\0", " = ")


def aligned(
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    right: Collection[int] = (),
    whole: Collection[int] = (),
    optional: Sequence[int] = (),
    has_rule: bool = False,
) -> list[str]:
    """Return the lines of a table, every column as wide as its widest cell.

    To fit into a width, columns are left out, which a last line names, and cells are wrapped, those of the last columns
    first; columns that still have no room stand in another table below, beside the names again.

    Args:
        rows: the cells of the header and of each row, (rows, columns).
        width: None for no limit.
        right: columns that are aligned to the right.
        whole: columns whose cells are not wrapped.
        optional: columns that may be left out, the least important first.
        has_rule: whether there is a line of hyphens below the header.
    """
    columns = [*zip(*rows, strict=True)]
    widths = [max(text_width(line) for cell in column for line in cell.split("\n")) for column in columns]
    short = [size if number in whole else min(size, _LONGEST_WORD) for number, size in enumerate(widths)]
    kept = [*range(len(columns))]
    for column in optional:
        if width is None or _total(short, kept) <= width:
            break
        kept.remove(column)
    least = [
        size if number in whole else min(size, max(map(_longest_word, column)))
        for number, (size, column) in enumerate(zip(short, columns, strict=True))
    ]
    num_names = 1 + min((number for number in kept if number not in whole), default=0)
    lines: list[str] = []
    for block in _blocks(kept, num_names, least, width):
        sizes = _narrowed(widths, least, block, width)
        lines += [""] * bool(lines)
        for number, row in enumerate(rows):
            lines += _lines([row[column] for column in block], sizes, [column in right for column in block])
            lines += [_GAP.join("-" * size for size in sizes)] * (has_rule and number == 0)
    left_out = [" ".join(rows[0][column].split()) for column in range(len(columns)) if column not in kept]
    if left_out and width:
        lines += filled(f"A wider terminal also shows {', '.join(left_out)}.", width).split("\n")
    return lines


def text_width(text: str) -> int:
    """Return the columns of a terminal that a text takes: two for a wide character, none for one that combines."""
    if text.isascii():
        return len(text)
    shown = (character for character in text if unicodedata.category(character) not in ("Mn", "Me", "Cf"))
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in shown)


def _longest_word(cell: str) -> int:
    return max(map(text_width, re.split(r"\s|(?<=-)", cell)))


def _total(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[column] for column in columns) + len(_GAP) * (len(columns) - 1)


def _blocks(kept: Sequence[int], num_names: int, least: Sequence[int], width: int | None) -> Iterator[list[int]]:
    """Yield the columns of each table, which begins with the columns up to the names."""
    names, rest = [*kept[:num_names]], [*kept[num_names:]]
    while True:
        block = [*names]
        while rest and (len(block) == num_names or width is None or _total(least, [*block, rest[0]]) <= width):
            block.append(rest.pop(0))
        yield block
        if not rest:
            return


def _narrowed(widths: Sequence[int], least: Sequence[int], block: Sequence[int], width: int | None) -> list[int]:
    """Return the widths of the columns of a table, the last of which are narrowed first until all fit."""
    excess = 0 if width is None else max(_total(widths, block) - width, 0)
    sizes = []
    for column in reversed(block):
        taken = min(excess, widths[column] - least[column])
        sizes.append(widths[column] - taken)
        excess -= taken
    return sizes[::-1]


def _lines(cells: Sequence[str], sizes: Sequence[int], are_right: Sequence[bool]) -> Iterator[str]:
    """Yield the lines of a row, whose cells may take several."""
    parts = [[*_wrapped(cell, size)] for cell, size in zip(cells, sizes, strict=True)]
    for line in zip_longest(*parts, fillvalue=""):
        padded = (
            " " * (size - text_width(part)) + part if is_right else part + " " * (size - text_width(part))
            for part, size, is_right in zip(line, sizes, are_right, strict=True)
        )
        yield _GAP.join(padded).rstrip()


def _wrapped(cell: str, size: int) -> Iterator[str]:
    for line in cell.split("\n"):
        if text_width(line) <= size:
            yield line
        else:
            yield from textwrap.wrap(line, size if line.isascii() else max(1, size // 2))
