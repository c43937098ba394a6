"""A WSGI application that scores, one model and one batcher in each process of gunicorn.

Run it without `--preload`, so that each process loads this module after the fork:

    export BERTSCORE_BUNDLE=path/to/bundle
    gunicorn --worker-class gthread --threads 16 gunicorn_app:application
"""

import json
import math
import os
from collections.abc import Callable, Iterable
from typing import Any

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import (
    ClosedError,
    DeadlineError,
    InputError,
    QueueFullError,
    WorkerError,
)
from bertscore_onnx_service import MicroBatcher

# closes itself when the process ends
batcher = MicroBatcher(BERTScorer(os.environ["BERTSCORE_BUNDLE"]))


class NotTextsError(Exception):
    """The body is not an object with candidates and references."""


STATUS: dict[type[Exception], str] = {
    NotTextsError: "400 Bad Request",
    InputError: "422 Unprocessable Content",
    QueueFullError: "429 Too Many Requests",
    ClosedError: "503 Service Unavailable",
    WorkerError: "503 Service Unavailable",
    DeadlineError: "504 Gateway Timeout",
}


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Score the body, `{"candidates": […], "references": […]}`."""
    headers = [("Content-Type", "application/json")]
    try:
        texts = read_texts(environ["wsgi.input"].read())
        scores = batcher.submit(texts["candidates"], texts["references"]).result()
        status, answer = "200 OK", {"F": scores.F.tolist(), "process": os.getpid()}
    except tuple(STATUS) as error:
        status, answer = (
            next(STATUS[kind] for kind in STATUS if isinstance(error, kind)),
            {"error": str(error)},
        )
        if isinstance(error, QueueFullError):
            headers.append(("Retry-After", str(math.ceil(error.retry_after))))
    start_response(status, headers)
    return [json.dumps(answer).encode()]


def read_texts(body: bytes) -> dict[str, Any]:
    """Decode a body."""
    try:
        texts = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotTextsError(f"The body is not JSON: {error}") from error
    if not isinstance(texts, dict) or texts.keys() != {"candidates", "references"}:
        raise NotTextsError("Expected an object with `candidates` and `references`.")
    return texts
