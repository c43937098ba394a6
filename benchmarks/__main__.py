"""Measures this library against bert-score on the CPU: `python -m benchmarks` (`make bench`)."""

import argparse
from collections.abc import Callable, Sequence

from benchmarks import cases
from benchmarks.flops import product_rate
from benchmarks.run import run_cases
from benchmarks.settings import Settings, add_options
from harness.results import Case

CASES: dict[str, Callable[[Settings], Case]] = {
    "a": cases.minilm,
    "b": cases.roberta_large,
    "c": cases.documents,
    "d": cases.one_pair,
    "e": cases.start,
    "f": cases.streaming,
    "g": cases.systems,
    "i": cases.judging,
    "j": cases.compared_systems,
    "l": cases.host_ceiling,
    "m": cases.host_alone,
}
PRODUCT_SIZES = [512, 1024, 2048]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add_options(parser)
    parser.add_argument(
        "--case", action="append", choices=CASES, help="may be given several times (default: all)"
    )
    options = vars(parser.parse_args(arguments))
    chosen = [CASES[letter] for letter in options.pop("case") or CASES]
    run_cases(
        chosen, Settings(**options), "cpu", lambda: product_rate("cpu", "float32", PRODUCT_SIZES)
    )


if __name__ == "__main__":
    main()
