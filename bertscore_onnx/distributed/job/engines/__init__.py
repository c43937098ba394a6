"""What runs the work of a job: this process, Ray or Spark; each gives the same files."""

from typing import Literal

from bertscore_onnx.distributed.job.work import Engine
from bertscore_onnx.errors import InputError

EngineName = Literal["local", "ray", "spark"]


def engine_of(name: EngineName, nthreads: int | None, device: object) -> Engine:
    """Return an engine.

    Args:
        name: which.
        nthreads, device: those of the scorer, which say what CPUs and GPUs a task on Ray takes.

    Raises:
        InputError: there is none of this name.
        MissingExtraError: a package for it is not installed.
    """
    if name == "local":
        from bertscore_onnx.distributed.job.engines.local import run_here

        return run_here
    if name == "ray":
        from bertscore_onnx.distributed.job.engines.ray import RayEngine

        return RayEngine(nthreads, device)
    if name == "spark":
        from bertscore_onnx.distributed.job.engines.spark import SparkEngine

        return SparkEngine()
    raise InputError(f'engine is {name!r}; expected "local", "ray" or "spark".')
