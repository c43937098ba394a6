"""A WSGI application that scores, one model and one batcher in each process of gunicorn.

Run it without `--preload`, so that each process loads this module after it was forked:
`BERTSCORE_BUNDLE=path/to/bundle gunicorn --worker-class gthread --threads 16 gunicorn_app:application`.
"""

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import DeadlineError, InputError, QueueFullError
from bertscore_onnx.serving import MicroBatcher

batcher = MicroBatcher(BERTScorer(os.environ["BERTSCORE_BUNDLE"]))  # closes itself when the process ends

STATUS = {InputError: "422 Unprocessable Content", QueueFullError: "503 Service Unavailable", DeadlineError: "504 Late"}


def application(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
    """Score the body, `{"candidates": […], "references": […]}`."""
    try:
        texts = json.load(environ["wsgi.input"])
        scores = batcher.submit(texts["candidates"], texts["references"]).result()
        status, answer = "200 OK", {"F": scores.F.tolist(), "process": os.getpid()}
    except tuple(STATUS) as error:
        status, answer = next(STATUS[kind] for kind in STATUS if isinstance(error, kind)), {"error": str(error)}
    start_response(status, [("Content-Type", "application/json")])
    return [json.dumps(answer).encode()]
