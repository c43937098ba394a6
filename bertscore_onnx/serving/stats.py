"""What a batcher has done so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bertscore_onnx.serving.durations import Durations


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
    """Tokens in all batches, as estimated."""

    padded_tokens: int
    """The same, padding included."""

    restarts: int
    """Workers that took the place of one that broke down or stalled."""

    warnings: int
    """Warnings of the scorer, which are logged instead of shown."""

    waits: Durations = field(compare=False)
    """How long requests waited, from `submit` to the call of the scorer."""

    runs: Durations = field(compare=False)
    """How long calls of the scorer took."""
