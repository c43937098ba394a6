"""A report in Markdown, and as a section of benchmarks/figures.md, which has one for each
instruction set.
"""

import statistics
from collections.abc import Sequence

from harness.processes import ROOT
from harness.results import Case, Figure, Report, Row, Timing, preamble, table, with_figures

TIMINGS = (
    "contestant",
    "median",
    "rounds",
    "processor",
    "pairs/s",
    "peak memory",
    "largest difference",
)
FIGURES = ("figure", "median", "rounds", "goal", "met")
DOCUMENT = ROOT / "benchmarks" / "figures.md"
# by the feature that shows them, the widest first
INSTRUCTION_SETS = {"amx_int8": "AMX", "avx512f": "AVX-512", "avx2": "AVX2"}


def as_markdown(report: Report) -> str:
    """Return the machine, the goals, and a section for each case."""
    parts = [preamble(report)]
    if report.peak_rates:
        slowest, fastest = _scaled(min(report.peak_rates)), _scaled(max(report.peak_rates))
        parts.append(
            f"A matrix product reached {slowest} to {fastest}, measured before and after each case."
        )
    parts.append(goals_as_markdown(report))
    parts += [case_as_markdown(case) for case in report.cases]
    return "\n\n".join(part for part in parts if part) + "\n"


def goals_as_markdown(report: Report) -> str:
    """Return one table of all figures that have a goal."""
    rows = [
        (case.letter, *_figure_row(figure))
        for case in report.cases
        for figure in case.figures
        if figure.goal
    ]
    return table(("case", *FIGURES), rows)


def case_as_markdown(case: Case) -> str:
    """Return the heading, the tables and the notes of a case."""
    parts = [f"### ({case.letter}) {case.title}", case.note]
    parts.append(table(TIMINGS, [_timing_row(timing) for timing in case.timings]))
    parts.append(table(FIGURES, [_figure_row(figure) for figure in case.figures]))
    if case.stages:
        shares = ", ".join(f"{stage} {100 * share:.1f} %" for stage, share in case.stages.items())
        parts.append(f"Where our time goes: {shares}.")
    if case.encode_rate:
        parts.append(f"Our rate in the model: {_scaled(case.encode_rate)}.")
    parts += [f"Not measured: {skipped.label} ({skipped.reason})." for skipped in case.skipped]
    return "\n\n".join(part for part in parts if part)


def instruction_set(report: Report) -> str:
    """Return the name of the widest instruction set of a report's machine."""
    features = report.machine["features"].split()
    return next(
        (name for feature, name in INSTRUCTION_SETS.items() if feature in features),
        "other processors",
    )


def marks(name: str) -> tuple[str, str]:
    """Return the lines between which the document has the figures of an instruction set."""
    return f"<!-- figures on {name}: begin -->", f"<!-- figures on {name}: end -->"


def with_reports(document: str, reports: Sequence[Report]) -> str:
    """Return the document with the figures of reports, each in the place of its instruction set."""
    for report in reports:
        document = with_figures(document, [as_markdown(report)], marks(instruction_set(report)))
    return document


def _timing_row(timing: Timing) -> Row:
    return (
        timing.label,
        _seconds(statistics.median(timing.seconds)),
        f"{_seconds(min(timing.seconds))} to {_seconds(max(timing.seconds))}",
        "-"
        if not timing.processor_seconds
        else _seconds(statistics.median(timing.processor_seconds)),
        "-" if timing.rate is None else f"{timing.rate:,.0f}",
        "-" if timing.peak_memory_mb is None else f"{timing.peak_memory_mb:,.0f} MB",
        "-" if timing.score_difference is None else f"{timing.score_difference:.1e}",
    )


def _figure_row(figure: Figure) -> Row:
    goal = "-"
    if figure.goal is not None:
        goal = (
            f"{'at most' if figure.goal.at_most else 'at least'} "
            f"{_value(figure.goal.bound, figure.unit)}"
        )
    spread = (
        "-"
        if figure.low == figure.high
        else f"{_value(figure.low, figure.unit)} to {_value(figure.high, figure.unit)}"
    )
    met = {None: "-", True: "yes", False: "no"}[figure.met]
    return figure.name, _value(figure.median, figure.unit), spread, goal, met


def _value(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.2f} ms"


def _scaled(rate: float) -> str:
    return f"{rate / 1e12:.1f} TFLOP/s" if rate >= 1e12 else f"{rate / 1e9:.1f} GFLOP/s"
