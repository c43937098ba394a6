"""Measures this library against bert-score on the CPU: `python -m benchmarks` (`make bench`)."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.flops import product_rate
from benchmarks.run import run_cases
from benchmarks.settings import Settings, add_options, shared_settings

PRODUCT_SIZES = [512, 1024, 2048]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add_options(parser)
    parser.add_argument("--case", action="append", choices=CASES, help="may be given several times (default: all)")
    parser.add_argument("--stream-pairs", type=int, default=1_000_000, help="how many pairs case f streams")
    parser.add_argument(
        "--openvino-python", type=_absolute, help="the interpreter of an environment with bertscore-onnx[openvino]"
    )
    chosen = parser.parse_args(arguments)
    settings = Settings(
        **shared_settings(chosen), stream_pairs=chosen.stream_pairs, openvino_python=chosen.openvino_python
    )
    cases = [CASES[letter] for letter in chosen.case or CASES]
    run_cases(cases, settings, "cpu", lambda: product_rate("cpu", "float32", PRODUCT_SIZES))


def _absolute(path: str) -> Path:
    return Path(path).absolute()  # not resolved: the link in an environment is what makes it one


if __name__ == "__main__":
    main()
