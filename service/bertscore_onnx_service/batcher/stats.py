"""The counts of a batcher."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.encoder import plan_runs
from bertscore_onnx.errors import DeadlineError
from bertscore_onnx.scores import Scores

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The upper bound of each class of `Durations`, in seconds."""

RUN_TOKENS, CONCURRENT_RUNS = 512, 2
"""Padded tokens of a run of the model, and runs at the same time, about; the padding within a run is counted."""


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
    """Return a field that counts from 0, with its meaning for the server's metrics."""
    return field(default=0, metadata={"help": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatcherStats:
    """Counts since the batcher was made, all of one moment.

    A request is one call of `submit`. `submitted` is the sum of `completed`, all of `failed`, `cancelled`, `expired`,
    `waiting` and `in_flight`.
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
    restarts: int = _counter("Workers replaced because they broke down or stalled.")
    warnings: int = _counter("Warnings about texts, such as empty ones.")
    truncated: int = _counter("Texts longer than the model's maximum, whose end does not count.")
    waits: Durations = field(compare=False)
    """How long requests waited, from `submit` to the call of the scorer."""
    runs: Durations = field(compare=False)
    """How long calls of the scorer took."""


class StatsCounter:
    """Counts; the queue calls it under its lock."""

    def __init__(self) -> None:
        self._seconds, self._requests = 0.0, 0.0
        self._counts: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._waits, self._runs = Durations(), Durations()

    @property
    def seconds_per_request(self) -> float:
        """The time of the last batches per request that was complete with them; 0 before the first."""
        return self._seconds / max(self._requests, 1)

    def count(self, name: str, number: int = 1) -> None:
        """Add a number to a field of `BatcherStats`."""
        self._counts[name] += number

    def count_answer(self, answer: Scores | BaseException) -> None:
        """Count a request by its answer."""
        if isinstance(answer, DeadlineError):
            self._counts["expired"] += 1
        elif isinstance(answer, BaseException):
            self._failed[type(answer).__name__] += 1
        else:
            self._counts["completed"] += 1

    def count_batch(self, lengths: NDArray[np.int64], seconds: float, waits: Iterable[float], num_last: int) -> None:
        """Count a call of the scorer, by the lengths of its different texts and the waits of requests that it began.

        `num_last` requests were complete with it.
        """
        tokens = int(lengths.sum())
        runs = plan_runs(lengths, RUN_TOKENS, concurrency=CONCURRENT_RUNS)
        self._counts["batches"] += 1
        self._counts["batch_tokens"] += tokens
        self._counts["padded_tokens"] += sum(len(run) * int(lengths[run[0]]) for run in runs)
        self._runs = self._runs.add(seconds)
        for wait in waits:
            self._waits = self._waits.add(wait)
        self._seconds = 0.8 * self._seconds + seconds
        self._requests = 0.8 * self._requests + num_last

    def stats(self, *, waiting: int, in_flight: int) -> BatcherStats:
        """Return all counts as they are at this moment."""
        return BatcherStats(
            failed=MappingProxyType(dict(self._failed)),
            waiting=waiting,
            in_flight=in_flight,
            waits=self._waits,
            runs=self._runs,
            **self._counts,
        )
