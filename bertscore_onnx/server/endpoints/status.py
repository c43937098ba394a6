"""`GET /health/live`, `/health/ready`, `/v1/models` and `/metrics`: how the server is, and what it offers."""

from starlette.requests import Request
from starlette.responses import Response

from bertscore_onnx.server.admission import Admission
from bertscore_onnx.server.metrics import CONTENT_TYPE, Metrics
from bertscore_onnx.server.models.registry import Models
from bertscore_onnx.server.requests.errors import json_response
from bertscore_onnx.server.requests.schemas import Health, ModelList


class StatusEndpoints:
    """The endpoints."""

    def __init__(self, models: Models, admission: Admission, metrics: Metrics) -> None:
        """Tell of these."""
        self._models = models
        self._admission = admission
        self._metrics = metrics

    async def live(self, request: Request) -> Response:
        """Say that the process runs and its loop turns."""
        return json_response(Health("live"))

    async def ready(self, request: Request) -> Response:
        """Say whether a request sent now would be scored, and if not, why."""
        reasons = ["The server is stopping."] if self._admission.is_draining else []
        for model, idf, slot in self._models.slots():
            if not slot.batcher.ready:
                reasons.append(f"No worker is ready for {model.name}" + (f" with idf {idf}." if idf else "."))
        return json_response(Health("not ready" if reasons else "ready", reasons), status=503 if reasons else 200)

    async def models(self, request: Request) -> Response:
        """List the models."""
        return json_response(ModelList([model.info() for model in self._models]))

    async def metrics(self, request: Request) -> Response:
        """Show the metrics."""
        return Response(self._metrics.text(), media_type=None, headers={"Content-Type": CONTENT_TYPE})
