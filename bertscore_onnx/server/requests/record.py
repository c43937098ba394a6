"""What is noted of one request while it is answered: for the access line and the metrics."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection


@dataclass(slots=True)
class RequestRecord:
    """One request."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    """Names the request in the log, and in the answer's header X-Request-Id."""

    begun: float = field(default_factory=time.perf_counter)
    status: int = 0
    """The HTTP status that was sent; 0 before that, 499 where the client had gone."""

    reason: str = ""
    """The code of the error; empty for a success."""

    client: str | None = None
    """Stands for the key that the request gave; None where none is needed."""

    model: str = ""
    pairs: int = 0
    """Candidates that were scored."""

    stages: dict[str, float] = field(default_factory=dict)
    """Seconds spent on reading the body and on scores."""

    @property
    def seconds(self) -> float:
        """The time since the request came."""
        return time.perf_counter() - self.begun

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = time.perf_counter() - begun


def record_of(connection: HTTPConnection) -> RequestRecord:
    """Return the notes on a request."""
    record: RequestRecord = connection.scope["record"]
    return record
