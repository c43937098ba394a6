"""One table of all figures."""

from harness.markdown import preamble, table
from harness.results import Case, Figure, Report
from reliability.bounds import NEVER

HEADER = ("case", "measured", "figure", "bound", "held")


def as_markdown(report: Report) -> str:
    """Return the machine, the settings and the table."""
    return f"{preamble(report)}\n\n{cases_as_markdown(report.cases)}\n"


def cases_as_markdown(cases: list[Case]) -> str:
    """Return the table, and what there is to say of its cases."""
    rows = [_row(case, one) for case in cases for one in case.figures]
    return "\n".join(
        [table(HEADER, rows), *(f"\n{case.letter} {case.title}: {case.note}" for case in cases if case.note)]
    )


def is_held(report: Report, *, ignore_speed: bool = False) -> bool:
    """Say whether every figure keeps to its bound; `ignore_speed` leaves out those that a busy machine can break."""
    return all(holds(case, ignore_speed=ignore_speed) for case in report.cases)


def holds(case: Case, *, ignore_speed: bool = False) -> bool:
    """Say the same of one case."""
    return all(one.met or (ignore_speed and one.goal is not None and one.goal.of_speed) for one in case.figures)


def _row(case: Case, one: Figure) -> tuple[str, ...]:
    assert one.goal is not None
    bound = f"{'at most' if one.goal.at_most else 'at least'} {_value(one.goal.bound, one.unit)}"
    return f"{case.letter} {case.title}", one.name, _value(one.median, one.unit), bound, "yes" if one.met else "NO"


def _value(value: float, unit: str) -> str:
    return "never" if value == NEVER else f"{value:,.4g} {unit}".strip()
