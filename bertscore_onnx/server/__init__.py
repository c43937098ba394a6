"""The HTTP server, on Starlette and uvicorn: the extra `server`. Only `bertscore-onnx serve` imports it."""

from bertscore_onnx.server.app import create_app
from bertscore_onnx.server.lifecycle import run
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.registry import Models

__all__ = ["Limits", "Models", "create_app", "run"]
