"""What a benchmark finds: the form of its JSON, and the sums that make figures of timings."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

SCHEMA = 2
"""The generation of this form."""


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a figure is held to."""

    bound: float
    at_most: bool = False
    """Whether the figure may reach the bound at most; at least, otherwise."""

    of_speed: bool = False
    """Whether a busy machine alone can break it."""


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number to report: the median over the rounds, and its spread."""

    name: str
    unit: str
    median: float
    low: float
    high: float
    goal: Goal | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None where there is none."""
        if self.goal is None:
            return None
        return self.median <= self.goal.bound if self.goal.at_most else self.median >= self.goal.bound


class Timing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one contestant took in one case."""

    label: str
    seconds: list[float]
    """Of each round; where a round has many calls, their median."""

    rate: float | None = None
    """Pairs a second at the median; None where that says nothing."""

    peak_memory_mb: float | None = None
    """The most that its process held in memory at once, from its start on."""

    score_difference: float | None = None
    """The largest difference of any F from bert-score's; None where there is nothing to compare."""


class Skipped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A contestant that could not take part."""

    label: str
    reason: str


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How pairs a second change with one property of the texts."""

    along: str
    points: list[tuple[float, float]]


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """All that one case found."""

    letter: str
    title: str
    note: str = ""
    timings: list[Timing] = []
    figures: list[Figure] = []
    skipped: list[Skipped] = []
    stages: dict[str, float] = {}
    """The share of our time that each stage took, in a round of its own."""

    encode_rate: float | None = None
    """Floating-point operations a second during our stage `encode`, by formula."""

    curves: list[Curve] = []


class Report(msgspec.Struct, forbid_unknown_fields=True):
    """All that one run found."""

    made: str
    machine: dict[str, str]
    settings: dict[str, str]
    cases: list[Case] = []
    peak_rates: list[float] = []
    """Floating-point operations a second of a matrix product, before the first case and after each."""

    schema: int = SCHEMA


def read_report(path: Path) -> Report:
    """Read a report that `write_report` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def write_report(report: Report, path: Path) -> None:
    """Write a report as JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def figure(name: str, unit: str, values: Sequence[float], goal: Goal | None = None) -> Figure:
    """Make a figure of one value a round."""
    return Figure(name, unit, statistics.median(values), min(values), max(values), goal)


def ratio(name: str, ours: Sequence[float], theirs: Sequence[float], goal: Goal | None = None) -> Figure:
    """Say how many times faster ours is: the ratio within each round, so that a slow minute hits both."""
    return figure(name, "×", [their / our for our, their in zip(ours, theirs, strict=True)], goal)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` percent of the values do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(int(rank), 1) - 1]
