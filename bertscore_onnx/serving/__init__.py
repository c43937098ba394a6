"""Scores for many callers at once: their texts are scored together, in one process, without a web framework."""

from bertscore_onnx.serving.batcher import MicroBatcher
from bertscore_onnx.serving.stats import BatcherStats

__all__ = ["BatcherStats", "MicroBatcher"]
