"""Runs cases one after the other, and writes and shows what they find."""

import statistics
import sys
import time
from collections.abc import Callable, Iterable

from benchmarks.contest import build
from benchmarks.machine import machine_facts
from benchmarks.report import as_markdown, case_as_markdown
from benchmarks.results import Case, Goal, Report, figure, write_report
from benchmarks.settings import Settings


def run_cases(
    cases: Iterable[Callable[[Settings], Case]],
    settings: Settings,
    name: str,
    measure_peak: Callable[[], float],
    share_goal: float | None = None,
) -> Report:
    """Run cases and write `NAME.json` and `NAME.png` into the folder of the settings.

    Args:
        cases: what to run, in this order.
        settings: what each is given.
        name: of the files.
        measure_peak: measures the matrix-product rate that encode rates are compared with.
        share_goal: the least percent of it that every encode rate should reach.
    """
    from benchmarks.chart import draw  # matplotlib takes a second to import, and memory

    settings.output.mkdir(parents=True, exist_ok=True)
    report = Report(time.strftime("%Y-%m-%d %H:%M"), machine_facts(), settings.described())
    for fact, value in report.machine.items():
        print(f"{fact}: {value}")
    report.peak_rates.append(measure_peak())
    for case in cases:
        print(f"{case.__doc__}", file=sys.stderr)
        report.cases.append(case(settings))
        print("\n" + case_as_markdown(report.cases[-1]), flush=True)
        write_report(report, settings.output / f"{name}.json")  # should a later case fail, this much is there
    report.peak_rates.append(measure_peak())
    add_peak_shares(report, share_goal)
    write_report(report, settings.output / f"{name}.json")
    (settings.output / f"{name}.md").write_text(as_markdown(report), encoding="utf-8")
    draw(report, settings.output / f"{name}.png")
    print(f"\n{settings.output / name}.json, .md and .png written.")
    return report


def add_peak_shares(report: Report, goal: float | None = None) -> None:
    """Add to each case its encode rate as a share of the matrix-product rate, the mean of before and after."""
    peak = statistics.mean(report.peak_rates)
    for case in report.cases:
        if case.encode_rate is not None:
            share = 100 * case.encode_rate / peak
            target = None if goal is None else Goal(goal)
            case.figures.append(figure("our encode rate, of a matrix product's", "%", [share], target))


def product_rate(device: str, dtype: str, sizes: list[int]) -> float:
    """Measure the matrix-product rate in a process of its own."""
    rate: float = build("product-rate", device=device, dtype=dtype, sizes=sizes)
    return rate
