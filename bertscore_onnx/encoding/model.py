"""Runs the model of a bundle on one padded batch, and on its halves where it does not fit into memory."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.concurrency.exit_gate import exit_gate
from bertscore_onnx.encoding.onnx_runtime.providers import Provider, load_onnxruntime
from bertscore_onnx.encoding.onnx_runtime.sessions import OUT_OF_MEMORY, Sessions
from bertscore_onnx.errors import BertScoreOnnxError, EncodingError, GraphError, OutOfMemoryError, one_line

_log = logging.getLogger(__name__)


class OnnxModel:
    """The model of one bundle on one provider; threads may share it."""

    def __init__(self, bundle: Bundle, *, device: object = None, num_threads: int | None = None) -> None:
        """Load the graph.

        Args:
            bundle: the bundle whose graph to run.
            device, num_threads: as in `Sessions`.

        Raises:
            MissingExtraError, InputError, DeviceError: as `Sessions` says.
            GraphError: the graph cannot be loaded, or its inputs or output are not those of the manifest.
        """
        self._manifest = bundle.manifest
        self._sessions = Sessions(bundle, device=device, num_threads=num_threads)
        self._layers = (len(self._manifest.layers),) if self._manifest.all_layers else ()
        self._check_graph(self._sessions.get())
        self.provider: Provider = self._sessions.provider
        """The provider in use."""
        self.num_threads: int = self._sessions.num_threads
        """CPU threads to use."""
        self.concurrency: int = self.provider.concurrency or self.num_threads
        """How many runs at a time keep the provider busy."""

    def run(
        self, input_ids: NDArray[np.int64], mask: NDArray[np.bool_], *, latency: bool = False
    ) -> NDArray[np.float32]:
        """Run the graph on one padded batch.

        Args:
            input_ids: token ids, (batch, tokens).
            mask: true on real tokens, (batch, tokens).
            latency: whether no other run goes on beside this one, so that it may use every thread.

        Returns:
            Unit vectors, (layers, batch, tokens, hidden); without meaning on padding.

        Raises:
            EncodingError: the run failed, or its vectors are not of the manifest's size.
            OutOfMemoryError: not even a single text fits into the device's memory.
            ClosedError, DeviceError: as `Sessions.get` says.
        """
        try:
            with exit_gate:
                output = self._compute(self._sessions.get(latency=latency), input_ids, mask)
        except BertScoreOnnxError:
            raise
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            if not any(sign in str(error).lower() for sign in OUT_OF_MEMORY):
                raise EncodingError(
                    f"{self.provider.name} failed on a batch of shape {mask.shape}: {one_line(error)}"
                ) from error
            reason = error
        else:
            return self._checked(output, mask)
        if len(mask) == 1:
            raise OutOfMemoryError(
                f"{self.provider.name} has too little memory for a text of {mask.shape[1]} tokens: {one_line(reason)}. "
                "Free some of it, or use another device."
            ) from reason
        _log.warning("%s ran out of memory on a batch of shape %s; halving it.", self.provider.name, mask.shape)
        middle = len(mask) // 2
        halves = [
            self.run(input_ids[half], mask[half], latency=latency) for half in (slice(middle), slice(middle, None))
        ]
        return np.concatenate(halves, axis=1)

    def release_memory(self) -> None:
        """Give back what ONNX Runtime keeps of its largest runs: one run of one token says that it is to shrink."""
        if self.provider.arena is None:
            return
        options = load_onnxruntime().RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", self.provider.arena)
        one_token = dict.fromkeys(self._manifest.inputs, np.ones((1, 1), dtype=np.int64))
        with exit_gate:
            for session in self._sessions.opened():
                session.run([self._manifest.output], one_token, options)

    def close(self) -> None:
        """Release the graph and its memory; runs in progress finish first."""
        self._sessions.close()

    def _compute(self, session: Any, input_ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        values = {"input_ids": input_ids, "attention_mask": mask.astype(np.int64)}
        feed = {name: values[name] for name in self._manifest.inputs}
        output: NDArray[np.float32]
        if not self.provider.io_binding:
            output = session.run([self._manifest.output], feed)[0]
            return output
        binding = session.io_binding()
        for name, value in feed.items():
            binding.bind_cpu_input(name, value)
        binding.bind_output(self._manifest.output, self.provider.device, self.provider.index)
        session.run_with_iobinding(binding)
        output = binding.copy_outputs_to_cpu()[0]
        return output

    def _checked(self, output: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        expected = (*self._layers, *mask.shape, self._manifest.hidden_size)
        if output.shape != expected:
            raise EncodingError(f"The model gave vectors of shape {output.shape}; expected {expected}. Export again.")
        return output if self._manifest.all_layers else output[None]

    def _check_graph(self, session: Any) -> None:
        manifest = self._manifest
        inputs = [node.name for node in session.get_inputs()]
        if sorted(inputs) != sorted(manifest.inputs) or not {*inputs} <= {"input_ids", "attention_mask"}:
            raise GraphError(
                f"The graph takes the inputs {inputs}; the manifest says {manifest.inputs}, and the runtime can give "
                "input_ids and attention_mask. Export the model again."
            )
        outputs = {node.name: node.shape for node in session.get_outputs()}
        if manifest.output not in outputs:
            raise GraphError(f"The graph gives {sorted(outputs)}, not {manifest.output!r}. Export the model again.")
        shape = outputs[manifest.output]
        expected = [*self._layers, "batch", "tokens", manifest.hidden_size]
        if len(shape) != len(expected) or (shape[:-3], shape[-1]) != (expected[:-3], expected[-1]):
            raise GraphError(f"The graph gives vectors of shape {shape}; expected {expected}. Export the model again.")
