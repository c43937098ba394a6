"""The ONNX Runtime sessions of one graph on one device: created once, at need, and again in a forked child."""

import json
import logging
import os
import threading
from typing import Any
from weakref import WeakSet

from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.concurrency.cpus import usable_cpus
from bertscore_onnx.encoding.providers import (
    CPU,
    CUDA,
    OPENVINO,
    Device,
    choose_devices,
    load_onnxruntime,
    open_session,
)
from bertscore_onnx.errors import BertScoreOnnxError, ClosedError, DeviceError, GraphError

_log = logging.getLogger(__name__)

_GRAPH_AT_FAULT = ("Load model from ", "External data path ", "External initializer: ", "INVALID_GRAPH")
"""How ONNX Runtime's messages tell that no device could run the graph: it is damaged, or has unknown operators."""

_creation = threading.Lock()  # sessions created side by side race inside ONNX Runtime
_in_use: "WeakSet[Sessions]" = WeakSet()
_inherited: list[Any] = []  # sessions of the parent process, never released: ONNX Runtime would crash joining threads


def _prepare_child() -> None:
    """Start anew in a forked child, where the threads that hold the lock or belong to a session do not exist."""
    global _creation
    _creation = threading.Lock()
    _inherited.extend(sessions._opened for sessions in _in_use)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_prepare_child)


class Sessions:
    """The sessions of one bundle; threads may share them.

    On a CPU many small runs side by side, one thread each, are fastest in total, and a single run with all threads is
    fastest for itself. Each kind has a session of its own.
    """

    def __init__(self, bundle: Bundle, *, device: object = None, num_threads: int | None = None) -> None:
        """Open the first session.

        Args:
            bundle: the bundle whose graph to run.
            device: as in `choose_devices`.
            num_threads: CPU threads to use; None for all that this process may keep busy.

        Raises:
            MissingExtraError: ONNX Runtime is not installed.
            InputError: no such device name.
            DeviceError: the device cannot run the graph.
            GraphError: no device can.
        """
        self._graph = bundle.graph_path
        self._opened: dict[bool, Any] = {}
        self._pid = os.getpid()
        self._closed = False
        self.num_threads = num_threads or usable_cpus()
        """CPU threads to use."""
        self.device = self._choose(_devices_for(bundle, device))
        """The device in use."""
        _in_use.add(self)

    def get(self, *, alone: bool) -> Any:
        """Return the session for runs side by side, or for a run that is alone.

        Raises:
            ClosedError: the sessions were closed.
            DeviceError: the process was forked and the device cannot follow, or a second session does not fit.
        """
        if self._pid != os.getpid():
            self._follow_fork()
        alone = alone and self.num_threads > 1 and self.device.provider != CUDA
        session = self._opened.get(alone)
        if session is not None:
            return session
        with _creation:
            if self._closed:
                raise ClosedError("The scorer was closed. Make a new one.")
            if alone not in self._opened:
                session, failure = self._open(self.device, alone=alone)
                if session is None:
                    raise self._unusable(failure)
                self._opened[alone] = session
            return self._opened[alone]

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        with _creation:
            self._closed = True
            self._opened = {}

    def _choose(self, devices: list[Device]) -> Device:
        """Open a session on the first device that works; a device that was asked for by name must."""
        for device in devices:
            self.device = device
            with _creation:
                session, failure = self._open(device, alone=False)
            if session is not None:
                self._opened[False] = session
                return device
            if device is not devices[-1]:
                _log.warning("%s cannot be used, going on without it: %s", device.provider, failure)
        raise self._unusable(failure)

    def _open(self, device: Device, *, alone: bool) -> tuple[Any, str]:
        threads, streams = (self.num_threads, 1) if alone else (1, self.num_threads)
        onnxruntime = load_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # patterns are kept for every shape ever seen, and shapes vary here
        options.log_severity_level = 3
        if device.provider == OPENVINO:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # it does its own
            device = device.with_options(load_config=_openvino_config(device, self.num_threads, streams))
        return open_session(str(self._graph), options, device)

    def _follow_fork(self) -> None:
        """Forget the sessions of the parent process, whose threads do not exist in this one."""
        if self.device.provider == CUDA:
            raise DeviceError(
                "The scorer was made before this process was forked, and CUDA does not survive that. Make the scorer "
                'in the child process, or start that with the method "spawn" or "forkserver".'
            )
        self._opened, self._pid = {}, os.getpid()

    def _unusable(self, failure: str) -> BertScoreOnnxError:
        if any(sign in failure for sign in _GRAPH_AT_FAULT):
            return GraphError(f"{self._graph} cannot be loaded: {failure}. Export the model again.")
        return DeviceError(
            f"{self.device.provider} cannot run {self._graph}: {failure}. Run `bertscore-onnx doctor` to see what this "
            "machine offers."
        )


def _devices_for(bundle: Bundle, name: object) -> list[Device]:
    """Return the devices to try; int8 has kernels for the CPU alone, and elsewhere would run there unnoticed."""
    devices = choose_devices(name)
    if bundle.manifest.precision == "int8":
        devices = [device for device in devices if device.provider == CPU]
    if not devices:
        raise DeviceError(
            f"device {str(name)!r} was asked for, and the bundle {bundle.path} is in int8, which runs on the CPU only. "
            'Use device="cpu", or a bundle exported with `--precision fp16` or fp32.'
        )
    return devices


def _openvino_config(device: Device, threads: int, streams: int) -> str:
    settings = {
        "INFERENCE_PRECISION_HINT": device.precision or "f32",
        "INFERENCE_NUM_THREADS": str(threads),
        "NUM_STREAMS": str(streams),
    }
    return json.dumps({"CPU": settings})
