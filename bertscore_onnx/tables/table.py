"""Results as tables: text, TSV or LaTeX from one list of columns; and how values and names are written."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from bertscore_onnx.tables.aligned import aligned, is_heading, terminal_width

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
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "|": "$|$"}
    | {"Δ": r"$\Delta$", "↓": r"$\downarrow$", "±": r"$\pm$", "<": "$<$", ">": "$>$", "*": "$^{*}$"}
)
"""A `[` after the end of a row would be an argument of LaTeX's."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")

_COLUMN_OF_A_PAGE = 224.0
"""Points: 7.9 cm; articles in two columns have 8.1 cm, and smaller letters."""

_COLUMN_GAP = 6.0
"""Points: twice LaTeX's `tabcolsep` as it is set here."""

_EM = 9.25
"""Points at `footnotesize` in a text of 11 points."""

_EMS = (
    dict.fromkeys("ijl.,:;'!|I", 0.29)
    | dict.fromkeys(" ()[]frstz-/*", 0.4)
    | dict.fromkeys("mw+=<>~Δ%&@", 0.83)
    | dict.fromkeys("MW", 1.03)
)
"""Widths of characters of Computer Modern; of capitals .75, of others .53."""


class Table:
    """Rows by key. Text and LaTeX show the columns, in their formats; TSV shows every key, with all digits."""

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], optional: Sequence[str] = ()
    ) -> None:
        """Take the columns; those written by `str` hold names, and are aligned to the left.

        A cell is blank where a row lacks the key, and a row with its first cell alone is a heading. `optional` are the
        keys of the columns that a narrow terminal does not show, the least important first; of columns that go together
        with a space between.
        """
        self.columns = columns
        self.rows = rows
        self.optional = optional

    def text(self) -> str:
        """Align the columns within the width of the terminal."""
        keys = [key for _, key, _ in self.columns]
        numbers = [column for column, (_, _, write) in enumerate(self.columns) if write is not str]
        optional = [tuple(keys.index(key) for key in together.split() if key in keys) for together in self.optional]
        lines = aligned(self._cells(), terminal_width(), right=numbers, whole=numbers, optional=optional, has_rule=True)
        return "\n".join(lines)

    def latex(self, caption: str, label: str = "", comments: Sequence[str] = ()) -> str:
        """Write a table of the package booktabs, over both columns of a page where it does not fit into one.

        Headers, names and the caption are escaped, other cells are LaTeX.
        """
        are_names = [write is str for _, _, write in self.columns]
        lines, widths = [], [0.0] * len(are_names)
        for number, cells in enumerate(self._cells()):
            if is_heading(cells):
                lines += [r"    \midrule"] * (number > 1)
                lines.append(rf"    \multicolumn{{{len(cells)}}}{{@{{}}l}}{{{latex_text(cells[0])}}} \\")
                continue
            widths = [max(width, _latex_width(cell)) for width, cell in zip(widths, cells, strict=True)]
            written = [
                latex_text(cell) if is_name or not number else cell
                for cell, is_name in zip(cells, are_names, strict=True)
            ]
            lines.append(f"    {' & '.join(written)} \\\\")
        total = sum(widths) + _COLUMN_GAP * (len(widths) - 1)
        environment = "table" if total <= _COLUMN_OF_A_PAGE else "table*"
        alignment = "".join("l" if is_name else "r" for is_name in are_names)
        return "\n".join(
            [
                r"% needs \usepackage{booktabs}",
                rf"\begin{{{environment}}}",
                r"  \centering",
                r"  \footnotesize",
                r"  \setlength{\tabcolsep}{3pt}",
                rf"  \begin{{tabular}}{{@{{}}{alignment}@{{}}}}",
                *[r"    \toprule", lines[0], r"    \midrule", *lines[1:], r"    \bottomrule"],
                r"  \end{tabular}",
                rf"  \caption{{{latex_text(caption)}}}",
                *[rf"  \label{{{label}}}"] * bool(label),
                rf"\end{{{environment}}}",
                *(f"% {_UNPRINTABLE.sub(' ', comment)}" for comment in comments),
            ]
        )

    def _cells(self) -> list[list[str]]:
        """Return the header and the rows as they are written."""
        rows = ([write(row[key]) if key in row else "" for _, key, write in self.columns] for row in self.rows)
        return [[title for title, _, _ in self.columns], *rows]

    def tsv(self) -> str:
        """Write the header and the rows; a missing value is empty."""
        header = list(dict.fromkeys(key for row in self.rows for key in row))
        cells = [["" if row.get(key) is None else str(row[key]).translate(_TSV) for key in header] for row in self.rows]
        return "\n".join("\t".join(line) for line in [header, *cells])


# How values are written.


def latex_text(text: str) -> str:
    """Escape what LaTeX would read as commands; signs of statistics become mathematics, and no minus is a hyphen."""
    text = re.sub(r"(?<![\w-])-(?=\d)", "$-$", _UNPRINTABLE.sub(" ", text).translate(_LATEX))
    return re.sub(r"\$\^\{\*\}\$\\_(\w+)", r"$^{*}_{\\mathrm{\1}}$", text)  # acc*_eq


def latex_value(text: str) -> str:
    """Write a number, a range, an interval or a p-value, with its mark, in LaTeX."""
    return re.sub(r"(?<!\w)\+(?=\d)", "$+$", re.sub(r"(?<=\d)-(?=\d)", "--", latex_text(text.strip())))


def latex_number(text: str, *, is_bold: bool) -> str:
    """Return a number in LaTeX, the best in bold."""
    return rf"$\mathbf{{{text}}}$" if is_bold else f"${text}$"


def _latex_width(cell: str) -> float:
    """Return at least how wide a text or a number is in Computer Modern, in points."""
    shown = re.sub(r"\\[a-zA-Z]+|[$^{}\\]", "", cell)
    return _EM * sum(_EMS.get(character, 0.75 if character.isupper() else 0.53) for character in shown)


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


def natural_key(name: str | int) -> tuple[list[Any], str]:
    """Return a key to sort names by: numbers in them count as numbers, so that seg-2 comes before seg-10."""
    parts: list[Any] = re.split(r"([0-9]+)", str(name))
    for at in range(1, len(parts), 2):
        digits = parts[at].lstrip("0")
        parts[at] = (len(digits), digits)
    return parts, str(name)
