"""What a batcher has done so far, and how it is counted."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from bertscore_onnx.encoding.encoder import plan_batches
from bertscore_onnx.errors import DeadlineError
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.serving.request import Piece

# How long things took, counted in memory that does not grow.


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


RUN_TOKENS = 1024
"""Padded tokens of a run of the model, about; what is padded within a run counts."""

_COUNTED = (
    "submitted",
    "completed",
    "cancelled",
    "expired",
    "rejected",
    "batches",
    "batch_tokens",
    "padded_tokens",
    "restarts",
    "warnings",
)


@dataclass(frozen=True, slots=True)
class BatcherStats:
    """Counts since the batcher was made, all of one moment.

    A request is what one call of `submit` hands in. `submitted` is the sum of `completed`, all of `failed`,
    `cancelled`, `expired`, `waiting` and `in_flight`.
    """

    submitted: int
    """Requests that were admitted."""

    completed: int
    """Requests that were scored."""

    failed: Mapping[str, int]
    """Requests that got an error other than a `DeadlineError`, by the name of its class."""

    cancelled: int
    """Requests whose caller cancelled them before they were scored."""

    expired: int
    """Requests that got a `DeadlineError`."""

    rejected: int
    """Requests that were not admitted because too many were waiting."""

    waiting: int
    """Requests in the queue."""

    in_flight: int
    """Requests being scored."""

    batches: int
    """Calls of the scorer."""

    batch_tokens: int
    """Tokens of the different texts in all batches."""

    padded_tokens: int
    """The same with padding, about."""

    restarts: int
    """Workers that took the place of one that broke down or stalled."""

    warnings: int
    """Warnings of the scorer, which are logged instead of shown."""

    waits: Durations = field(compare=False)
    """How long requests waited, from `submit` to the call of the scorer."""

    runs: Durations = field(compare=False)
    """How long calls of the scorer took."""


class StatsCounter:
    """Makes the counts; not safe for threads by itself."""

    def __init__(self) -> None:
        self._seconds, self._tokens = 0.0, 0.0
        self._counts: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._waits, self._runs = DurationCounter(), DurationCounter()

    @property
    def seconds_per_token(self) -> float:
        """What a token took in the last batches; 0 before the first."""
        return self._seconds / max(self._tokens, 1)

    def count(self, name: str) -> None:
        """Add 1 to a field."""
        self._counts[name] += 1

    def count_answer(self, answer: Scores | BaseException) -> None:
        """Count a request by its answer."""
        if isinstance(answer, DeadlineError):
            self._counts["expired"] += 1
        elif isinstance(answer, BaseException):
            self._failed[type(answer).__name__] += 1
        else:
            self._counts["completed"] += 1

    def count_batch(self, pieces: Sequence[Piece], pairs: Pairs, started: float, ended: float) -> int:
        """Count a call of the scorer for some pieces, as the pairs they make; return the tokens of different texts."""
        seconds = ended - started
        lengths = np.array([len(ids) for ids in (pairs.token_ids or {}).values()], dtype=np.int64)
        tokens = int(lengths.sum())
        self._counts["batches"] += 1
        self._counts["batch_tokens"] += tokens
        runs = plan_batches(lengths, RUN_TOKENS)
        self._counts["padded_tokens"] += sum(len(run) * int(lengths[run[0]]) for run in runs)
        self._runs.add(seconds)
        for piece in pieces:
            if piece.start == 0:
                self._waits.add(started - piece.request.submitted)
        self._seconds = 0.8 * self._seconds + seconds
        self._tokens = 0.8 * self._tokens + tokens
        return tokens

    def stats(self, *, waiting: int, in_flight: int) -> BatcherStats:
        """Return all counts as they are at this moment."""
        return BatcherStats(
            failed=MappingProxyType(dict(self._failed)),
            waiting=waiting,
            in_flight=in_flight,
            waits=self._waits.durations(),
            runs=self._runs.durations(),
            **{name: self._counts[name] for name in _COUNTED},
        )
