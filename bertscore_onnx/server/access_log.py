"""Log lines: one for every request, as text or as JSON; no bodies and no keys."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from starlette.types import Scope

from bertscore_onnx.server.requests.record import RequestRecord

LogFormat = Literal["text", "json"]

_access = logging.getLogger("bertscore_onnx.server.access_log")


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
