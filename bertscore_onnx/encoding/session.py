"""The session of one graph in ONNX Runtime, opened again in a forked child; batches that are too large are halved."""

import ctypes
import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache, cached_property
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, Literal, get_args
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle, mapped_links
from bertscore_onnx.concurrency.cpus import usable_cpus
from bertscore_onnx.concurrency.exit_gate import exit_gate
from bertscore_onnx.encoding.providers import CPU, Provider, choose_providers, has_plugin, load_onnxruntime
from bertscore_onnx.encoding.vectors import Place
from bertscore_onnx.errors import (
    BertScoreOnnxError,
    ClosedError,
    DeviceError,
    EncodingError,
    GraphError,
    InputError,
    OutOfMemoryError,
    install_command,
    is_interrupt,
    one_line,
)

_log = logging.getLogger(__name__)

_GRAPH_AT_FAULT = ("Load model from ", "External data path ", "External initializer: ", "INVALID_GRAPH")
"""Parts of ONNX Runtime's messages when no provider can run the graph, because it is damaged or has unknown operators.
Any other failure of the CPU is the graph's fault too, except for memory."""

OUT_OF_MEMORY = (
    "failed to allocate",
    "out of memory",
    "bad allocation",
    "bad_alloc",
    "alloc_failed",  # of cuBLAS and cuDNN
    "allocation_failed",  # of cuDNN and cuFFT
)
"""Parts of ONNX Runtime's messages, in lower case, when memory ran out; it has no class of exceptions for that."""

OptimizeFor = Literal["throughput", "latency"]
"""The aim of a session: "throughput" is many runs side by side, one thread each; "latency" is one run at a time with
all threads, which spin for a while after it, waiting for the next."""


SPINNING = {"session.intra_op.spin_duration_us": "5000", "session.intra_op.spin_backoff_max": "8"}
"""How threads that share a run spin after it: with pauses, for 5 ms, in which a client that got its answer sends the
next request. By default each would take some 50 ms from other programs on the machine, and no pair would be faster.
ONNX Runtime before 1.26 ignores both, and its threads spin as by default."""

MAX_THREADS = 1024
"""More than any machine has CPUs; each thread takes memory, and their number in a process is limited."""

_WARNING, _FATAL = 2, 4
"""Severities of ONNX Runtime's log; the first is its default."""

_opening = threading.Lock()  # sessions opened side by side race inside ONNX Runtime
_in_use: "WeakSet[OnnxSession]" = WeakSet()
_inherited: list[Any] = []  # sessions of the parent process, never released: ONNX Runtime would crash joining threads


def _prepare_child() -> None:
    """Start again in a forked child, where the threads that hold the lock or belong to a session do not exist."""
    global _opening
    _opening = threading.Lock()
    _inherited.extend(session._opened for session in _in_use)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_prepare_child)


class OnnxSession:
    """One graph of a bundle on one provider; threads may share it."""

    def __init__(
        self,
        bundle: Bundle,
        graph: Path,
        inputs: Sequence[str],
        outputs: Mapping[str, Sequence[int | str]],
        *,
        device: object = None,
        num_threads: int | None = None,
        optimize_for: OptimizeFor = "throughput",
    ) -> None:
        """Open the session, and check the inputs and outputs of the graph.

        Inputs are int64 (batch, tokens). Outputs are fp32 of the given shapes; an axis named "batch" or "pairs" is that
        of the batch. The device is as in `choose_providers`; by default there are as many threads as this process may
        keep busy. Raises a DeviceError if the device cannot run the graph, and a GraphError if no device can.
        """
        if num_threads is not None and num_threads > MAX_THREADS:
            raise InputError(
                f"nthreads is {num_threads:,}; expected at most {MAX_THREADS:,}. Leave it out for all CPUs."
            )
        if optimize_for not in get_args(OptimizeFor):
            raise InputError(f'optimize_for is {optimize_for!r}; expected "throughput" or "latency".')
        self._bundle, self._graph = bundle, graph
        self._inputs, self._outputs = [*inputs], [*outputs]
        self._axes = [next(axis for axis, size in enumerate(shape) if size in _BATCH) for shape in outputs.values()]
        self._is_for_latency = optimize_for == "latency"
        self._opened: Any = None
        self._pid = os.getpid()
        self._is_closed = False
        self.num_threads: int = num_threads or usable_cpus()
        self.provider: Provider = self._open_first(_providers_for(bundle, device))
        self.concurrency: int = 1 if self._is_for_latency else self.provider.concurrency or self.num_threads
        """How many runs at a time keep the provider busy."""
        self.leaves_cpu_idle: bool = self.concurrency > 1 or self.provider.keeps_vectors
        """Whether other work can go on during a run: the model runs elsewhere, or there are more CPU threads."""
        self.precision: str = self.provider.compute_precision() or bundle.manifest.precision
        """The compute precision."""
        _in_use.add(self)
        self._check_graph(outputs)

    def run(
        self,
        batch: Mapping[str, NDArray[np.int64]],
        places: Sequence[Place],
        constants: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """Run the graph on one padded batch, (batch, tokens), or on its halves if it does not fit into memory.

        Writes the outputs to these places, in their order. `constants` are inputs that do not depend on the batch.
        Raises an EncodingError if the run failed, or an OutOfMemoryError if not even a batch of one fits, or if a batch
        does not fit whose outputs are on a device.
        """
        number, tokens = next(iter(batch.values())).shape
        try:
            with exit_gate:
                self._compute(self.get(), {**batch, **(constants or {})}, places)
            return
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            if isinstance(error, BertScoreOnnxError) or is_interrupt(error):
                raise
            shape, reason = (number, tokens), one_line(error)
            if not any(sign in str(error).lower() for sign in OUT_OF_MEMORY):
                raise EncodingError(f"{self.provider.name} failed on a batch of shape {shape}: {reason}") from error
            if number == 1 or not all(place.can_be_halved for place in places):
                raise OutOfMemoryError(
                    f"{self.provider.name} has too little memory for a text of {tokens} tokens: {reason}. "
                    "Free some of it, or use another device."
                ) from error
        _log.warning("%s ran out of memory on a batch of shape %s; halving it.", self.provider.name, shape)
        for half in (slice(number // 2), slice(number // 2, None)):
            halves = [place.half(axis, half) for axis, place in zip(self._axes, places, strict=True)]
            self.run({name: values[half] for name, values in batch.items()}, halves, constants)

    def get(self) -> Any:
        """Return the session of ONNX Runtime, opened again if this process was forked; an error if it was closed."""
        if self._pid != os.getpid():
            self._follow_fork()
        session = self._opened
        if session is not None:
            return session
        with _opening:
            if self._is_closed:
                raise ClosedError("The scorer was closed. Make a new one.")
            if self._opened is None:
                self._opened, failure = self._open(self.provider)
                if self._opened is None:
                    raise self._unusable(self.provider, failure)
            return self._opened

    def release_memory(self) -> None:
        """Return the memory that ONNX Runtime keeps of its largest runs; a run of one token makes it shrink."""
        if self.provider.arena is None:
            return
        options = load_onnxruntime().RunOptions()
        arena = f"{self.provider.arena}:{self.provider.index}"
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", arena)
        one_token = dict.fromkeys(self._inputs, np.ones((1, 1), dtype=np.int64))
        with exit_gate:
            self.get().run(self._outputs, one_token, options)

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        with _opening:
            self._is_closed = True
            self._opened = None

    def wait(self) -> None:
        """Wait until all runs on the device are over."""
        with exit_gate:
            self.get().io_binding().synchronize_outputs()

    def _compute(self, session: Any, feed: Mapping[str, NDArray[Any]], places: Sequence[Place]) -> None:
        """Run the session, which writes directly to the places."""
        ort_value, binding = load_onnxruntime().OrtValue, session.io_binding()
        for name, value in feed.items():
            binding.bind_ortvalue_input(name, ort_value.ortvalue_from_numpy(np.ascontiguousarray(value)))
        for name, place in zip(self._outputs, places, strict=True):
            binding.bind_output(name, *place.bind())
        is_awaited = all(place.is_awaited for place in places)
        session.run_with_iobinding(binding, *([] if is_awaited else [self._queued]))
        for place in places:
            place.done()

    @cached_property
    def _queued(self) -> Any:
        """Options of a run after which nobody waits for the device."""
        options = load_onnxruntime().RunOptions()
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")
        return options

    def _open_first(self, providers: list[Provider]) -> Provider:
        """Open a session on the first provider that works; there is only one if a device was requested by name."""
        for provider in providers:
            with _opening:
                self._opened, failure = self._open(provider)
            if self._opened is not None:
                return provider
            if provider is not providers[-1]:
                _log.warning("%s cannot be used, continuing without it: %s", provider.name, failure)
        raise self._unusable(providers[-1], failure)

    def _open(self, provider: Provider) -> tuple[Any, str]:
        threads, streams = (self.num_threads, 1) if self._is_for_latency else (1, self.num_threads)
        onnxruntime = load_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        for name, value in SPINNING.items():
            options.add_session_config_entry(name, value)  # ignored by versions without these entries
        options.enable_mem_pattern = False  # patterns are kept for every shape ever seen, and shapes vary here
        options.log_severity_level = _FATAL  # errors are raised, and would be reported twice
        if provider.own_optimizer:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        with mapped_links(self._bundle.path, self._bundle.weights) as links:
            if links and hasattr(options, "add_external_initializers_from_files_in_memory"):  # from 1.24 on
                sizes = [len(content) for content in links.values()]
                options.add_external_initializers_from_files_in_memory([*links], [*links.values()], sizes)
            opened = open_session(str(self._graph), options, provider, self.num_threads, streams)
        self._bundle.check_unchanged()  # now, so that a file replaced meanwhile is found too
        return opened

    def _follow_fork(self) -> None:
        """Drop the session of the parent process, whose threads do not exist in this one."""
        if not self.provider.survives_fork:
            raise DeviceError(
                f"The scorer was made before this process was forked, and {self.provider.device.upper()} does not "
                "survive that. Make the scorer in the child process, or start that with the method "
                '"spawn" or "forkserver".'
            )
        self._opened, self._pid = None, os.getpid()

    def _unusable(self, provider: Provider, failure: str) -> BertScoreOnnxError:
        failure, graph = one_line(failure), self._graph
        is_out_of_memory = any(sign in failure.lower() for sign in OUT_OF_MEMORY)
        if (provider.name == CPU.name and not is_out_of_memory) or any(sign in failure for sign in _GRAPH_AT_FAULT):
            return GraphError(f"{graph} cannot be loaded: {failure}. Export the model again.")
        return DeviceError(
            f"{provider.name} cannot run {graph}: {failure}. Run `bertscore-onnx doctor` to see what this "
            "machine offers."
        )

    def _check_graph(self, expected: Mapping[str, Sequence[int | str]]) -> None:
        session = self.get()
        inputs = [node.name for node in session.get_inputs()]
        if sorted(inputs) != sorted(self._inputs):
            raise GraphError(
                f"The graph takes the inputs {inputs}; the manifest has {self._inputs}. Export the model again."
            )
        outputs = {node.name: node.shape for node in session.get_outputs()}
        for name, shape in expected.items():
            if name not in outputs:
                raise GraphError(f"The graph gives {sorted(outputs)}, not {name!r}. Export the model again.")
            given = outputs[name]
            sizes = zip(given, shape, strict=True)  # read only where there are as many
            if len(given) != len(shape) or any(size != wanted for size, wanted in sizes if isinstance(wanted, int)):
                raise GraphError(
                    f"The graph gives {name!r} of shape {given}; expected {[*shape]}. Export the model again."
                )


_BATCH = ("batch", "pairs")


def open_session(
    graph: str | bytes, options: Any, provider: Provider, num_threads: int = 1, streams: int = 1
) -> tuple[Any, str]:
    """Open a session that runs on a provider, and never on another in its place.

    `graph` is an ONNX graph or the path of one. A provider with its own threads takes the number of CPU threads and of
    runs side by side. Returns the session and an empty string, or None and the reason.
    """
    onnxruntime = load_onnxruntime()
    missing = _preload_libraries(onnxruntime) if provider.preloads_libraries else ""
    if missing:
        onnxruntime.set_default_logger_severity(_FATAL)  # the reason is in our own message
    settings = dict(provider.options(provider, num_threads, streams))
    providers = [(provider.name, settings)]
    if provider.name != CPU.name:
        providers.append((CPU.name, {}))  # for operators that a provider leaves to the CPU, such as those on shapes
    try:
        if has_plugin(provider):
            options.add_provider_for_devices(_plugin_devices(provider), settings)
            providers.clear()  # ONNX Runtime adds the CPU itself
        # with its fallback, a failed run would silently move the shared session to the CPU
        session = onnxruntime.InferenceSession(graph, options, providers=providers or None, enable_fallback=0)
    except Exception as error:  # ONNX Runtime raises bare RuntimeErrors and its own untyped exceptions
        if is_interrupt(error):
            raise
        return None, str(error)
    finally:
        if missing:
            onnxruntime.set_default_logger_severity(_WARNING)
    used = session.get_providers()[0]
    if used != provider.name:
        reason = f"{missing}. Install its libraries" if missing else "its libraries may be missing. Install them"
        return None, f"{reason} with {install_command(provider.extra)}; ONNX Runtime fell back to {used}"
    if provider.preloads_libraries:
        _warn_of_cudnn(install_command(provider.extra))
    return session, ""


def _plugin_devices(provider: Provider) -> list[Any]:
    """Return the CPU as the plugin of a provider offers it."""
    _register(provider.plugin)
    onnxruntime = load_onnxruntime()
    cpus = [
        ep_device
        for ep_device in onnxruntime.get_ep_devices()
        if ep_device.device.type == onnxruntime.OrtHardwareDeviceType.CPU
    ]
    devices = [ep_device for ep_device in cpus if ep_device.ep_name == provider.name]
    if not devices:
        vendors = " and ".join(sorted({ep_device.device.vendor for ep_device in cpus}))
        raise DeviceError(f"{provider.plugin} does not support processors by {vendors}")
    return devices


@cache
def _register(plugin: str) -> None:
    """Let ONNX Runtime load the library of a plugin, once in a process."""
    load_onnxruntime().register_execution_provider_library(plugin, import_module(plugin).get_library_path())


@cache
def cudnn_error() -> str:
    """Return why cuDNN cannot be loaded, or an empty string; call this after a session on CUDA was opened."""
    try:
        ctypes.CDLL("cudnn64_9.dll" if sys.platform == "win32" else "libcudnn.so.9")
    except OSError as error:
        return one_line(error)
    return ""


@cache
def _warn_of_cudnn(command: str) -> None:
    """Warn once: ONNX Runtime treats cuDNN as optional, and does not report that it is missing."""
    if error := cudnn_error():
        warnings.warn(
            f"cuDNN 9 cannot be loaded ({error}), so attention on CUDA is slow. Install it with {command}.",
            RuntimeWarning,
            stacklevel=2,
        )


def _preload_libraries(onnxruntime: Any) -> str:
    """Load the libraries that come as Python packages; return the first line that ONNX Runtime prints, if any.

    It prints the names of those that it cannot load on standard output, which a program may use for its results.
    """
    if not hasattr(onnxruntime, "preload_dlls"):
        return ""
    with redirect_stdout(StringIO()) as printed:
        onnxruntime.preload_dlls()
    return next(iter(printed.getvalue().splitlines()), "")


def _providers_for(bundle: Bundle, device: object) -> list[Provider]:
    """Return the providers to try: those with kernels for the bundle's precision."""
    precision = bundle.manifest.precision
    providers = [provider for provider in choose_providers(device) if precision in provider.precisions]
    if not providers:
        raise DeviceError(
            f"device {str(device)!r} was asked for, and the bundle {bundle.path} is in {precision}, which runs on the "
            'CPU only. Use device="cpu", or a bundle exported with `--precision fp16` or fp32.'
        )
    return providers
