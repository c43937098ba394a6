"""How long things took, counted in memory that does not grow."""

from bisect import bisect_left
from dataclasses import dataclass

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The longest of each class, in seconds."""


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of durations."""

    counts: tuple[int, ...]
    """How many were in each class of `BOUNDS`, and how many were longer."""

    total: float
    """Their sum in seconds."""


class DurationCounter:
    """Makes a histogram; not safe for threads by itself."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._total = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._total += seconds

    def durations(self) -> Durations:
        """Return what was counted so far."""
        return Durations(tuple(self._counts), self._total)
