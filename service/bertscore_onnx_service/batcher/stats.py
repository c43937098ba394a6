"""The counts of a batcher."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper bound of each class of `Durations`, in seconds."""


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of durations."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    """The number of durations in each class of `BOUNDS`, and of longer ones."""
    total: float = 0.0
    """Their sum in seconds."""

    def add(self, seconds: float) -> "Durations":
        """Return the histogram with one more duration."""
        counts = list(self.counts)
        counts[bisect_left(BOUNDS, seconds)] += 1
        return Durations(tuple(counts), self.total + seconds)


def _counter(meaning: str) -> int:
    """Return a field that counts from 0.

    The server's metrics show its meaning.
    """
    return field(default=0, metadata={"help": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatcherStats:
    """Counts since the batcher was made, all of one moment.

    A request is one call of `submit`. `submitted` is the sum of `completed`, all of `failed`,
    `cancelled`, `expired`, `waiting` and `in_flight`.
    """

    submitted: int = _counter("Requests admitted.")
    completed: int = _counter("Requests scored.")
    failed: Mapping[str, int]
    """Requests that got an error other than a `DeadlineError`, by the name of its class."""
    cancelled: int = _counter("Requests whose client went away.")
    expired: int = _counter("Requests whose deadline passed.")
    rejected: int = _counter("Requests refused because the queue was full.")
    waiting: int
    """Requests in the queue."""
    in_flight: int
    """Requests being scored."""
    batches: int = _counter("Batches scored.")
    batch_tokens: int = _counter("Tokens of the different texts in all batches.")
    padded_tokens: int = _counter("The same with padding, about.")
    warnings: int = _counter("Warnings about texts, such as empty ones.")
    truncated: int = _counter("Texts longer than the model's maximum, whose end does not count.")
    waits: Durations = field(compare=False)
    """How long requests waited, from `submit` to the call of the scorer."""
    runs: Durations = field(compare=False)
    """How long calls of the scorer took."""
