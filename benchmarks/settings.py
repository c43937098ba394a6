"""The settings of a run, and the command-line options for them."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.models import Model, Models
from harness.processes import ROOT
from harness.texts import read_pairs, synthetic_pairs

OPTIONAL = (  # contestants that can be left out
    *(
        "bert-score-bf16",
        "bert-score-fp16",
        "bert-score-fast",
        "script",
        "ours-int8",
        "ours-openvino",
    ),
    *("torch-sdpa", "torch-unpadded"),
)
SYNTHETIC_PAIRS = 3004  # without files


@dataclass(frozen=True)
class Settings:
    """The options of the command line, and the models and texts that follow from them."""

    rounds: int = 5
    pairs: int | None = None  # the most pairs of any case; None for the number of each case
    texts: Sequence[Path] | None = None  # of candidates and of references
    output: Path = ROOT / "build" / "benchmarks"
    bundles: Sequence[tuple[str, Path]] = ()  # that the user gave, each with MODEL-PRECISION
    roberta_folder: Path | None = None
    left_out: Sequence[str] = ()  # names of contestants
    device: str = "cpu"
    is_rehearsal: bool = False  # of what needs a GPU, on the CPU

    @cached_property
    def all_pairs(self) -> tuple[list[str], list[str]]:
        """The candidates and the references."""
        return read_pairs(*self.texts) if self.texts else synthetic_pairs(SYNTHETIC_PAIRS)

    def first_pairs(self, count: int) -> tuple[list[str], list[str]]:
        """Return the first `count` pairs, or fewer with `--pairs`."""
        count = self.limit(count)
        candidates, references = self.all_pairs
        return candidates[:count], references[:count]

    def limit(self, count: int) -> int:
        """Return the number of pairs of a case that has `count` without `--pairs`."""
        return count if self.pairs is None else min(count, self.pairs)

    @cached_property
    def models(self) -> Models:
        """The models, each made on first use."""
        texts = [text for side in self.all_pairs for text in side]
        return Models(self.output / "models", texts, dict(self.bundles), self.roberta_folder)

    @property
    def gpu_model(self) -> Model:
        """The model that is measured on a GPU; in a rehearsal a tiny one."""
        return self.models.tiny if self.is_rehearsal else self.models.roberta_large

    def described(self) -> dict[str, str]:
        """Return the settings that a reader needs to repeat the run."""
        return {
            "rounds": str(self.rounds),
            "pairs": "as in each case" if self.pairs is None else f"at most {self.pairs}",
            "texts": "synthetic" if self.texts is None else "from files",
            "roberta-large": "random weights" if self.roberta_folder is None else "from a folder",
            "device": self.device,
        }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that the benchmarks on the CPU and on CUDA share; each has the name of a
    field of `Settings`.
    """
    environment = [os.environ.get(name) for name in ("BENCH_CANDIDATES", "BENCH_REFERENCES")]
    parser.add_argument(
        "--rounds", type=_count, default=5, help="how often each contestant runs (default: 5)"
    )
    parser.add_argument("--pairs", type=int, help="the most pairs of any case, for a quick look")
    parser.add_argument(
        "--texts",
        type=Path,
        nargs=2,
        metavar=("CANDIDATES", "REFERENCES"),
        default=[Path(path) for path in environment if path] if all(environment) else None,
        help=(
            "files with one text a line (default: $BENCH_CANDIDATES and $BENCH_REFERENCES, else "
            "synthetic texts)"
        ),
    )
    parser.add_argument(
        "--output",
        type=_resolved,
        default=Settings.output,
        help="folder of the results and the models",
    )
    parser.add_argument(
        "--bundle",
        dest="bundles",
        type=_named_path,
        action="append",
        default=[],
        metavar="MODEL-PRECISION=PATH",
        help="a ready-made bundle, such as roberta-large-fp16=PATH; may be given several times",
    )
    parser.add_argument(
        "--skip",
        dest="left_out",
        action="append",
        default=[],
        choices=OPTIONAL,
        help="leave out a contestant of the cases a, b and h; may be given several times",
    )
    parser.add_argument(
        "--roberta-large",
        dest="roberta_folder",
        metavar="FOLDER",
        type=_resolved,
        help="a folder with roberta-large, instead of random weights",
    )


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{count} is less than 1")
    return count


def _resolved(path: str) -> Path:
    return Path(path).resolve()


def _named_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODEL-PRECISION=PATH")
    return name, Path(path).resolve()
