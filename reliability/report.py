"""Figures with bounds, and their table; `python -m reliability.report REPORT` writes it into
reliability/figures.md.
"""

import sys
from pathlib import Path

from harness.processes import ROOT
from harness.results import Case, Figure, Goal, Report, figure, preamble, table, write_figures

NEVER = sys.float_info.max  # written instead of infinity, which JSON does not have
DOCUMENT = ROOT / "reliability" / "figures.md"
HEADER = ("case", "measured", "figure", "bound", "held")


def at_most(name: str, value: float, unit: str, bound: float, *, of_speed: bool = False) -> Figure:
    """Make a figure with an upper bound; `of_speed` if a busy machine alone can break it."""
    return figure(
        name, unit, [min(float(value), NEVER)], Goal(bound, at_most=True, of_speed=of_speed)
    )


def at_least(name: str, value: float, unit: str, bound: float, *, of_speed: bool = False) -> Figure:
    """Make a figure with a lower bound; `of_speed` if a busy machine alone can break it."""
    return figure(name, unit, [value], Goal(bound, of_speed=of_speed))


def none_of(name: str, count: int) -> Figure:
    """Make a figure of something that must not happen."""
    return at_most(name, count, "", 0)


def is_held(cases: list[Case], *, ignore_speed: bool = False) -> bool:
    """Return whether every figure keeps its bound; `ignore_speed` excludes bounds that a busy
    machine can break.
    """
    return all(
        figure.met or (ignore_speed and figure.goal is not None and figure.goal.of_speed)
        for case in cases
        for figure in case.figures
    )


def as_markdown(report: Report) -> str:
    """Return the machine, the settings and the table."""
    return f"{preamble(report)}\n\n{cases_as_markdown(report.cases)}\n"


def cases_as_markdown(cases: list[Case]) -> str:
    """Return the table, and the notes of its cases."""
    rows = [_row(case, figure) for case in cases for figure in case.figures]
    notes = [f"\n{case.letter} {case.title}: {case.note}" for case in cases if case.note]
    return "\n".join([table(HEADER, rows), *notes])


def _row(case: Case, figure: Figure) -> tuple[str, ...]:
    assert figure.goal is not None
    bound = (
        f"{'at most' if figure.goal.at_most else 'at least'} "
        f"{_value(figure.goal.bound, figure.unit)}"
    )
    held = "yes" if figure.met else "NO"
    return (
        f"{case.letter} {case.title}",
        figure.name,
        _value(figure.median, figure.unit),
        bound,
        held,
    )


def _value(value: float, unit: str) -> str:
    return "never" if value == NEVER else f"{value:,.4g} {unit}".strip()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write_figures(DOCUMENT, [Path(sys.argv[1])], as_markdown)
