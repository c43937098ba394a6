"""Checks reliability: `python -m reliability` (`make reliability`); the exit status is 1 if a bound
is broken.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.models import Models
from harness.processes import ROOT, Child, ChildError
from harness.results import Case, Figure, Report, machine_facts, write_report
from harness.texts import synthetic_pairs
from reliability import adversary, damage, faults, fuzzing, hostile, jobs, load, mutated, scorers
from reliability.report import as_markdown, cases_as_markdown, is_held, none_of
from reliability.settings import LONG, SHORT, Settings

OUTPUT = ROOT / "build" / "reliability"

CASES: dict[str, tuple[str, Callable[[Settings], list[Figure]]]] = {
    "1": ("batching", load.measure_batching),
    "2": ("overload", load.measure_overload),
    "3": ("faults", faults.measure),
    "4": ("memory", scorers.measure_memory),
    "5": ("threads", scorers.measure_threads),
    "6": ("stopping", load.measure_stopping),
    "7": ("processes", scorers.measure_processes),
    "8": ("damage", damage.measure),
    "9": ("fuzzing", fuzzing.measure),
    "10": ("serving", load.measure_serving),
    "11": ("adversary", adversary.measure),
    "12": ("starvation", load.measure_starvation),
    "13": ("mutated bundles", mutated.measure),
    "14": ("jobs", jobs.measure),
    "15": ("rewritten inputs", jobs.measure_rewritten),
    "16": ("hostile files", hostile.measure),
}


def run_cases(
    numbers: list[str],
    settings: Settings,
    described: Mapping[str, str],
    output: Path,
    *,
    tries: int = 1,
    ignore_speed: bool = False,
) -> bool:
    """Run cases, and write `reliability.json` and `reliability.md` into the output folder.

    A case that breaks a bound is run up to `tries` times; the last run counts, and the report has a
    note. With `ignore_speed` broken bounds of speed are shown but do not count. Returns whether all
    other bounds were held. `described` are the settings for the report.
    """
    output.mkdir(parents=True, exist_ok=True)
    report = Report(time.strftime("%Y-%m-%d %H:%M"), machine_facts(), dict(described))
    for number in numbers:
        begun = time.perf_counter()
        report.cases.append(run_case(number, settings, tries, ignore_speed=ignore_speed))
        print(f"{report.cases[-1].title}: {time.perf_counter() - begun:.1f} s", file=sys.stderr)
        # so that it exists if a later case ends the run
        write_report(report, output / "reliability.json")
    (output / "reliability.md").write_text(as_markdown(report), encoding="utf-8")
    print(cases_as_markdown(report.cases))
    return is_held(report.cases, ignore_speed=ignore_speed)


def run_case(
    number: str, settings: Settings, tries: int = 1, *, ignore_speed: bool = False
) -> Case:
    """Run one case, again while it breaks a bound that counts and tries are left."""
    for used in range(1, tries + 1):
        case = _run_once(number, settings)
        if used > 1:
            case.note = f"Run {used} times, since a bound was broken. {case.note}".strip()
        if is_held([case], ignore_speed=ignore_speed):
            break
    return case


def _run_once(number: str, settings: Settings) -> Case:
    """Run one case; if it fails with an error, a crash or a hang, that is its figure."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen cases."""
    parser = argparse.ArgumentParser(prog="python -m reliability", description=__doc__)
    parser.add_argument(
        "--long", action="store_true", help="the full numbers, for a release; takes half an hour"
    )
    parser.add_argument(
        "--case", action="append", choices=CASES, help="may be given several times (default: all)"
    )
    parser.add_argument(
        "--tries",
        type=int,
        default=1,
        help="run a case that breaks a bound again, up to this many times in all",
    )
    parser.add_argument(
        "--busy",
        action="store_true",
        help="show broken bounds of speed without failing or running the case again",
    )
    chosen = parser.parse_args(arguments)
    numbers = chosen.case or list(CASES)
    models = Models(ROOT / "build" / "benchmarks" / "models", synthetic_pairs(2_000)[1], {})
    # making it takes minutes
    large = models.roberta_large.bundle() if chosen.long and "12" in numbers else None
    settings = Settings(
        LONG if chosen.long else SHORT, models.tiny.bundle(), models.minilm.bundle(), large
    )
    described = {"form": "long" if chosen.long else "short", "device": "cpu"}
    if not run_cases(
        numbers, settings, described, OUTPUT, tries=chosen.tries, ignore_speed=chosen.busy
    ):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
