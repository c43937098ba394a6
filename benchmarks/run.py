"""Runs cases one after the other, prints their results and writes them."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from benchmarks.report import as_markdown, case_as_markdown, goals_as_markdown
from benchmarks.settings import Settings
from harness.results import Case, Goal, Report, figure, machine_facts, write_report


def run_cases(
    cases: Iterable[Callable[[Settings], Case]],
    settings: Settings,
    name: str,
    measure_peak: Callable[[], float],
    share_goal: float | None = None,
    facts: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """Run cases and write `NAME.json` and `NAME.md` into the output folder of the settings.

    `measure_peak` measures the matrix-product rate, of which every encode rate should reach
    `share_goal` percent; `facts` are more facts of the machine.
    """
    settings.output.mkdir(parents=True, exist_ok=True)
    report = Report(
        time.strftime("%Y-%m-%d %H:%M"), {**facts, **machine_facts()}, settings.described()
    )
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
        # so that it exists if a later case fails
        write_report(report, settings.output / f"{name}.json")
    (settings.output / f"{name}.md").write_text(as_markdown(report), encoding="utf-8")
    print("\n" + goals_as_markdown(report))
    print(f"\n{settings.output / name}.json and .md written.")
    return report


def add_peak_share(case: Case, peak_rates: Sequence[float], goal: float | None = None) -> None:
    """Add to a case its encode rate as a share of the matrix-product rate, the better one of before
    and after it.
    """
    if case.encode_rate is not None:
        share = 100 * case.encode_rate / max(peak_rates)
        target = None if goal is None else Goal(goal)
        case.figures.append(
            figure("our rate in the model, of a matrix product's", "%", [share], target)
        )
