"""The log of requests.

Holds the facts about each, for its access line and the metrics.
"""

import json
import logging
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from starlette.requests import HTTPConnection
from starlette.types import Scope

from bertscore_onnx.errors import one_line

LogFormat = Literal["text", "json"]

_access = logging.getLogger(__name__)


class RequestLog:
    """The log of one request; it has no bodies and no keys."""

    def __init__(self, *, status: int = 0, reason: str = "") -> None:
        """Start the entry, usually before there is a status."""
        self.id = uuid.uuid4().hex[:16]
        """Names the request in the log, and in the header X-Request-Id of the answer."""
        self.status = status
        """The HTTP status that was sent; 0 before that, 499 if the client has gone."""
        self.reason = reason
        """The code of the error; empty for a success."""
        self.client: str | None = None
        """A digest of the key that the request has; None if no key is needed."""
        self.model = ""
        self.pairs = 0
        """Candidates that were scored."""
        self.stages: dict[str, float] = {}
        """Seconds spent on reading the body and on scoring."""
        self._begun = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time since the request arrived."""
        return time.perf_counter() - self._begun

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = time.perf_counter() - begun

    def write(self, scope: Scope) -> None:
        """Write the access line."""
        fields: dict[str, object] = {
            "request": self.id,
            "client": (scope.get("client") or ["-"])[0],
            "method": scope["method"],
            # as sent: escaped, without the query
            "path": scope["raw_path"].decode("ascii", "backslashreplace"),
            "status": self.status,
            "seconds": round(self.seconds, 4),
        }
        if self.model:
            fields |= {"model": self.model, "pairs": self.pairs}
        if self.reason:
            fields["reason"] = self.reason
        _access.info(
            " ".join(f"{name}={value}" for name, value in fields.items()), extra={"fields": fields}
        )


def log_of(connection: HTTPConnection) -> RequestLog:
    """Return the log of a request."""
    return connection.scope["log"]


LEVELS = {
    "bertscore_onnx": logging.INFO,
    "bertscore_onnx_service": logging.INFO,
    "uvicorn": logging.ERROR,
    "asyncio": logging.WARNING,
}
"""The loggers of the server's process, and what is written of each."""


def configure_logging(form: LogFormat) -> None:
    """Write the log to standard error, as text or as JSON.

    It is the log of this package and of uvicorn.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines() if form == "json" else TextLines("%(asctime)s %(levelname)s %(message)s")
    )
    for name, level in LEVELS.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


class TextLines(logging.Formatter):
    """One line for each message, and a traceback below it.

    Control characters are escaped.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        """Format the message."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name
        """Format a traceback."""
        return "\n".join(map(one_line, super().formatException(ei).split("\n")))


class JsonLines(logging.Formatter):
    """One JSON object per line.

    It has the time, level and logger, and the message or the fields of an access line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **getattr(record, "fields", {"message": record.getMessage()}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
