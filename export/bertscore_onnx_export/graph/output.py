"""The inputs and the output of a bundle's graph."""

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto
from onnx.helper import make_node, make_tensor, make_tensor_value_info

from bertscore_onnx_export.graph.nodes import take_axes_as_inputs

INPUTS = ["input_ids", "attention_mask"]
OUTPUT = "token_embeddings"
NORMS = ("norm", "positive_norm")
"""The values between the model's own vectors and the output."""


def normalise_output(model: Any, shape: Sequence[int | str]) -> None:
    """Append x / max(‖x‖, 1e-12) to the graph.

    The lower bound prevents NaN for a zero vector.
    """
    graph = model.graph
    vectors = graph.output[0].name
    norm, positive_norm = NORMS
    graph.initializer.append(make_tensor("smallest_norm", TensorProto.FLOAT, [], [1e-12]))
    graph.node.extend(
        [
            make_node("ReduceL2", [vectors], [norm], axes=[-1], keepdims=1),
            make_node("Max", [norm, "smallest_norm"], [positive_norm]),
            make_node("Div", [vectors, positive_norm], [OUTPUT]),
        ]
    )
    del graph.output[:]
    graph.output.append(make_tensor_value_info(OUTPUT, TensorProto.FLOAT, shape))
    take_axes_as_inputs(model)
