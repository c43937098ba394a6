"""Checks reliability: `python -m reliability` (`make reliability`); the exit status is 1 if a bound is broken."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness.models import Models
from harness.processes import ROOT
from harness.texts import synthetic_pairs
from reliability.run import CASES, run_cases
from reliability.settings import LONG, SHORT, Settings


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen cases."""
    parser = argparse.ArgumentParser(prog="python -m reliability", description=__doc__)
    parser.add_argument("--long", action="store_true", help="the full numbers, for a release; takes half an hour")
    parser.add_argument("--case", action="append", choices=CASES, help="may be given several times (default: all)")
    parser.add_argument(
        "--tries", type=int, default=1, help="run a case that breaks a bound again, up to this many times in all"
    )
    parser.add_argument(
        "--busy", action="store_true", help="show broken bounds of speed without failing or running the case again"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "reliability", help="folder of the results")
    parser.add_argument("--tiny", type=Path, metavar="BUNDLE", help="use this bundle instead of a random BERT's")
    parser.add_argument("--minilm", type=Path, metavar="BUNDLE", help="use this bundle instead of MiniLM's")
    parser.add_argument(
        "--large", type=Path, metavar="BUNDLE", help="use this bundle instead of a random roberta-large's"
    )
    chosen = parser.parse_args(arguments)
    models = Models(ROOT / "build" / "benchmarks" / "models", synthetic_pairs(2_000)[1], {})
    numbers = chosen.case or list(CASES)
    large = chosen.large
    if large is None and chosen.long and "12" in numbers:  # making it takes minutes
        large = models.roberta_large.bundle()
    settings = Settings(
        sizes=LONG if chosen.long else SHORT,
        tiny=(chosen.tiny or models.tiny.bundle()).resolve(),
        minilm=(chosen.minilm or models.minilm.bundle()).resolve(),
        large=large and large.resolve(),
    )
    described = {"form": "long" if chosen.long else "short", "device": "cpu"}
    if not run_cases(numbers, settings, described, chosen.output, tries=chosen.tries, ignore_speed=chosen.busy):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
