"""Whole jobs: files in, files of scores out, on this machine or on many, and what is missing after a failure."""

from bertscore_onnx.distributed.job.job import JobResult
from bertscore_onnx.distributed.job.score_files import score_files

__all__ = ["JobResult", "score_files"]
