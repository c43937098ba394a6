"""Tables of results.

`Table` writes rows as text, TSV, LaTeX or Markdown, from one list of columns; the functions below
it write values and names.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from bertscore_onnx.tables.aligned import aligned, is_heading, terminal_width

TableFormat = Literal["text", "tsv", "latex", "markdown"]
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
    | {"[": "{[}", "|": "$|$", "<": "$<$", ">": "$>$", "*": "$^{*}$"}
    | {"Δ": r"$\Delta$", "↓": r"$\downarrow$", "±": r"$\pm$"}
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
    """A table whose rows are mappings of keys.

    Text and LaTeX show the columns, in their formats; TSV shows every key, with all digits.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Sequence[Mapping[str, Any]],
        optional: Sequence[str] = (),
    ) -> None:
        """Take the columns and the rows.

        A cell is blank where a row lacks the key, and a row with its first cell alone is a heading.

        Args:
            columns: those written by `str` hold names, and are aligned to the left.
            rows: the values by key.
            optional: the keys of the columns that a narrow terminal does not show, the least
                important first; of columns that go together with a space between.
        """
        self.columns = columns
        self.rows = rows
        self.optional = optional
        self._are_names = [write is str for _, _, write in columns]

    def text(self) -> str:
        """Align the columns within the width of the terminal."""
        keys = [key for _, key, _ in self.columns]
        numbers = [column for column, is_name in enumerate(self._are_names) if not is_name]
        optional = []
        for together in self.optional:
            optional.append(tuple(keys.index(key) for key in together.split() if key in keys))
        lines = aligned(
            self._cells(),
            terminal_width(),
            right=numbers,
            whole=numbers,
            optional=optional,
            has_rule=True,
        )
        return "\n".join(lines)

    def latex(self, caption: str, label: str = "", comments: Sequence[str] = ()) -> str:
        """Write a table of the LaTeX package booktabs.

        It spans both columns of a page where it does not fit into one. Headers, names and the
        caption are escaped, other cells are LaTeX.
        """
        header, rows, width = self._latex_lines()
        environment = "table" if width <= _COLUMN_OF_A_PAGE else "table*"
        # Names to the left, numbers to the right, so that their digits stand below each other.
        alignment = ""
        for is_name in self._are_names:
            side = "r"
            if is_name:
                side = "l"
            alignment += side
        lines = [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{{environment}}}",
            r"  \centering",
            r"  \footnotesize",
            r"  \setlength{\tabcolsep}{3pt}",
            rf"  \begin{{tabular}}{{@{{}}{alignment}@{{}}}}",
            r"    \toprule",
            header,
            r"    \midrule",
            *rows,
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"  \caption{{{latex_text(caption)}}}",
        ]
        if label:
            lines.append(rf"  \label{{{label}}}")
        lines.append(rf"\end{{{environment}}}")
        for comment in comments:
            lines.append(f"% {_UNPRINTABLE.sub(' ', comment)}")
        return "\n".join(lines)

    def markdown(self) -> str:
        """Write a table of GitHub's Markdown, between blank lines.

        Runs of blanks and line breaks in a cell are one blank, as Markdown shows them.
        """
        lines = []
        for cells in self._cells():
            written = [markdown_text(" ".join(cell.split())) for cell in cells]
            if is_heading(cells):
                written[0] = f"**{written[0]}**"
            lines.append(f"| {' | '.join(written)} |")
        rule = ""
        for is_name in self._are_names:
            mark = "|--:"
            if is_name:
                mark = "|---"
            rule += mark
        return "\n".join(["", lines[0], f"{rule}|", *lines[1:], ""])

    def _latex_lines(self) -> tuple[str, list[str], float]:
        """Return the lines of the header and of the rows, and their width."""
        lines = []
        widths = [0.0] * len(self.columns)
        for number, cells in enumerate(self._cells()):
            if is_heading(cells):
                if number > 1:  # below the header is a rule already
                    lines.append(r"    \midrule")
                title = latex_text(cells[0])
                lines.append(rf"    \multicolumn{{{len(cells)}}}{{@{{}}l}}{{{title}}} \\")
                continue
            written = []
            for column, cell in enumerate(cells):
                widths[column] = max(widths[column], _latex_width(cell))
                if number == 0 or self._are_names[column]:
                    cell = latex_text(cell)
                written.append(cell)
            lines.append(f"    {' & '.join(written)} \\\\")
        return lines[0], lines[1:], sum(widths) + _COLUMN_GAP * (len(widths) - 1)

    def _cells(self) -> list[list[str]]:
        """Return the header and the rows as they are written."""
        lines = [[title for title, _, _ in self.columns]]
        for row in self.rows:
            cells = []
            for _, key, write in self.columns:
                cells.append(write(row[key]) if key in row else "")
            lines.append(cells)
        return lines

    def tsv(self) -> str:
        """Write the table as TSV; missing values are empty."""
        # Rows may have different columns: the header has all, in order of appearance.
        header = list(dict.fromkeys(chain.from_iterable(self.rows)))
        lines = ["\t".join(header)]
        for row in self.rows:
            cells = [_tsv_cell(row.get(key)) for key in header]
            lines.append("\t".join(cells))
        return "\n".join(lines)


def _tsv_cell(value: Any) -> str:
    """Write a value in one column and one row."""
    if value is None:
        return ""
    return str(value).translate(_TSV)


# How values are written.


def latex_text(text: str) -> str:
    """Escape what LaTeX would read as commands.

    Signs of statistics become mathematics, and no minus is a hyphen.
    """
    escaped = _UNPRINTABLE.sub(" ", text).translate(_LATEX)
    with_minus = re.sub(r"(?<![\w-])-(?=\d)", "$-$", escaped)
    return re.sub(r"\$\^\{\*\}\$\\_(\w+)", r"$^{*}_{\\mathrm{\1}}$", with_minus)  # acc*_eq


def markdown_text(text: str) -> str:
    """Escape what Markdown would read as marks."""
    return re.sub(r"([\\`*_<>\[\]|#~&])", r"\\\1", text)


def latex_value(text: str) -> str:
    """Write a number, a range, an interval or a p-value in LaTeX."""
    with_ranges = re.sub(r"(?<=\d)-(?=\d)", "--", latex_text(text.strip()))
    return re.sub(r"(?<!\w)\+(?=\d)", "$+$", with_ranges)


def latex_number(text: str, *, is_bold: bool) -> str:
    """Return a number in LaTeX, the best in bold."""
    if is_bold:
        return rf"$\mathbf{{{text}}}$"
    return f"${text}$"


def _latex_width(cell: str) -> float:
    """Return a lower bound of the width of a cell in LaTeX, in points."""
    shown = re.sub(r"\\[a-zA-Z]+|[$^{}\\]", "", cell)
    return _EM * sum(map(_ems, shown))


def _ems(character: str) -> float:
    if character in _EMS:
        return _EMS[character]
    return 0.75 if character.isupper() else 0.53


plain: Format = "{}".format
"""Writes a value as it is, aligned to the right."""


def number(digits: int, *, signed: bool = False, missing: str = MISSING) -> Format:
    """Return a format of numbers; `signed` ones have a plus sign too, but none if all is 0."""
    sign = "+" if signed else ""

    def write(value: float | None) -> str:
        if value is None:
            return missing
        text = f"{value:{sign}.{digits}f}"
        if text.strip("+-0."):
            return text
        return text.lstrip("+-")

    return write


def p_value(digits: int, level: float) -> Format:
    """Return a format of p-values, without a zero before the point.

    If all decimals are 0, a bound is written, such as `<.001`. A p beside the level of
    significance has more decimals, such as `.0504`: no other p looks like the level.
    """

    def write(value: float | None) -> str:
        if value is None:
            return MISSING
        if value < 0.5 * 10**-digits:
            return f"<.{'1':0>{digits}}"
        decimals = digits
        while value != level and f"{value:.{decimals}f}" == f"{level:.{decimals}f}":
            decimals += 1
        return f"{value:.{decimals}f}".removeprefix("0")

    return write


def count(value: int | None) -> str:
    """Write a whole number, with a comma at the thousands."""
    if value is None:
        return MISSING
    return f"{value:,}"


def listed(names: Sequence[str]) -> str:
    """Write names in a sentence, such as `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
