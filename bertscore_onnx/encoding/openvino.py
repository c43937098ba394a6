"""Graphs in OpenVINO, which computes in bfloat16 where the processor does."""

import ctypes
import logging
import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.arrays import Shape
from bertscore_onnx.encoding.places import HostPlace
from bertscore_onnx.encoding.providers import Provider, lost_by_fork
from bertscore_onnx.errors import is_interrupt, needs_extra

_log = logging.getLogger(__name__)

_KEPT_KERNELS = 100
"""The kernels for shapes of runs that OpenVINO keeps. By default it keeps 5,000, and every new
shape takes 1.6 MB; with 100, texts of random lengths took no more time."""

_TELEMETRY = "openvino_telemetry"
"""The package by which an import of OpenVINO would send statistics of use; it does without."""


@cache
def load_openvino() -> Any:
    """Import openvino once, without its telemetry.

    Raises a MissingExtraError if it is not installed.
    """
    modules: dict[str, Any] = sys.modules
    before = {name: modules[name] for name in (_TELEMETRY,) if name in modules}
    modules[_TELEMETRY] = None  # so that its import fails
    try:
        with needs_extra("openvino", 'device="openvino"'):
            import openvino
    finally:
        del modules[_TELEMETRY]
        modules.update(before)
    return openvino


@cache
def _core() -> Any:
    openvino = load_openvino()
    # the first two threads to exchange arrays with OpenVINO would wait for each other for ever
    for kind in (np.int64, np.float32):
        openvino.Tensor(np.zeros(1, dtype=kind), shared_memory=True).data.sum()
    return openvino.Core()


def _keep_core() -> None:
    """Never release the core in a child: it would wait for its threads."""
    if _core.cache_info().currsize:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_core()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_core)


def has_bfloat16() -> bool:
    """Return whether this processor has instructions for bfloat16."""
    return "BF16" in _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


@cache
def log_missing_bfloat16() -> None:
    """Say once that OpenVINO gains nothing on this processor, and what does."""
    _log.warning(
        "OpenVINO computes in fp32, since this processor has neither AVX512-BF16 nor AMX; the "
        'device "cpu" is as fast, and a bundle exported with `--precision int8` faster.'
    )


def open_in_openvino(
    graph: str | bytes, provider: Provider, threads: int = 1, streams: int = 1
) -> "tuple[OpenVinoGraph | None, str]":
    """Compile a graph, or that of a path; return it, or None and the reason.

    It is for so many CPU threads in all, and concurrent runs.
    """
    failure = lost_by_fork(provider)
    if failure:
        return None, failure
    try:
        return OpenVinoGraph(graph, threads, streams), ""
    except Exception as error:  # OpenVINO raises bare RuntimeErrors
        if is_interrupt(error):
            raise
        # where it was raised comes before; an error of memory has no message
        reason = (str(error).strip() or "out of memory").splitlines()[-1]
        return None, f"{reason} Bundles by older versions have to be exported again"


class OpenVinoGraph:
    """A graph that OpenVINO has compiled for the CPU; threads may share it."""

    def __init__(self, graph: str | bytes, threads: int, streams: int) -> None:
        """Compile the graph."""
        core = _core()
        self.precision: str | None = "bf16" if has_bfloat16() else None
        """The compute precision, if it is not the bundle's."""
        settings = {
            "INFERENCE_PRECISION_HINT": self.precision or "f32",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": streams,
            "CPU_RUNTIME_CACHE_CAPACITY": _KEPT_KERNELS,
            "ENABLE_CPU_PINNING": False,  # else all processes would run on the first CPUs
        }
        self._compiled = core.compile_model(core.read_model(graph), "CPU", settings)
        self.inputs: list[str] = [node.any_name for node in self._compiled.inputs]
        self.outputs: dict[str, Shape] = {}
        """The shapes of the outputs by name."""
        for node in self._compiled.outputs:
            sizes = node.partial_shape
            shape = [size.get_length() if size.is_static else str(size) for size in sizes]
            self.outputs[node.any_name] = shape

    def run(self, feed: Mapping[str, NDArray[Any]], places: Mapping[str, HostPlace]) -> None:
        """Run the graph, and copy the outputs of these names to their places."""
        arrays = {name: np.ascontiguousarray(value) for name, value in feed.items()}
        # A new request takes 7 µs, and after an error nothing of it is left. OpenVINO could write
        # into our arrays, which saves nothing measurable, and crashed if a shape was another.
        request = self._compiled.create_infer_request()
        outputs = request.infer(arrays, share_inputs=True, share_outputs=True)
        for name, place in places.items():
            if not outputs[name].size:
                raise MemoryError("out of memory: OpenVINO returned an empty output")
            place.fill(outputs[name])

    def release_memory(self) -> None:
        """Return the memory of the largest runs that no run needs now."""
        try:
            self._compiled.release_memory()
        except RuntimeError as error:
            if "busy" not in str(error):
                raise
