"""What is noted of one request while it is answered: for the access line and the metrics."""

import json
import logging
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from starlette.requests import HTTPConnection
from starlette.types import Scope


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


# Log lines: one for every request, as text or as JSON; no bodies and no keys.


LogFormat = Literal["text", "json"]

_access = logging.getLogger("bertscore_onnx.server.request_log")


def log_access(scope: Scope, record: RequestRecord) -> None:
    """Write the line of one request."""
    fields: dict[str, object] = {
        "request": record.id,
        "client": (scope.get("client") or ["-"])[0],
        "method": scope["method"],
        "path": scope["raw_path"].decode("ascii", "backslashreplace"),  # as sent: escaped, without the query
        "status": record.status,
        "seconds": round(record.seconds, 4),
    }
    if record.model:
        fields |= {"model": record.model, "pairs": record.pairs}
    if record.reason:
        fields["reason"] = record.reason
    _access.info(" ".join(f"{name}={value}" for name, value in fields.items()), extra={"fields": fields})


def configure_logging(form: LogFormat) -> None:
    """Write what this package and uvicorn log to standard error, in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in (("bertscore_onnx", logging.INFO), ("uvicorn", logging.ERROR), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, and the message or the fields of an access line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **getattr(record, "fields", {"message": record.getMessage()}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
