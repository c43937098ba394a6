"""Runs cases one after the other, and writes and shows what they find."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from benchmarks.report import as_markdown, case_as_markdown, goals_as_markdown
from benchmarks.settings import Settings
from harness.machine import machine_facts
from harness.results import Case, Goal, Report, figure, write_report


def run_cases(
    cases: Iterable[Callable[[Settings], Case]],
    settings: Settings,
    name: str,
    measure_peak: Callable[[], float],
    share_goal: float | None = None,
    facts: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """Run cases and write `NAME.json` and `NAME.png` into the folder of the settings.

    Args:
        cases: what to run, in this order.
        settings: what each is given.
        name: of the files.
        measure_peak: measures the matrix-product rate that encode rates are compared with.
        share_goal: the least percent of it that every encode rate should reach.
        facts: what to say of the machine besides the usual.
    """
    from benchmarks.chart import draw  # the figures can be read without matplotlib, so only this needs it

    settings.output.mkdir(parents=True, exist_ok=True)
    report = Report(time.strftime("%Y-%m-%d %H:%M"), {**facts, **machine_facts()}, settings.described())
    for fact, value in report.machine.items():
        print(f"{fact}: {value}")
    report.peak_rates.append(measure_peak())
    for measure in cases:
        print(measure.__doc__, file=sys.stderr)
        case = measure(settings)
        report.peak_rates.append(measure_peak())
        add_peak_share(case, report.peak_rates[-2:], share_goal)
        report.cases.append(case)
        print("\n" + case_as_markdown(case), flush=True)
        write_report(report, settings.output / f"{name}.json")  # should a later case fail, this much is there
    (settings.output / f"{name}.md").write_text(as_markdown(report), encoding="utf-8")
    draw(report, settings.output / f"{name}.png")
    print("\n" + goals_as_markdown(report))
    print(f"\n{settings.output / name}.json, .md and .png written.")
    return report


def add_peak_share(case: Case, peak_rates: Sequence[float], goal: float | None = None) -> None:
    """Add to a case its encode rate as a share of the matrix-product rate, the better of before and after it."""
    if case.encode_rate is not None:
        share = 100 * case.encode_rate / max(peak_rates)
        target = None if goal is None else Goal(goal)
        case.figures.append(figure("our rate in the model, of a matrix product's", "%", [share], target))
