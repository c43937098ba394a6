"""Tables and sentences as text within the width of a terminal: one renderer for commands and results."""

import re
import shutil
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
    """Break lines that are wider than a width between words; a longer word, such as a signature, stays whole.

    So does `p = 0.0225`. Texts without spaces, such as Chinese ones, break between their characters.
    """
    lines = (_wrapped(line, width, is_cell=False) for line in text.replace(" = ", "\0=\0").split("\n"))
    return "\n".join(part for parts in lines for part in parts).replace("\0=\0", " = ")


def aligned(
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    right: Collection[int] = (),
    whole: Collection[int] = (),
    optional: Sequence[int | tuple[int, ...]] = (),
    has_rule: bool = False,
) -> list[str]:
    """Return the lines of a table, (rows, columns), with every column as wide as its widest cell.

    To fit into a width, `optional` columns are left out, the first ones first, which a last line names, and cells are
    wrapped, in the last columns first, but for `whole` columns; columns that still have no room stand in another
    table below, beside the names again. With a rule below the header, a row with its first cell alone is a heading.
    """
    columns = [*zip(*(row for row in rows if not (has_rule and is_heading(row))), strict=True)]
    widths = [max(text_width(line) for cell in column for line in cell.split("\n")) for column in columns]
    short = [size if number in whole else min(size, _LONGEST_WORD) for number, size in enumerate(widths)]
    kept = [*range(len(columns))]
    for column in optional:
        if width is None or _total(short, kept) <= width:
            break
        kept = [one for one in kept if one not in (column if isinstance(column, tuple) else (column,))]
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
            if has_rule and is_heading(row):
                lines += filled(row[0], width).split("\n") if width else [row[0]]
                continue
            lines += _lines([row[column] for column in block], sizes, [column in right for column in block])
            lines += [_GAP.join("-" * size for size in sizes)] * (has_rule and number == 0)
    left_out = [" ".join(rows[0][column].split()) for column in range(len(columns)) if column not in kept]
    if left_out and width:
        lines += filled(f"A wider terminal also shows {', '.join(left_out)}.", width).split("\n")
    return lines


def is_heading(row: Sequence[str]) -> bool:
    """Return whether a row of a table has its first cell alone."""
    return len(row) > 1 and bool(row[0]) and not any(row[1:])


def text_width(text: str) -> int:
    """Return the columns of a terminal that a text takes: two for a wide character or an emoji, however many marks,
    selectors and joined emoji follow it.
    """
    return len(text) if text.isascii() else sum(map(_cell_width, _characters(text)))


def _characters(text: str) -> Iterator[str]:
    """Yield each character together with all that is drawn on it: accents, selectors, joined emoji."""
    whole = ""
    for character in text:
        is_mark = unicodedata.category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff"
        is_skin = "\U0001f3fb" <= character <= "\U0001f3ff"
        is_joined = whole.endswith("\u200d") and unicodedata.east_asian_width(character) == "W"
        if whole and not (is_mark or is_skin or is_joined):
            yield whole
            whole = ""
        whole += character
    yield whole


def _cell_width(character: str) -> int:
    """Return the columns of one of `_characters`."""
    if not character or unicodedata.category(character[0]) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character[0]) in "WF" or "\ufe0f" in character else 1


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
    """Return the widths of the columns of a table; the last columns are narrowed first until all fit."""
    excess = 0 if width is None else max(_total(widths, block) - width, 0)
    sizes = []
    for column in reversed(block):
        taken = min(excess, widths[column] - least[column])
        sizes.append(widths[column] - taken)
        excess -= taken
    return sizes[::-1]


def _lines(cells: Sequence[str], sizes: Sequence[int], are_right: Sequence[bool]) -> Iterator[str]:
    """Yield the lines of a row, whose cells may take several."""
    parts = [
        [part for line in cell.split("\n") for part in _wrapped(line, size, is_cell=True)]
        for cell, size in zip(cells, sizes, strict=True)
    ]
    for line in zip_longest(*parts, fillvalue=""):
        padded = (
            " " * (size - text_width(part)) + part if is_right else part + " " * (size - text_width(part))
            for part, size, is_right in zip(line, sizes, are_right, strict=True)
        )
        yield _GAP.join(padded).rstrip()


_BREAK = re.compile(r"(\s+)|(?<=[^\W\d_]{2}-)(?=[^\W\d_]{2})")
"""Spaces, and behind the hyphen of `drop-in`."""


def _wrapped(line: str, width: int, *, is_cell: bool) -> list[str]:
    """Break a line that is wider than a width between words; in a cell also behind hyphens, and in longer words."""
    if text_width(line) <= width:
        return [line]
    lines = [""]
    for part in filter(None, _BREAK.split(line) if is_cell else re.split(r"(\s+)", line)):
        for piece in _pieces(part, width if is_cell else None):
            if lines[-1] and text_width((lines[-1] + piece).rstrip()) > width:
                lines[-1] = lines[-1].rstrip()
                lines.append("")
            lines[-1] += piece if lines[-1] or len(lines) == 1 else piece.lstrip()
    return [*lines[:-1], *filter(None, [lines[-1].rstrip()])]


def _pieces(word: str, width: int | None) -> Iterator[str]:
    """Yield the parts of a word between which a line may end: beside wide characters, and after `width` columns."""
    if word.isascii() and (width is None or len(word) <= width):
        yield word
        return
    piece, size, was_wide, was_opening = "", 0, False, False
    for character in _characters(word):
        columns, category = _cell_width(character), unicodedata.category(character[0])
        ends = (was_wide or columns == 2) and not was_opening and category not in ("Pe", "Pf", "Po")
        if piece and (ends or (width is not None and size + columns > width)):
            yield piece
            piece, size = "", 0
        piece, size, was_wide = piece + character, size + columns, columns == 2
        was_opening = category in ("Ps", "Pi")
    yield piece
