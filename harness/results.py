"""The results of a run: its records and their JSON, the sums over rounds, the machine, and tables
in Markdown.
"""

import contextlib
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from bertscore_onnx import __version__
from bertscore_onnx.concurrency.cpus import usable_cpus

SCHEMA = 4  # the version of the JSON
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"  # the marks in a document

# the features that matrix products in fp32, bf16 and int8 use
FEATURES = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx_vnni",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
)
PACKAGES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "openvino",
    "sentencepiece",
    "tokenizers",
    "numpy",
    "bert-score",
    "torch",
    "transformers",
)

Row = Sequence[str]


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bound of a figure."""

    bound: float
    at_most: bool = False  # an upper bound; a lower one otherwise
    of_speed: bool = False  # a busy machine alone can break it


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One measured number: the median over the rounds, and its spread."""

    name: str
    unit: str
    median: float
    low: float
    high: float
    goal: Goal | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if there is none."""
        if self.goal is None:
            return None
        return (
            self.median <= self.goal.bound if self.goal.at_most else self.median >= self.goal.bound
        )


class Timing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The time of one contestant in one case."""

    label: str
    seconds: list[float]  # of each round; for a round of many calls, their median
    # of all cores, for each round; for a round of many calls, their mean
    processor_seconds: list[float] = []
    rate: float | None = None  # pairs per second at the median; None if that means nothing
    peak_memory_mb: float | None = None  # of the process, from its start
    score_difference: float | None = None  # the largest difference of any F from bert-score's


class Skipped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A contestant that was not measured."""

    label: str
    reason: str


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """The results of one case."""

    letter: str
    title: str
    note: str = ""
    timings: list[Timing] = []
    figures: list[Figure] = []
    skipped: list[Skipped] = []
    stages: dict[str, float] = {}  # the share of our time of each stage, in a round of its own
    # floating-point operations per second in our stage `encode`, by formula
    encode_rate: float | None = None


class Report(msgspec.Struct, forbid_unknown_fields=True):
    """The results of one run."""

    made: str
    machine: dict[str, str]
    settings: dict[str, str]
    cases: list[Case] = []
    # operations per second of a matrix product, before the first case and after each
    peak_rates: list[float] = []
    schema: int = SCHEMA


def read_report(path: Path) -> Report:
    """Read a report from JSON."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def write_report(report: Report, path: Path) -> None:
    """Write a report as JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def figure(name: str, unit: str, values: Sequence[float], goal: Goal | None = None) -> Figure:
    """Make a figure from one value per round."""
    return Figure(name, unit, statistics.median(values), min(values), max(values), goal)


def ratio(
    name: str, ours: Sequence[float], theirs: Sequence[float], goal: Goal | None = None
) -> Figure:
    """Make a figure of how many times faster ours is, within each round, so that a slow minute
    affects both.
    """
    return figure(name, "×", [their / our for our, their in zip(ours, theirs, strict=True)], goal)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` percent of the values do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(int(rank), 1) - 1]


def machine_facts() -> dict[str, str]:
    """Return the processor with its features, the memory, the load, and the versions of all
    packages involved.
    """
    processor = _processor_facts()
    flags = processor.get("flags", "").split()
    facts = {
        "processor": processor.get("model name") or platform.processor() or platform.machine(),
        "family, model, stepping": " ".join(
            processor.get(name, "?") for name in ("cpu family", "model", "stepping")
        ),
        "cores usable": str(usable_cpus()),
        "features": " ".join(name for name in FEATURES if name in flags) or "unknown",
        "load at the start": f"{os.getloadavg()[0]:.2f}",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "bertscore-onnx": __version__,
    }
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        facts["commit"] = subprocess.check_output(
            ["git", "rev-parse", "--short=8", "HEAD"],  # noqa: S607 -- whichever git made the checkout
            cwd=Path(__file__).parent,
            text=True,
            stderr=subprocess.DEVNULL,
        ).strip()
    with contextlib.suppress(ValueError, OSError):
        facts["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            facts[package] = version(package)
    return facts


def _processor_facts() -> dict[str, str]:
    """Return the facts of the first processor in Linux's `/proc/cpuinfo`; nothing on other
    systems.
    """
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def preamble(report: Report) -> str:
    """Return in Markdown when a report was made, on which machine and with which settings."""
    facts, settings = (
        "; ".join(f"{name}: {value}" for name, value in pairs.items())
        for pairs in (report.machine, report.settings)
    )
    return f"Measured {report.made}.\n\nMachine: {facts}.\n\nSettings: {settings}."


def table(header: Row, rows: Sequence[Row]) -> str:
    """Lay out a Markdown table whose source is aligned; return an empty string if it has no
    rows.
    """
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    padded = [
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def write_figures(document: Path, reports: Sequence[Path], show: Callable[[Report], str]) -> None:
    """Replace the figures between the marks of a document by those of reports, as `show` formats
    them.
    """
    text = with_figures(
        document.read_text(encoding="utf-8"), [show(read_report(path)) for path in reports]
    )
    document.write_text(text, encoding="utf-8")


def with_figures(
    document: str, figures: Sequence[str], marks: tuple[str, str] = (BEGIN, END)
) -> str:
    """Return a document with these figures between its marks."""
    begin, end = marks
    before, _, rest = document.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(
            f"The document has no lines {begin!r} and {end!r} to write the figures between."
        )
    return f"{before}{begin}\n\n" + "\n".join(figures) + f"\n{end}{after}"
