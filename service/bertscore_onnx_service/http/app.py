"""The application: the routes, and the middleware around them."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx_service.http.admission import Admission
from bertscore_onnx_service.http.endpoints import (
    ScoringEndpoints,
    StatusEndpoints,
    docs_endpoint,
    openapi_endpoint,
    page_endpoint,
)
from bertscore_onnx_service.http.errors import ApiError
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.metrics import Metrics
from bertscore_onnx_service.http.middleware import ApiKeys, RequestMiddleware, answer_error
from bertscore_onnx_service.http.models import Models
from bertscore_onnx_service.http.work import WorkerQueues


def create_app(models: Models, limits: Limits, *, keys: ApiKeys | None = None, any_host: bool = False) -> Starlette:
    """Return the server of these models, which the caller closes; `app.state` has its `admission` and its `metrics`.

    Without `keys` everybody may use it. A server that listens only to its own machine and has no keys should not allow
    `any_host` in the addresses of requests.
    """
    queues = WorkerQueues(limits.max_queue)
    admission = Admission(limits, models, queues)
    metrics = Metrics(models, admission)
    scoring, status = ScoringEndpoints(models, limits, queues), StatusEndpoints(models, admission, metrics)
    routes = [
        Route("/", page_endpoint()),
        Route("/docs", docs_endpoint(needs_key=keys is not None)),
        Route("/openapi.json", openapi_endpoint(needs_key=keys is not None)),
        Route("/health/live", status.live),
        Route("/health/ready", status.ready),
        Route("/metrics", status.metrics),
        Route("/v1/models", status.models),
        Route("/v1/score", scoring.score, methods=["POST"]),
        Route("/v1/match", scoring.match, methods=["POST"]),
    ]
    middleware = Middleware(
        RequestMiddleware,
        admission=admission,
        keys=keys,
        metrics=metrics,
        paths=[route.path for route in routes],
        send_timeout=limits.read_timeout,
        any_host=any_host,
    )
    app = Starlette(
        routes=routes,
        middleware=[middleware],
        exception_handlers=dict.fromkeys((ApiError, HTTPException, BertScoreOnnxError), answer_error),
    )
    app.state.admission, app.state.metrics = admission, metrics
    return app
