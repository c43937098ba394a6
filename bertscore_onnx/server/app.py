"""The application: which endpoint answers what, and the gate before them."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.api_keys import ApiKeys
from bertscore_onnx.server.endpoints.match import Matching
from bertscore_onnx.server.endpoints.openapi import openapi_endpoint
from bertscore_onnx.server.endpoints.score import Scoring
from bertscore_onnx.server.endpoints.status import Status
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.metrics import Metrics
from bertscore_onnx.server.middleware import Gate, answer_error
from bertscore_onnx.server.page import Page
from bertscore_onnx.server.registry import Models
from bertscore_onnx.server.requests.errors import Problem


def create_app(models: Models, limits: Limits, *, keys: ApiKeys | None = None) -> Starlette:
    """Put the server together; `app.state.admission` counts who is in.

    Args:
        models: what it scores with; the caller closes them.
        limits: what it lets itself be asked.
        keys: who may ask; None for everybody.
    """
    admission = Admission(limits.max_requests)
    metrics = Metrics(models, admission)
    status = Status(models, admission, metrics)
    routes = [
        Route("/", Page().__call__),
        Route("/openapi.json", openapi_endpoint()),
        Route("/health/live", status.live),
        Route("/health/ready", status.ready),
        Route("/metrics", status.metrics),
        Route("/v1/models", status.models),
        Route("/v1/score", Scoring(models, limits).__call__, methods=["POST"]),
        Route("/v1/match", Matching(models, limits).__call__, methods=["POST"]),
    ]
    paths = [route.path for route in routes]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Gate, admission=admission, keys=keys, metrics=metrics, paths=paths)],
        exception_handlers=dict.fromkeys((Problem, HTTPException, BertScoreOnnxError), answer_error),
    )
    app.state.admission = admission
    return app
