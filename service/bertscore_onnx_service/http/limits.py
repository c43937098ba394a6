"""The limits of a server, with their defaults: sizes, counts and times."""

import math
from dataclasses import asdict, dataclass

from bertscore_onnx.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Numbers are 1 or more; times are in seconds, above 0 and finite."""

    max_requests: int = 512
    """Requests being read, scored or answered at a time; more are answered 429."""

    max_queue: int = 512
    """Requests that wait for one model; if as many wait, a request is answered 429."""

    max_batch_tokens: int = 16_384
    """Tokens scored together. A larger request is scored in several batches."""

    max_pairs: int = 1024
    """Pairs of one candidate and one reference in a body."""

    max_body: int = 2_000_000
    """Bytes of a body."""

    max_bytes: int = 64_000_000
    """Bytes of all bodies in progress; a request that would exceed them is answered 429."""

    read_timeout: float = 30.0
    """Seconds for the client to send its body, or to receive an answer."""

    deadline: float = 30.0
    """Seconds for the scores of a body, waiting included."""

    drain: float = 30.0
    """Seconds for the requests in progress after a signal to stop."""

    def __post_init__(self) -> None:
        """Raise an InputError if a limit is out of range."""
        for name, value in asdict(self).items():
            if isinstance(value, int) and value < 1:
                raise InputError(f"{name} is {value}; expected 1 or more.")
            if not 0 < value < math.inf:
                raise InputError(f"{name} is {value} seconds; expected more than 0, and finite.")
        if self.max_bytes < self.max_body:
            raise InputError(
                f"max_bytes is {self.max_bytes} and max_body {self.max_body}: no body of that "
                "size could be read. Allow as many bytes for all bodies as for one."
            )
