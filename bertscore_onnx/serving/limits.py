"""The limits of a batcher, checked."""

import threading
from dataclasses import dataclass

from bertscore_onnx.errors import InputError

BATCH_SHARE = 1 / 120
"""The share of a deadline that a batch may take: it is how long a small request waits for others."""


@dataclass(frozen=True, slots=True)
class BatcherLimits:
    """How much, and how long; the fields are the arguments of `MicroBatcher`."""

    max_batch_tokens: int
    max_delay: float
    max_queue: int
    deadline: float
    max_stall: float

    @property
    def batch_seconds(self) -> float:
        """How long a batch is to take at most, as far as the pace of those before it tells."""
        return self.deadline * BATCH_SHARE

    def __post_init__(self) -> None:
        check_count("max_batch_tokens", self.max_batch_tokens)
        check_count("max_queue", self.max_queue)
        check_seconds("max_delay", self.max_delay, zero=True)
        check_seconds("deadline", self.deadline)
        check_seconds("max_stall", self.max_stall)


def check_count(name: str, number: int) -> None:
    """Raise an InputError unless `number` is 1 or more."""
    if not number >= 1:
        raise InputError(f"{name} is {number}; expected 1 or more.")


def check_seconds(name: str, seconds: float, *, zero: bool = False) -> None:
    """Raise an InputError unless a thread can wait that long; endless waits are refused."""
    if not (seconds > 0 or (zero and seconds == 0)) or not seconds <= threading.TIMEOUT_MAX:
        least = "0 or more" if zero else "more than 0"
        raise InputError(f"{name} is {seconds}; expected {least} seconds, and at most {threading.TIMEOUT_MAX:.0f}.")
