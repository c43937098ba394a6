"""The inputs and the output of a bundle's graph."""

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto
from onnx.helper import make_node, make_tensor, make_tensor_value_info

INPUTS = ["input_ids", "attention_mask"]
OUTPUT = "token_embeddings"
NORMS = ("norm", "positive_norm")
"""The values between the model's own vectors and the output."""


def normalise_output(model: Any, shape: Sequence[int | str]) -> None:
    """Append x / max(‖x‖, 1e-12) to the graph; the lower bound prevents NaN for a zero vector."""
    graph = model.graph
    vectors = graph.output[0].name
    norm, positive_norm = NORMS
    axes = ["last_axis"] if _opset(model) >= 18 else []  # an attribute became an input
    graph.initializer.extend(make_tensor(name, TensorProto.INT64, [1], [-1]) for name in axes)
    graph.initializer.append(make_tensor("smallest_norm", TensorProto.FLOAT, [], [1e-12]))
    graph.node.extend(
        [
            make_node("ReduceL2", [vectors, *axes], [norm], keepdims=1, **({} if axes else {"axes": [-1]})),
            make_node("Max", [norm, "smallest_norm"], [positive_norm]),
            make_node("Div", [vectors, positive_norm], [OUTPUT]),
        ]
    )
    del graph.output[:]
    graph.output.append(make_tensor_value_info(OUTPUT, TensorProto.FLOAT, shape))


def _opset(model: Any) -> int:
    return int(max(opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")))
