"""Text within the width of a terminal.

`aligned` writes tables and `filled` sentences, for commands and for results.
"""

import re
import shutil
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

_GAP = "  "

_LONGEST_WORD = 16
"""Longer words, such as names of systems, may be broken."""

_DRAWN_ON_OTHERS = ("Mn", "Me", "Cf")
"""The categories of marks and of formatting characters."""


def terminal_width() -> int:
    """Return the width of COLUMNS or the terminal; 80 without a terminal."""
    return shutil.get_terminal_size().columns


def filled(text: str, width: int) -> str:
    """Break lines that are wider than a width, between words.

    A longer word, such as a signature, stays whole. So does `p = 0.0225`. Texts without spaces,
    such as Chinese ones, break between their characters.
    """
    lines = []
    for line in text.replace(" = ", "\0=\0").split("\n"):
        lines += _wrapped(line, width, is_cell=False)
    return "\n".join(lines).replace("\0=\0", " = ")


def aligned(
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    right: Collection[int] = (),
    whole: Collection[int] = (),
    optional: Sequence[int | tuple[int, ...]] = (),
    has_rule: bool = False,
) -> list[str]:
    """Return the lines of a table; columns are as wide as their widest cell.

    To fit into a width, `optional` columns are left out, the first ones first; a last line names
    them. Then cells are wrapped, in the last columns first, but for `whole` columns. Columns that
    still have no room stand in another table below, beside the names again.

    Args:
        rows: the cells, (rows, columns); the first row is the header.
        width: the most columns of the terminal; None for no bound.
        right: the columns that are aligned to the right.
        whole: the columns whose cells are not wrapped.
        optional: the columns that may be left out, alone or several together.
        has_rule: whether a rule stands below the header, and a row with its first cell alone is a
            heading.
    """
    cell_rows = [row for row in rows if not (has_rule and is_heading(row))]
    columns = list(zip(*cell_rows, strict=True))
    widths = [max(map(_cell_size, column)) for column in columns]
    least = _least_widths(columns, widths, whole)
    kept = _kept(widths, width, whole, optional)
    # Each block begins with the names: the columns up to the first whose cells may be wrapped.
    num_names = 1 + min((number for number in kept if number not in whole), default=0)

    lines: list[str] = []
    for block in _blocks(kept, num_names, least, width):
        sizes = _narrowed(widths, least, block, width)
        are_right = [column in right for column in block]
        if lines:
            lines.append("")
        for number, row in enumerate(rows):
            if has_rule and is_heading(row):
                lines += filled(row[0], width).split("\n") if width else [row[0]]
                continue
            lines += _lines([row[column] for column in block], sizes, are_right)
            if has_rule and number == 0:
                lines.append(_GAP.join("-" * size for size in sizes))

    left_out = [number for number in range(len(columns)) if number not in kept]
    if left_out and width:
        names = ", ".join(" ".join(rows[0][number].split()) for number in left_out)
        lines += filled(f"A wider terminal also shows {names}.", width).split("\n")
    return lines


def _cell_size(cell: str) -> int:
    """Return the width of the widest line of a cell."""
    return max(map(text_width, cell.split("\n")))


def _least_widths(
    columns: Sequence[Sequence[str]],
    widths: Sequence[int],
    whole: Collection[int],
) -> list[int]:
    """Return the widths to which columns can be narrowed, (columns,)."""
    least = []
    for number, column in enumerate(columns):
        size = widths[number]
        if number not in whole:
            size = min(size, _LONGEST_WORD, max(map(_longest_word, column)))
        least.append(size)
    return least


def _kept(
    widths: Sequence[int],
    width: int | None,
    whole: Collection[int],
    optional: Sequence[int | tuple[int, ...]],
) -> list[int]:
    """Return the columns to show, without optional ones that lack room."""
    sizes = []
    for number, size in enumerate(widths):
        if number not in whole:
            size = min(size, _LONGEST_WORD)
        sizes.append(size)
    kept = list(range(len(widths)))
    for column in optional:
        if width is None or _total(sizes, kept) <= width:
            break
        together = column if isinstance(column, tuple) else (column,)
        kept = [number for number in kept if number not in together]
    return kept


def is_heading(row: Sequence[str]) -> bool:
    """Return whether a row of a table has its first cell alone."""
    return len(row) > 1 and bool(row[0]) and not any(row[1:])


def text_width(text: str) -> int:
    """Return the columns of a terminal that a text takes.

    A wide character or an emoji takes two, however many marks, selectors and joined emoji follow.
    """
    if text.isascii():
        return len(text)
    return sum(map(_cell_width, _characters(text)))


def _characters(text: str) -> Iterator[str]:
    """Yield each character with the accents, selectors and joined emoji that are drawn on it; an
    empty character for an empty text.
    """
    whole = ""
    for character in text:
        is_mark = unicodedata.category(character) in _DRAWN_ON_OTHERS
        is_vowel_of_hangul = "\u1160" <= character <= "\u11ff"
        is_skin = "\U0001f3fb" <= character <= "\U0001f3ff"
        is_joined = whole.endswith("\u200d") and unicodedata.east_asian_width(character) == "W"
        if whole and not (is_mark or is_vowel_of_hangul or is_skin or is_joined):
            yield whole
            whole = ""
        whole += character
    yield whole


def _cell_width(character: str) -> int:
    """Return the columns of one of `_characters`."""
    if not character or unicodedata.category(character[0]) in _DRAWN_ON_OTHERS:
        return 0
    is_wide = unicodedata.east_asian_width(character[0]) in "WF"
    return 2 if is_wide or "\ufe0f" in character else 1


def _longest_word(cell: str) -> int:
    return max(map(text_width, re.split(r"\s|(?<=-)", cell)))


def _total(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[column] for column in columns) + len(_GAP) * (len(columns) - 1)


def _blocks(
    kept: Sequence[int],
    num_names: int,
    least: Sequence[int],
    width: int | None,
) -> Iterator[list[int]]:
    """Yield the columns of each table, which begins with the names."""
    names = list(kept[:num_names])
    block = list(names)
    for column in kept[num_names:]:
        has_room = width is None or _total(least, [*block, column]) <= width
        # A table has one column beside the names at least.
        if not has_room and len(block) > num_names:
            yield block
            block = list(names)
        block.append(column)
    yield block


def _narrowed(
    widths: Sequence[int],
    least: Sequence[int],
    block: Sequence[int],
    width: int | None,
) -> list[int]:
    """Return the widths of columns, the last ones narrowed until all fit."""
    excess = 0
    if width is not None:
        excess = max(_total(widths, block) - width, 0)
    sizes = []
    for column in reversed(block):
        taken = min(excess, widths[column] - least[column])
        sizes.append(widths[column] - taken)
        excess -= taken
    return sizes[::-1]


def _lines(
    cells: Sequence[str],
    sizes: Sequence[int],
    are_right: Sequence[bool],
) -> Iterator[str]:
    """Yield the lines of a row, whose cells may take several."""
    columns = []
    for cell, size in zip(cells, sizes, strict=True):
        cell_lines = []
        for line in cell.split("\n"):
            cell_lines += _wrapped(line, size, is_cell=True)
        columns.append(cell_lines)
    for texts in zip_longest(*columns, fillvalue=""):
        padded = map(_padded, texts, sizes, are_right)
        yield _GAP.join(padded).rstrip()


def _padded(text: str, size: int, is_right: bool) -> str:
    """Return a text with spaces before or behind it."""
    spaces = " " * (size - text_width(text))
    if is_right:
        return spaces + text
    return text + spaces


_BREAK = re.compile(r"(\s+)|(?<=[^\W\d_]{2}-)(?=[^\W\d_]{2})")
"""Spaces, and behind the hyphen of `drop-in`."""


def _wrapped(line: str, width: int, *, is_cell: bool) -> list[str]:
    """Break a line that is wider than a width between words.

    In a cell it is broken behind hyphens too, and in longer words.
    """
    if text_width(line) <= width:
        return [line]
    spaced_words = _BREAK.split(line) if is_cell else re.split(r"(\s+)", line)
    longest = width if is_cell else None
    finished: list[str] = []
    current = ""
    for word in filter(None, spaced_words):
        for piece in _pieces(word, longest):
            if current and text_width((current + piece).rstrip()) > width:
                finished.append(current.rstrip())
                current = ""
            # Only the first line keeps the spaces that it begins with.
            current += piece if current or not finished else piece.lstrip()
    last = current.rstrip()
    if last:
        finished.append(last)
    return finished


def _pieces(word: str, width: int | None) -> Iterator[str]:
    """Yield the pieces of a word between which a line may end: beside wide characters, and after
    `width` columns.
    """
    if word.isascii() and (width is None or len(word) <= width):
        yield word
        return
    piece = ""
    size = 0
    was_wide = False
    was_opening = False
    for character in _characters(word):
        columns = _cell_width(character)
        category = unicodedata.category(character[0])
        is_beside_wide = was_wide or columns == 2
        is_closing = category in ("Pe", "Pf", "Po")
        may_end = is_beside_wide and not was_opening and not is_closing
        is_full = width is not None and size + columns > width
        if piece and (may_end or is_full):
            yield piece
            piece = ""
            size = 0
        piece += character
        size += columns
        was_wide = columns == 2
        was_opening = category in ("Ps", "Pi")
    yield piece
