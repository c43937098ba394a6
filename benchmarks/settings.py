"""What a run of the benchmarks was told to do."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.checkout import ROOT
from harness.models import Models
from harness.texts import read_pairs, synthetic_pairs

OPTIONAL = ("bert-score-bf16", "bert-score-fp16", "ours-int8", "ours-openvino")
"""Contestants that can be left out, by name."""

SYNTHETIC_PAIRS = 3004
"""How many pairs are made up where no files are given."""


@dataclass(frozen=True)
class Settings:
    """The choices of the command line, and the models and texts they lead to."""

    rounds: int = 5
    pairs: int | None = None
    """The most pairs of any case; None for what each case is meant to have."""

    stream_pairs: int = 1_000_000
    texts: tuple[Path, Path] | None = None
    output: Path = ROOT / "build" / "benchmarks"
    bundles: dict[str, Path] | None = None
    roberta_folder: Path | None = None
    roberta_sizes: dict[str, int] | None = None
    openvino_python: Path | None = None
    left_out: Sequence[str] = ()
    """The names of contestants that take no part."""

    device: str = "cpu"

    @cached_property
    def all_pairs(self) -> tuple[list[str], list[str]]:
        """The candidates and the references."""
        return read_pairs(*self.texts) if self.texts else synthetic_pairs(SYNTHETIC_PAIRS)

    def some_pairs(self, count: int) -> tuple[list[str], list[str]]:
        """Return the first `count` pairs, or fewer where fewer were asked for."""
        count = self.limit(count)
        candidates, references = self.all_pairs
        return candidates[:count], references[:count]

    def limit(self, count: int) -> int:
        """Return how many pairs to take where a case is meant to have `count`."""
        return count if self.pairs is None else min(count, self.pairs)

    @cached_property
    def models(self) -> Models:
        """The models, made as they are needed."""
        texts = [text for side in self.all_pairs for text in side]
        return Models(self.output / "models", texts, self.bundles or {}, self.roberta_folder, self.roberta_sizes)

    def described(self) -> dict[str, str]:
        """Return what a reader has to know to repeat the run."""
        return {
            "rounds": str(self.rounds),
            "pairs": "as each case says" if self.pairs is None else f"at most {self.pairs}",
            "texts": "synthetic" if self.texts is None else "from files",
            "roberta-large": "random weights" if self.roberta_folder is None else "from a folder",
            "device": self.device,
        }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that the benchmarks on the CPU and on CUDA share."""
    environment = [os.environ.get(name) for name in ("BENCH_CANDIDATES", "BENCH_REFERENCES")]
    parser.add_argument("--rounds", type=int, default=5, help="how often each contestant runs (default: 5)")
    parser.add_argument("--pairs", type=int, help="the most pairs of any case, for a quick look")
    parser.add_argument(
        "--texts",
        type=Path,
        nargs=2,
        metavar=("CANDIDATES", "REFERENCES"),
        default=[Path(one) for one in environment if one] if all(environment) else None,
        help="files with one text a line (default: $BENCH_CANDIDATES and $BENCH_REFERENCES, else synthetic texts)",
    )
    parser.add_argument("--output", type=Path, default=Settings.output, help="folder of the results and the models")
    parser.add_argument(
        "--bundle",
        type=_named_path,
        action="append",
        default=[],
        metavar="MODEL-PRECISION=PATH",
        help="a ready-made bundle, such as roberta-large-fp16=PATH; may be given several times",
    )
    parser.add_argument(
        "--skip",
        action="append",
        default=[],
        choices=OPTIONAL,
        help="leave out a contestant of the cases a, b and h; may be given several times",
    )
    parser.add_argument("--roberta-large", type=Path, help="a folder with roberta-large, instead of random weights")


def shared_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of `add_options` say, as fields of `Settings`."""
    if arguments.rounds < 1:
        raise SystemExit(f"--rounds is {arguments.rounds}; expected 1 or more.")
    return {
        "rounds": arguments.rounds,
        "pairs": arguments.pairs,
        "texts": tuple(arguments.texts) if arguments.texts else None,
        "output": arguments.output.resolve(),
        "bundles": dict(arguments.bundle),
        "left_out": tuple(arguments.skip),
        "roberta_folder": arguments.roberta_large and arguments.roberta_large.resolve(),
    }


def _named_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODEL-PRECISION=PATH")
    return name, Path(path).resolve()
