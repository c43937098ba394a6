"""The encoder's graph: the token ids of a padded batch in, unit token embeddings out."""

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.encoding.onnx_runtime.graph import OnnxGraph
from bertscore_onnx.encoding.onnx_runtime.sessions import OptimizeFor
from bertscore_onnx.errors import GraphError

_INPUTS = {"input_ids", "attention_mask"}


class OnnxModel:
    """The model of one bundle on one provider; threads may share it."""

    def __init__(
        self,
        bundle: Bundle,
        *,
        device: object = None,
        num_threads: int | None = None,
        optimize_for: OptimizeFor = "throughput",
    ) -> None:
        """Load the graph.

        Args:
            bundle: the bundle whose graph to run.
            device, num_threads, optimize_for: as in `SharedSession`.

        Raises:
            MissingExtraError, InputError, DeviceError: as `SharedSession` says.
            GraphError: the graph cannot be loaded, or its inputs or output are not those of the manifest.
        """
        manifest = self._manifest = bundle.manifest
        if not {*manifest.inputs} <= _INPUTS:
            raise GraphError(
                f"The manifest says that the graph takes the inputs {manifest.inputs}; the runtime can give "
                f"{sorted(_INPUTS)}. Export the model again."
            )
        shape: list[int | str] = ["batch", "tokens", manifest.hidden_size]
        output = {manifest.output: [len(manifest.layers), *shape] if manifest.all_layers else shape}
        self.graph: OnnxGraph = OnnxGraph(
            bundle,
            bundle.graph_path,
            manifest.inputs,
            output,
            device=device,
            num_threads=num_threads,
            optimize_for=optimize_for,
        )
        """The graph on its provider."""

    def run(self, input_ids: NDArray[np.int64], mask: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Run the graph on one padded batch.

        Args:
            input_ids: token ids, (batch, tokens).
            mask: 1 on tokens and 0 on padding, (batch, tokens).
            vectors: where the unit vectors go, (layers, batch, tokens, hidden); those of padding mean nothing.

        Raises:
            EncodingError: the run failed, or its vectors are not of that shape.
            OutOfMemoryError, ClosedError, DeviceError: as `OnnxGraph.run` says.
        """
        values = {"input_ids": input_ids, "attention_mask": mask}
        feed = {name: values[name] for name in self._manifest.inputs}
        self.graph.run(feed, [vectors if self._manifest.all_layers else vectors[0]])
