"""Runs a module in a process of its own with limits.

CPU time and memory are limited, since its input may come from anybody.

A graph may contain an endless loop, and a tokenizer may lengthen a text without end, in native code
that Python cannot interrupt.
"""

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bertscore_onnx import errors
from bertscore_onnx.errors import BertScoreOnnxError, ExportError, one_line
from bertscore_onnx_export.model.source import Source, loading

_MEMORY_BYTES = 1_000_000_000
"""The memory for a tiny model: eight times what it takes."""

_MEMORY_FACTOR = 6
"""The bytes more for each byte of a larger model."""

_SECONDS = 4
"""The CPU time of a step for a tiny model: several times what it takes."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
"""Variables that keep the memory of many threads out of the limit."""


class _Failure(msgspec.Struct):
    error: str
    """The name of a class in `errors`."""

    message: str


def run_limited(module: str, folder: Path, *arguments: str) -> list[str]:
    """Run a module that ends in `end_within_limits` on a folder.

    Return its warnings, or raise its error.
    """
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    ended = subprocess.run(  # noqa: S603 -- our own module
        [sys.executable, "-P", "-m", module, str(folder), *arguments],
        env={**os.environ, **_ONE_THREAD, "PYTHONPATH": paths},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    try:
        if ended.returncode == 0:
            return msgspec.json.decode(ended.stdout, type=list[str])
        failure = msgspec.json.decode(ended.stdout, type=_Failure)
    except msgspec.MsgspecError:
        raise ExportError(
            f"The graph or the tokenizer of {folder} cannot be used: {_cause(ended)}. Download "
            "them again, or export the model itself with --model."
        ) from None
    raise getattr(errors, failure.error)(failure.message)


def end_within_limits(work: Callable[[], list[str]], folder: Path, size: int) -> None:
    """Do work on a folder with its memory limited, and end this process.

    The folder has a model of this size in bytes. The work calls `allow` before each step, and
    returns warnings.
    """
    _limit("RLIMIT_DATA", _MEMORY_BYTES + _MEMORY_FACTOR * size)
    _limit("RLIMIT_CORE", 0)
    try:
        with loading("graph or the tokenizer", Source(str(folder))):
            warnings = work()
    except BertScoreOnnxError as error:
        failure = _Failure(type(error).__name__, one_line(error))
        sys.stdout.buffer.write(msgspec.json.encode(failure))
        sys.exit(1)
    sys.stdout.buffer.write(msgspec.json.encode(warnings))


def allow(seconds: float) -> None:
    """Let this process be killed if its next step takes too much CPU time.

    It may take these seconds and a few more.
    """
    _limit("RLIMIT_CPU", math.ceil(time.process_time() + _SECONDS + seconds))


def _limit(kind: str, limit: int) -> None:
    if sys.platform != "linux":  # others do not limit memory so
        return
    import resource  # only on Unix

    number = getattr(resource, kind)
    _, hard_limit = resource.getrlimit(number)
    if hard_limit != resource.RLIM_INFINITY:
        limit = min(limit, hard_limit)
    resource.setrlimit(number, (limit, hard_limit))


def _cause(ended: subprocess.CompletedProcess[bytes]) -> str:
    """Return why a process ended that reported no error."""
    if ended.returncode == -getattr(signal, "SIGXCPU", 0):
        return "they take many times the CPU time of a model of this size, as in an endless loop"
    if ended.returncode < 0:
        name = signal.Signals(-ended.returncode).name
        return f"they crash ({name}), or need many times the memory of a model of this size"
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    if not lines:
        return f"their process ended with status {ended.returncode}"
    return one_line(lines[-1]).rstrip(".")
