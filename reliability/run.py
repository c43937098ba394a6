"""Runs cases one after the other, each in a process of its own, and shows what they find."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from harness.child import Child, ChildError
from harness.machine import machine_facts
from harness.results import Case, Report, write_report
from reliability.bounds import none_of
from reliability.cases import CASES
from reliability.report import as_markdown, cases_as_markdown, holds, is_held
from reliability.settings import Settings


def run_cases(
    numbers: list[str],
    settings: Settings,
    described: Mapping[str, str],
    output: Path,
    *,
    tries: int = 1,
    ignore_speed: bool = False,
) -> bool:
    """Run cases and write `reliability.json` and `reliability.md`.

    Args:
        numbers: the cases, by their number.
        settings: what each works with.
        described: what a reader has to know of the settings.
        output: the folder to write into.
        tries: how often a case is run at most, while it breaks a bound that counts; the last run counts, and the report
            tells.
        ignore_speed: show a broken bound of speed without failing: the machine may be busy with other things.

    Returns:
        Whether every bound was held, as far as it counts.
    """
    output.mkdir(parents=True, exist_ok=True)
    report = Report(time.strftime("%Y-%m-%d %H:%M"), machine_facts(), dict(described))
    for number in numbers:
        begun = time.perf_counter()
        report.cases.append(run_case(number, settings, tries, ignore_speed=ignore_speed))
        print(f"{report.cases[-1].title}: {time.perf_counter() - begun:.1f} s", file=sys.stderr)
        write_report(report, output / "reliability.json")  # should a later case break the run, this much is there
    (output / "reliability.md").write_text(as_markdown(report), encoding="utf-8")
    print(cases_as_markdown(report.cases))
    return is_held(report, ignore_speed=ignore_speed)


def run_case(number: str, settings: Settings, tries: int = 1, *, ignore_speed: bool = False) -> Case:
    """Run one case, and again while it breaks a bound that counts and there are tries left."""
    for used in range(1, tries + 1):
        case = _run_once(number, settings)
        if used > 1:
            case.note = f"Run {used} times, since a bound was broken. {case.note}".strip()
        if holds(case, ignore_speed=ignore_speed):
            break
    return case


def _run_once(number: str, settings: Settings) -> Case:
    """Run one case; where it breaks down, that is its figure."""
    title, measure = CASES[number]
    case = Case(number, title)
    with Child() as child:
        try:
            case.figures = child.do(measure, settings, limit=settings.sizes.case_seconds)
        except ChildError as error:
            print(f"{title}: {error}", file=sys.stderr)
            case.note = str(error)
            case.figures = [none_of("cases that broke down", 1)]
    return case
