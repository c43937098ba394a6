"""The application: which endpoint answers what, and the middleware around them."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.api_keys import ApiKeys
from bertscore_onnx.server.endpoints.match import MatchEndpoint
from bertscore_onnx.server.endpoints.openapi import openapi_endpoint
from bertscore_onnx.server.endpoints.score import ScoreEndpoint
from bertscore_onnx.server.endpoints.status import StatusEndpoints
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.metrics import Metrics
from bertscore_onnx.server.middleware import RequestMiddleware, answer_error
from bertscore_onnx.server.models.registry import Models
from bertscore_onnx.server.page import PageEndpoint
from bertscore_onnx.server.requests.errors import ApiError


def create_app(models: Models, limits: Limits, *, keys: ApiKeys | None = None) -> Starlette:
    """Put the server together; `app.state.admission` counts the requests in progress.

    Args:
        models: what it scores with; the caller closes them.
        limits: how much it may be asked.
        keys: who may ask; None for everybody.
    """
    admission = Admission(limits.max_requests)
    metrics = Metrics(models, admission)
    status = StatusEndpoints(models, admission, metrics)
    routes = [
        Route("/", PageEndpoint().__call__),
        Route("/openapi.json", openapi_endpoint()),
        Route("/health/live", status.live),
        Route("/health/ready", status.ready),
        Route("/metrics", status.metrics),
        Route("/v1/models", status.models),
        Route("/v1/score", ScoreEndpoint(models, limits).__call__, methods=["POST"]),
        Route("/v1/match", MatchEndpoint(models, limits).__call__, methods=["POST"]),
    ]
    paths = [route.path for route in routes]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(RequestMiddleware, admission=admission, keys=keys, metrics=metrics, paths=paths)],
        exception_handlers=dict.fromkeys((ApiError, HTTPException, BertScoreOnnxError), answer_error),
    )
    app.state.admission = admission
    return app
