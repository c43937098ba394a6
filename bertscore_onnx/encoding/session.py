"""Graphs of bundles on a device.

`OnnxSession` opens its graph again in a forked child, and halves batches that are too large.
"""

import ctypes
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.arrays import Float32Array, Int64Array, Shape
from bertscore_onnx.bundle.bundle import Bundle, mapped_links, unlinked
from bertscore_onnx.concurrency.cpus import usable_cpus
from bertscore_onnx.concurrency.native_code import native_code
from bertscore_onnx.encoding.openvino import OpenVinoGraph, log_missing_bfloat16, open_in_openvino
from bertscore_onnx.encoding.places import HostPlace, Place
from bertscore_onnx.encoding.providers import (
    CPU,
    FATAL,
    Provider,
    choose_providers,
    load_onnxruntime,
    open_session,
)
from bertscore_onnx.errors import (
    Argument,
    BertScoreOnnxError,
    ClosedError,
    DeviceError,
    EncodingError,
    GraphError,
    InputError,
    OutOfMemoryError,
    check_choice,
    is_interrupt,
    one_line,
)

_log = logging.getLogger(__name__)

_GRAPH_AT_FAULT = (
    "Load model from ",
    "External data path ",
    "External initializer: ",
    "INVALID_GRAPH",
)
"""Parts of ONNX Runtime's messages when no provider can run the graph, because it is damaged or has
unknown operators. Any other failure of the CPU is the graph's fault too, except for memory."""

_OUT_OF_MEMORY = (
    "failed to allocate",
    "out of memory",
    "bad allocation",
    "bad_alloc",
    "alloc_failed",  # of cuBLAS and cuDNN
    "allocation_failed",  # of cuDNN and cuFFT
)
"""Parts of ONNX Runtime's messages, in lower case, when memory ran out; it has no class of
exceptions for that.
"""


def is_out_of_memory(message: object) -> bool:
    """Return whether a message of ONNX Runtime says that memory ran out."""
    lower = str(message).lower()
    return any(sign in lower for sign in _OUT_OF_MEMORY)


OptimizeFor = Literal["throughput", "latency"]
"""The aim of a session: "throughput" is many runs side by side, one thread each; "latency" is one
run at a time with all threads, which spin for a while after it, waiting for the next."""


SPINNING = {"session.intra_op.spin_duration_us": "5000", "session.intra_op.spin_backoff_max": "8"}
"""How threads that share a run spin after it: with pauses, for 5 ms, in which a client that got its
answer sends the next request. By default each would take some 50 ms from other programs on the
machine, and no pair would be faster. ONNX Runtime before 1.26 ignores both, and its threads spin as
by default."""

MAX_THREADS = 1024
"""More than any machine has CPUs; each thread takes memory, and their number in a process is
limited.
"""

_opening = threading.Lock()  # sessions opened side by side race inside ONNX Runtime
_in_use: "WeakSet[OnnxSession]" = WeakSet()


def _prepare_child() -> None:
    """Start again in a forked child, which has none of the threads."""
    global _opening
    _opening = threading.Lock()
    for session in _in_use:
        # never released, not even as Python exits: the engine would wait for its threads
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session._opened))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_prepare_child)


class OrtGraph:
    """A graph in a session of ONNX Runtime; threads may share it."""

    precision: str | None = None
    """The compute precision, if it is not the bundle's."""

    def __init__(self, session: Any, provider: Provider) -> None:
        """Take an open session on a provider."""
        self.session: Any = session
        self._provider = provider
        self.inputs: list[str] = [node.name for node in session.get_inputs()]
        self.outputs: dict[str, Shape] = {}
        """The shapes of the outputs by name."""
        for node in session.get_outputs():
            self.outputs[node.name] = node.shape

    def run(self, feed: Mapping[str, NDArray[Any]], places: Mapping[str, Place]) -> None:
        """Run the graph, which writes outputs directly to their places."""
        ort_value = load_onnxruntime().OrtValue
        binding = self.session.io_binding()
        for name, value in feed.items():
            array = ort_value.ortvalue_from_numpy(np.ascontiguousarray(value))
            binding.bind_ortvalue_input(name, array)
        for name, place in places.items():
            binding.bind_output(name, *place.bind())
        if all(place.is_awaited for place in places.values()):
            self.session.run_with_iobinding(binding)
        else:
            self.session.run_with_iobinding(binding, self._queued)
        for place in places.values():
            place.done()

    @cached_property
    def _queued(self) -> Any:
        """Options of a run after which nobody waits for the device."""
        options = load_onnxruntime().RunOptions()
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")
        return options

    def release_memory(self) -> None:
        """Let a run of one token return the memory of the largest runs."""
        if self._provider.arena is None:
            return
        options = load_onnxruntime().RunOptions()
        arena = f"{self._provider.arena}:{self._provider.index}"
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", arena)
        one_token = dict.fromkeys(self.inputs, np.ones((1, 1), dtype=np.int64))
        self.session.run(None, one_token, options)

    def wait(self) -> None:
        """Wait until all runs on the device are over."""
        self.session.io_binding().synchronize_outputs()


def open_in_onnxruntime(
    graph: str | bytes, provider: Provider, threads: int = 1, links: Mapping[str, Any] | None = None
) -> tuple[OrtGraph | None, str]:
    """Open a graph, or that of a path; return it, or None and the reason.

    `threads` is the CPU threads of a run, and `links` the contents of weight files that are links.
    """
    options = load_onnxruntime().SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    for name, value in SPINNING.items():
        # ignored by versions without these entries
        options.add_session_config_entry(name, value)
    # patterns are kept for every shape ever seen, and shapes vary here
    options.enable_mem_pattern = False
    options.log_severity_level = FATAL  # errors are raised, and would be reported twice
    # from 1.24 on
    if links and hasattr(options, "add_external_initializers_from_files_in_memory"):
        contents = list(links.values())
        sizes = list(map(len, contents))
        options.add_external_initializers_from_files_in_memory(list(links), contents, sizes)
    session, failure = open_session(graph, options, provider)
    return session and OrtGraph(session, provider), failure


Graph = OrtGraph | OpenVinoGraph
"""A graph that an engine has opened."""


class OnnxSession:
    """One graph of a bundle on one provider; threads may share it."""

    def __init__(
        self,
        bundle: Bundle,
        graph: Path,
        inputs: Sequence[str],
        outputs: Mapping[str, Shape],
        *,
        device: object = None,
        num_threads: int | None = None,
        optimize_for: OptimizeFor = "throughput",
    ) -> None:
        """Open the session, and check the inputs and outputs of the graph.

        Inputs are int64 (batch, tokens). Outputs are fp32 of the given shapes; an axis named
        "batch" or "pairs" is that of the batch. The device is as in `choose_providers`; by default
        there are as many threads as this process may keep busy. Raises a DeviceError if the device
        cannot run the graph, and a GraphError if no device can.
        """
        _check_settings(num_threads, optimize_for)
        self._bundle = bundle
        self._graph = graph
        self._inputs = list(inputs)
        self._outputs = list(outputs)
        self._axes = list(map(_batch_axis, outputs.values()))
        self._is_for_latency = optimize_for == "latency"
        self._opened: Graph | None = None
        self._pid = os.getpid()
        self._is_closed = False
        self.num_threads: int = num_threads or usable_cpus()
        self.provider: Provider = self._open_first(_providers_for(bundle, device))
        self.concurrency: int = 1
        """How many runs at a time keep the provider busy."""
        if not self._is_for_latency:
            self.concurrency = self.provider.concurrency or self.num_threads
        self.leaves_cpu_idle: bool = self.concurrency > 1 or self.provider.keeps_vectors
        """Whether other work can go on during a run: the model runs elsewhere, or there are more
        CPU threads.
        """
        self.precision: str = self.get().precision or bundle.manifest.precision
        """The compute precision."""
        if self.provider.engine == "openvino" and self.precision != "bf16":
            log_missing_bfloat16()
        _in_use.add(self)
        self._check_graph(outputs)

    def run(
        self,
        batch: Mapping[str, Int64Array],
        places: Sequence[Place],
        constants: Mapping[str, Float32Array] | None = None,
    ) -> None:
        """Run the graph on one padded batch, (batch, tokens).

        A batch that does not fit into memory is run in halves. Writes the outputs to these places,
        in their order. `constants` are inputs that do not depend on the batch. Raises an
        EncodingError if the run failed, or an OutOfMemoryError if not even a batch of one fits, or
        if a batch does not fit whose outputs are on a device.
        """
        number, tokens = next(iter(batch.values())).shape
        try:
            with native_code():
                named_places = dict(zip(self._outputs, places, strict=True))
                self.get().run({**batch, **(constants or {})}, named_places)
            return
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            if isinstance(error, BertScoreOnnxError) or is_interrupt(error):
                raise
            shape = (number, tokens)
            reason = one_line(error)
            if not is_out_of_memory(error):
                raise EncodingError(
                    f"{self.provider.name} failed on a batch of shape {shape}: {reason}"
                ) from error
            on_host = [place for place in places if isinstance(place, HostPlace)]
            if number == 1 or len(on_host) < len(places):
                raise OutOfMemoryError(
                    f"{self.provider.name} has too little memory for a text of {tokens} tokens: "
                    f"{reason}. Free some of it, or use another device."
                ) from error
        _log.warning(
            "%s ran out of memory on a batch of shape %s; halving it.", self.provider.name, shape
        )
        for half in (slice(number // 2), slice(number // 2, None)):
            values_of_half = {name: values[half] for name, values in batch.items()}
            halves = []
            for axis, place in zip(self._axes, on_host, strict=True):
                halves.append(place.half(axis, half))
            self.run(values_of_half, halves, constants)

    def get(self) -> Any:
        """Return the open graph.

        The graph is opened again if this process was forked. Raises a ClosedError if it was closed.
        """
        if self._pid != os.getpid():
            # the threads of the parent's graph do not exist in this process
            self._opened = None
            self._pid = os.getpid()
        graph = self._opened
        if graph is not None:
            return graph
        with _opening:
            if self._is_closed:
                raise ClosedError("The scorer was closed. Make a new one.")
            if self._opened is None:
                self._opened, failure = self._open(self.provider)
                if self._opened is None:
                    raise self._unusable(self.provider, failure)
            return self._opened

    def release_memory(self) -> None:
        """Return the memory that is kept of the largest runs."""
        with native_code():
            self.get().release_memory()

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        with _opening:
            self._is_closed = True
            self._opened = None

    def wait(self) -> None:
        """Wait until all runs on the device are over."""
        with native_code():
            self.get().wait()

    def _open_first(self, providers: list[Provider]) -> Provider:
        """Open a session on the first provider that works.

        There is only one if a device was requested by name.
        """
        for provider in providers:
            with _opening:
                self._opened, failure = self._open(provider)
            if self._opened is not None:
                return provider
            if provider is not providers[-1]:
                _log.warning("%s cannot be used, continuing without it: %s", provider.name, failure)
        raise self._unusable(providers[-1], failure)

    def _open(self, provider: Provider) -> tuple[Graph | None, str]:
        """Open the graph; return None and the reason if the provider cannot."""
        weights = self._bundle.weights
        opened: tuple[Graph | None, str]
        if provider.engine == "openvino":
            streams = 1 if self._is_for_latency else self.num_threads
            try:
                with unlinked(self._graph, weights) as graph:
                    opened = open_in_openvino(str(graph), provider, self.num_threads, streams)
            except OSError as error:  # no room for copies
                opened = None, str(error)
        else:
            threads = self.num_threads if self._is_for_latency else 1
            with mapped_links(self._bundle.path, weights) as links:
                opened = open_in_onnxruntime(str(self._graph), provider, threads, links)
        self._bundle.check_unchanged()  # now, so that a file replaced meanwhile is found too
        return opened

    def _unusable(self, provider: Provider, failure: str) -> BertScoreOnnxError:
        failure = one_line(failure)
        graph = self._graph
        is_graph_at_fault = any(sign in failure for sign in _GRAPH_AT_FAULT)
        if is_graph_at_fault or (provider.name == CPU.name and not is_out_of_memory(failure)):
            return GraphError(f"{graph} cannot be loaded: {failure}. Export the model again.")
        problem = f"{provider.name} cannot run {graph}: {failure.rstrip(' .')}. "
        doctor = "un `bertscore-onnx doctor` to see what this machine offers."
        if provider.name == CPU.name:
            return DeviceError(f"{problem}R{doctor}")
        return DeviceError(f"{problem}Use ", Argument("device", CPU.device), f", or r{doctor}")

    def _check_graph(self, expected: Mapping[str, Shape]) -> None:
        graph = self.get()
        if sorted(graph.inputs) != sorted(self._inputs):
            raise GraphError(
                f"The graph takes the inputs {graph.inputs}; the manifest has {self._inputs}. "
                "Export the model again."
            )
        outputs = graph.outputs
        for name, shape in expected.items():
            if name not in outputs:
                raise GraphError(
                    f"The graph gives {sorted(outputs)}, not {name!r}. Export the model again."
                )
            given = outputs[name]
            if not _fits(given, shape):
                raise GraphError(
                    f"The graph gives {name!r} of shape {given}; expected {list(shape)}. Export "
                    "the model again."
                )


def _check_settings(num_threads: int | None, optimize_for: OptimizeFor) -> None:
    if num_threads is not None and num_threads > MAX_THREADS:
        raise InputError(
            f"nthreads is {num_threads:,}; expected at most {MAX_THREADS:,}. Leave it out for all "
            "CPUs."
        )
    check_choice("optimize_for", optimize_for, OptimizeFor)


_BATCH = ("batch", "pairs")


def _batch_axis(shape: Shape) -> int:
    return next(axis for axis, size in enumerate(shape) if size in _BATCH)


def _fits(given: Shape, expected: Shape) -> bool:
    """Return whether a shape is the expected one, whose axes may have names."""
    if len(given) != len(expected):
        return False
    for size, wanted in zip(given, expected, strict=True):
        if isinstance(wanted, int) and size != wanted:
            return False
    return True


def _providers_for(bundle: Bundle, device: object) -> list[Provider]:
    """Return the providers to try, which have kernels for the bundle's precision."""
    precision = bundle.manifest.precision
    providers = [
        provider for provider in choose_providers(device) if precision in provider.precisions
    ]
    if not providers:
        raise DeviceError(
            f"device {str(device)!r} was asked for, and the bundle {bundle.path} is in "
            f"{precision}, which runs on the CPU only. Use ",
            Argument("device", "cpu"),
            ", or a bundle exported with `--precision fp16` or fp32.",
        )
    return providers
