"""The application: which endpoint answers what, and the middleware around them."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.endpoints import (
    MatchEndpoint,
    PageEndpoint,
    ScoreEndpoint,
    StatusEndpoints,
    openapi_endpoint,
)
from bertscore_onnx.server.errors import ApiError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.metrics import Metrics
from bertscore_onnx.server.middleware import ApiKeys, RequestMiddleware, answer_error
from bertscore_onnx.server.models import Models
from bertscore_onnx.server.stream import StreamEndpoint
from bertscore_onnx.server.work import Lanes


def create_app(models: Models, limits: Limits, *, keys: ApiKeys | None = None, any_host: bool = False) -> Starlette:
    """Put the server together; `app.state` has its `admission` and its `metrics`.

    Args:
        models: what it scores with; the caller closes them.
        limits: how much it may be asked.
        keys: who may ask; None for everybody.
        any_host: whether requests may be addressed to any name. A server that listens to its own machine alone and
            without keys should not allow it.
    """
    admission = Admission(limits)
    lanes = Lanes(limits.max_queue)
    metrics = Metrics(models, admission)

    def check_room() -> None:
        models.check_room()
        lanes.check_room()

    status = StatusEndpoints(models, admission, metrics)
    routes = [
        Route("/", PageEndpoint().__call__),
        Route("/openapi.json", openapi_endpoint(needs_key=keys is not None)),
        Route("/health/live", status.live),
        Route("/health/ready", status.ready),
        Route("/metrics", status.metrics),
        Route("/v1/models", status.models),
        Route("/v1/score", ScoreEndpoint(models, limits, lanes, check_room).__call__, methods=["POST"]),
        Route("/v1/score/stream", StreamEndpoint(models, limits, lanes).__call__, methods=["POST"]),
        Route("/v1/match", MatchEndpoint(models, limits, lanes).__call__, methods=["POST"]),
    ]
    around = Middleware(
        RequestMiddleware,
        admission=admission,
        keys=keys,
        metrics=metrics,
        paths=[route.path for route in routes],
        check_room=check_room,
        send_timeout=limits.read_timeout,
        any_host=any_host,
    )
    app = Starlette(
        routes=routes,
        middleware=[around],
        exception_handlers=dict.fromkeys((ApiError, HTTPException, BertScoreOnnxError), answer_error),
    )
    app.state.admission, app.state.metrics = admission, metrics
    return app
