"""Runs a graph of a bundle on one padded batch, and on its halves where it does not fit into memory."""

import logging
from collections.abc import Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.concurrency.exit_gate import exit_gate
from bertscore_onnx.encoding.onnx_runtime.providers import Provider, load_onnxruntime
from bertscore_onnx.encoding.onnx_runtime.sessions import OUT_OF_MEMORY, OptimizeFor, SharedSession
from bertscore_onnx.errors import BertScoreOnnxError, EncodingError, GraphError, OutOfMemoryError, one_line

_log = logging.getLogger(__name__)


class OnnxGraph:
    """One graph of one bundle on one provider; threads may share it."""

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
        """Load the graph.

        Args:
            bundle: the bundle that the graph is of.
            graph: its file.
            inputs: what it needs, each int64 (batch, tokens).
            outputs: what it gives, each fp32, and in which shape; one axis, named "batch" or "pairs", is that of the
                batch.
            device, num_threads, optimize_for: as in `SharedSession`.

        Raises:
            MissingExtraError, InputError, DeviceError: as `SharedSession` says.
            GraphError: the graph cannot be loaded, or its inputs or outputs are not those.
        """
        self._inputs, self._outputs = [*inputs], [*outputs]
        self._axes = [next(axis for axis, size in enumerate(shape) if size in _BATCH) for shape in outputs.values()]
        self._session = SharedSession(bundle, graph, device=device, num_threads=num_threads, optimize_for=optimize_for)
        self._check(self._session.get(), outputs)
        self.provider: Provider = self._session.provider
        """The provider in use."""
        self.num_threads: int = self._session.num_threads
        """CPU threads to use."""
        self.concurrency: int = self._session.concurrency
        """How many runs at a time keep the provider busy."""

    def run(
        self,
        batch: Mapping[str, NDArray[np.int64]],
        outputs: Sequence[NDArray[np.float32]],
        shared: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """Run the graph on one padded batch.

        Args:
            batch: the inputs, each (batch, tokens).
            outputs: arrays that the outputs are written to, in their order.
            shared: inputs that do not depend on the batch.

        Raises:
            EncodingError: the run failed, or its outputs are not of those shapes.
            OutOfMemoryError: not even a batch of one fits into the device's memory.
            ClosedError, DeviceError: as `SharedSession.get` says.
        """
        try:
            with exit_gate:
                self._compute(self._session.get(), {**batch, **(shared or {})}, outputs)
            return
        except BertScoreOnnxError:
            raise
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            shape = next(iter(batch.values())).shape
            if not any(sign in str(error).lower() for sign in OUT_OF_MEMORY):
                raise EncodingError(
                    f"{self.provider.name} failed on a batch of shape {shape}: {one_line(error)}"
                ) from error
            reason = error
        number, tokens = shape
        if number == 1:
            raise OutOfMemoryError(
                f"{self.provider.name} has too little memory for a text of {tokens} tokens: {one_line(reason)}. "
                "Free some of it, or use another device."
            ) from reason
        _log.warning("%s ran out of memory on a batch of shape %s; halving it.", self.provider.name, shape)
        for half in (slice(number // 2), slice(number // 2, None)):
            parts = [array[(*repeat(slice(None), axis), half)] for axis, array in zip(self._axes, outputs, strict=True)]
            self.run({name: values[half] for name, values in batch.items()}, parts, shared)

    def release_memory(self) -> None:
        """Give back what ONNX Runtime keeps of its largest runs: one run of one token says that it is to shrink."""
        if self.provider.arena is None:
            return
        options = load_onnxruntime().RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", self.provider.arena)
        one_token = dict.fromkeys(self._inputs, np.ones((1, 1), dtype=np.int64))
        with exit_gate:
            self._session.get().run(self._outputs, one_token, options)

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        self._session.close()

    def _compute(self, session: Any, feed: Mapping[str, NDArray[Any]], outputs: Sequence[NDArray[np.float32]]) -> None:
        """Run the session, which writes to arrays that are contiguous itself."""
        written = [array if array.flags.c_contiguous else np.empty_like(array, order="C") for array in outputs]
        ort_value, binding = load_onnxruntime().OrtValue, session.io_binding()
        for name, value in feed.items():
            binding.bind_ortvalue_input(name, ort_value.ortvalue_from_numpy(np.ascontiguousarray(value)))
        for name, array in zip(self._outputs, written, strict=True):
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        session.run_with_iobinding(binding)
        for array, result in zip(outputs, written, strict=True):
            if result is not array:
                array[...] = result

    def _check(self, session: Any, expected: Mapping[str, Sequence[int | str]]) -> None:
        inputs = [node.name for node in session.get_inputs()]
        if sorted(inputs) != sorted(self._inputs):
            raise GraphError(
                f"The graph takes the inputs {inputs}; the manifest says {self._inputs}. Export the model again."
            )
        outputs = {node.name: node.shape for node in session.get_outputs()}
        for name, shape in expected.items():
            if name not in outputs:
                raise GraphError(f"The graph gives {sorted(outputs)}, not {name!r}. Export the model again.")
            if not _agree(outputs[name], shape):
                raise GraphError(
                    f"The graph gives {name!r} of shape {outputs[name]}; expected {[*shape]}. Export the model again."
                )


_BATCH = ("batch", "pairs")


def _agree(found: Sequence[int | str | None], expected: Sequence[int | str]) -> bool:
    """Tell whether shapes are of one length, and equal where numbers are expected."""
    return len(found) == len(expected) and all(
        isinstance(size, str) or own == size for own, size in zip(found, expected, strict=True)
    )
