"""int8: products with weights are computed in 8-bit integers, each token with a scale of its own.

A product X W becomes (A B) s t, where A is X / s rounded to 8 bits, with a scale s for each row of X, which is a token,
and B is W / t rounded to 7 bits, with a scale t for each column of W. The usual dynamic quantization has one scale for
a whole batch instead: there a score depends on the other texts of its batch, and vectors move further (MiniLM at layer
4: 1 - cos is 0.008 on average, and 0.002 here).
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto
from onnx.helper import make_node
from onnx.numpy_helper import from_array, to_array

from bertscore_onnx.errors import UnsupportedFamilyError
from bertscore_onnx_export.graph.io import CONTRIB, load_graph, replace_graph

WEIGHT_LIMIT = 63
"""The largest weight. CPUs without VNNI add pairs of products in 16 bits and cut off what does not fit; 2 * 255 * 63
does, so that every CPU computes the same. An eighth bit of the weights bought nothing measurable."""

_STEP, _ZERO, _FLOOR = "int8_step", "int8_zero", "int8_smallest_scale"
_CONSTANTS = {
    _STEP: np.float32(1 / 127),  # of a row that was divided by its largest absolute value
    _ZERO: np.uint8(128),
    _FLOOR: np.float32(1e-30),  # a row may be all zeros
}


def quantize_to_int8(folder: Path) -> None:
    """Rewrite the graph of a folder so that its products with constant matrices are computed in int8.

    Raises:
        UnsupportedFamilyError: there is no such product.
    """
    model = load_graph(folder)
    if not _quantize_products(model.graph):
        raise UnsupportedFamilyError("Nothing in the graph can be computed in int8. Export it with --precision fp32.")
    replace_graph(model, folder)


def _quantize_products(graph: GraphProto) -> int:
    """Replace the products of a graph; return how many there were."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[NodeProto] = []
    matrices: dict[str, list[TensorProto]] = {}
    rows: set[str] = set()
    products = 0
    for node in graph.node:
        weight = tensors.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or len(weight.dims) != 2 or weight.data_type != TensorProto.FLOAT:
            nodes.append(node)
            continue
        if weight.name not in matrices:  # layers may share it
            matrices[weight.name] = _quantized_matrix(weight)
        if node.input[0] not in rows:  # query, key and value share it
            rows.add(node.input[0])
            nodes += _quantize_rows(node.input[0])
        nodes += _integer_product(node)
        products += 1
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name not in matrices or tensor.name in used]
    constants = [from_array(np.array(value), name) for name, value in _CONSTANTS.items()]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend([*kept, *constants, *(tensor for pair in matrices.values() for tensor in pair)])
    return products


def _quantized_matrix(weight: TensorProto) -> list[TensorProto]:
    matrix: NDArray[np.float32] = to_array(weight)  # (rows, columns)
    scales = np.abs(matrix).max(axis=0) / WEIGHT_LIMIT  # (columns,)
    whole = np.rint(matrix / np.where(scales > 0, scales, 1)).astype(np.int8)
    return [from_array(whole, f"{weight.name}_int8"), from_array(scales, f"{weight.name}_scale")]


def _quantize_rows(value: str) -> list[NodeProto]:
    return [
        make_node("Abs", [value], [f"{value}_abs"]),
        make_node("ReduceMax", [f"{value}_abs"], [f"{value}_largest"], axes=[-1], keepdims=1),
        make_node("Max", [f"{value}_largest", _FLOOR], [f"{value}_scale"]),
        make_node("Div", [value, f"{value}_scale"], [f"{value}_scaled"]),
        make_node("QuantizeLinear", [f"{value}_scaled", _STEP, _ZERO], [f"{value}_int8"]),
    ]


def _integer_product(node: NodeProto) -> list[NodeProto]:
    value, weight = node.input
    unscaled = f"{node.output[0]}_unscaled"
    inputs = [f"{value}_int8", f"{weight}_int8", _STEP, f"{weight}_scale", _ZERO]
    return [
        make_node("MatMulIntegerToFloat", inputs, [unscaled], node.name, domain=CONTRIB),
        make_node("Mul", [unscaled, f"{value}_scale"], node.output),
    ]
