"""Measures this library against bert-score on the CPU: `python -m benchmarks` (`make bench`)."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.cases import compared_systems, growth, host_ceiling, judging, one_pair, start, streaming, systems
from benchmarks.flops import product_rate
from benchmarks.many_rows import many_rows
from benchmarks.run import run_cases
from benchmarks.settings import Settings, add_options
from benchmarks.throughput import documents, minilm, roberta_large
from harness.results import Case

CASES: dict[str, Callable[[Settings], Case]] = {
    "a": minilm,
    "b": roberta_large,
    "c": documents,
    "d": one_pair,
    "e": start,
    "f": streaming,
    "g": systems,
    "i": judging,
    "j": compared_systems,
    "k": many_rows,
    "l": host_ceiling,
    "growth": growth,
}
PRODUCT_SIZES = [512, 1024, 2048]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add_options(parser)
    parser.add_argument("--case", action="append", choices=CASES, help="may be given several times (default: all)")
    parser.add_argument("--stream-pairs", type=int, default=1_000_000, help="the number of pairs that case f streams")
    parser.add_argument(
        "--openvino-python", type=_absolute, help="the interpreter of an environment with bertscore-onnx[openvino]"
    )
    options = vars(parser.parse_args(arguments))
    cases = [CASES[letter] for letter in options.pop("case") or CASES]
    run_cases(cases, Settings(**options), "cpu", lambda: product_rate("cpu", "float32", PRODUCT_SIZES))


def _absolute(path: str) -> Path:
    return Path(path).absolute()  # not resolved: an environment is found by this link


if __name__ == "__main__":
    main()
