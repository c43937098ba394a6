"""Shows a report on the terminal, and writes its tables in Markdown."""

import statistics

from harness.markdown import Row, preamble, table
from harness.results import Case, Figure, Report, Timing

TIMINGS = ("contestant", "median", "rounds", "pairs/s", "peak memory", "largest difference")
FIGURES = ("figure", "median", "rounds", "goal", "met")


def as_markdown(report: Report) -> str:
    """Return the machine and a section for each case."""
    parts = [preamble(report)]
    if report.peak_rates:
        slowest, fastest = _scaled(min(report.peak_rates)), _scaled(max(report.peak_rates))
        parts.append(f"A matrix product reached {slowest} to {fastest}, measured before and after each case.")
    parts.append(goals_as_markdown(report))
    parts += [case_as_markdown(case) for case in report.cases]
    return "\n\n".join(part for part in parts if part) + "\n"


def goals_as_markdown(report: Report) -> str:
    """Return one table of all figures that have a goal."""
    rows = [(case.letter, *_figure_row(one)) for case in report.cases for one in case.figures if one.goal]
    return table(("case", *FIGURES), rows)


def case_as_markdown(case: Case) -> str:
    """Return the heading, the tables and the notes of a case."""
    parts = [f"### ({case.letter}) {case.title}", case.note]
    parts.append(table(TIMINGS, [_timing_row(one) for one in case.timings]))
    parts.append(table(FIGURES, [_figure_row(one) for one in case.figures]))
    if case.stages:
        shares = ", ".join(f"{stage} {100 * share:.1f} %" for stage, share in case.stages.items())
        parts.append(f"Where our time goes: {shares}.")
    if case.encode_rate:
        parts.append(f"Our rate in the model: {_scaled(case.encode_rate)}.")
    for curve in case.curves:
        rows = [(f"{along:g}", f"{rate:,.0f}") for along, rate in curve.points]
        parts.append(table((curve.along, "pairs/s"), rows))
    parts += [f"Not measured: {one.label} ({one.reason})." for one in case.skipped]
    return "\n\n".join(part for part in parts if part)


def _timing_row(one: Timing) -> Row:
    return (
        one.label,
        _seconds(statistics.median(one.seconds)),
        f"{_seconds(min(one.seconds))} to {_seconds(max(one.seconds))}",
        "-" if one.rate is None else f"{one.rate:,.0f}",
        "-" if one.peak_memory_mb is None else f"{one.peak_memory_mb:,.0f} MB",
        "-" if one.score_difference is None else f"{one.score_difference:.1e}",
    )


def _figure_row(one: Figure) -> Row:
    goal = "-"
    if one.goal is not None:
        goal = f"{'at most' if one.goal.at_most else 'at least'} {_value(one.goal.bound, one.unit)}"
    spread = "-" if one.low == one.high else f"{_value(one.low, one.unit)} to {_value(one.high, one.unit)}"
    met = {None: "-", True: "yes", False: "no"}[one.met]
    return one.name, _value(one.median, one.unit), spread, goal, met


def _value(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.2f} ms"


def _scaled(rate: float) -> str:
    return f"{rate / 1e12:.1f} TFLOP/s" if rate >= 1e12 else f"{rate / 1e9:.1f} GFLOP/s"
