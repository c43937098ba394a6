"""Rewrites a graph: with fused operators, in fp16, or in int8."""

import contextlib
import io
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_node, make_tensor_value_info
from onnx.numpy_helper import from_array, to_array
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model

from bertscore_onnx.bundle.manifest import GRAPH_FILE
from bertscore_onnx.errors import UnsupportedFamilyError
from bertscore_onnx_export.graph.nodes import CONTRIB, load_graph, replace_graph
from bertscore_onnx_export.graph.output import NORMS, OUTPUT

_PATTERNS = "bert"
"""The set of patterns for ONNX Runtime's optimizer.

The others match no more in the encoders of the known families.
"""


def fuse(folder: Path, config: Any) -> None:
    """Fuse operators of the graph in a folder into ONNX Runtime's.

    The graph is in fp32; attention, normalisation and activation are fused.

    On a GPU the fused operators are faster, and they sum in fp32 where a chain of small operators
    would overflow fp16.
    """
    heads = getattr(config, "num_attention_heads", 0)  # 0: derived from the graph
    options = FusionOptions(_PATTERNS)
    options.enable_embed_layer_norm = False  # it would require int32 inputs
    options.enable_rotary_embeddings = False  # it would require positions for each text of a batch
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that it cannot infer some shapes
        fused = optimize_model(
            str(folder / GRAPH_FILE),
            _PATTERNS,
            heads,
            config.hidden_size,
            opt_level=0,
            optimization_options=options,
            use_gpu=True,
        )
        fused.topological_sort()
    replace_graph(fused.model, folder)


_LARGEST = float(np.finfo(np.float16).max)
_EXACT = {"CumSum", "Cos", "Log", "Range", "Sin"}
"""Operators on positions. They and all that leads to them stay in fp32: fp16 skips integers past
2,048, and the angles of far positions are off by a radian long before."""

_SOFTMAX = "Softmax"
"""An operator that stays in fp32 where it is not part of a fused attention. The CPU has no kernel
for it in fp16, and the operators that would replace it sum in an order that depends on the
padding."""

_SHAPE_ONLY = {"Shape", "Size"}
_FLOAT = TensorProto.FLOAT
_HALF = TensorProto.FLOAT16


def convert_to_fp16(folder: Path) -> None:
    """Rewrite the graph in a folder to compute in fp16.

    The inputs are integers. The output stays fp32, as do the norms of the vectors, whose lower
    bound is 0 in fp16, and all values computed from positions.
    """
    model = load_graph(folder)
    _hoist_constants(model.graph)
    _Fp16Conversion(model).run()
    replace_graph(model, folder)


def _hoist_constants(graph: GraphProto) -> None:
    """Turn constant nodes into initializers.

    Then there is one kind of constants.
    """
    for node in list(graph.node):
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            graph.initializer.append(TensorProto())
            graph.initializer[-1].CopyFrom(node.attribute[0].t)
            graph.initializer[-1].name = node.output[0]
            graph.node.remove(node)


class _Fp16Conversion:
    """Converts a graph in one pass over its nodes."""

    def __init__(self, model: ModelProto) -> None:
        self.graph: GraphProto = model.graph
        self.types = _value_types(model)
        self.constants = {tensor.name: tensor for tensor in self.graph.initializer}
        self.single = _values_to_keep(self.graph)
        """Values that stay in fp32."""

        self.nodes: list[NodeProto] = []
        self.copies: dict[tuple[str, int], str] = {}
        """The name of a value's copy in a precision, by value and precision."""

        self.new_constants: list[TensorProto] = []

    def run(self) -> None:
        for node in self.graph.node:
            kind = _FLOAT if node.output[0] in self.single else _HALF
            if node.op_type not in _SHAPE_ONLY:
                node.input[:] = [self._as(name, kind) for name in node.input]
            if kind == _HALF:
                _attributes_to_fp16(node)
            self.nodes.append(node)
        replaced = {name for name, _ in self.copies} - _inputs(self.nodes)
        kept = [tensor for tensor in self.graph.initializer if tensor.name not in replaced]
        del self.graph.node[:], self.graph.initializer[:], self.graph.value_info[:]
        self.graph.node.extend(self.nodes)
        self.graph.initializer.extend([*kept, *self.new_constants])

    def _as(self, name: str, kind: int) -> str:
        """Return the name of a value in a precision.

        Values that are not floats keep theirs.
        """
        current = _FLOAT if name in self.single or name in self.constants else _HALF
        if not name or self.types.get(name, _FLOAT) != _FLOAT or current == kind:
            return name
        if (name, kind) not in self.copies:
            precision = "fp16" if kind == _HALF else "fp32"
            copy = f"{name}_{precision}"
            self.copies[name, kind] = copy
            if name in self.constants:
                self.new_constants.append(_fp16_tensor(self.constants[name], copy))
            else:
                self.nodes.append(make_node("Cast", [name], [copy], to=kind))
        return self.copies[name, kind]


def _value_types(model: ModelProto) -> dict[str, int]:
    """Return the element types of a graph's values that ONNX infers.

    The results of ONNX Runtime's own operators are not inferred; all of them are fp32 here.
    """
    bare = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    bare.graph.node.extend(model.graph.node)
    bare.graph.input.extend(model.graph.input)
    bare.graph.input.extend(
        make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in model.graph.initializer
    )  # without their data, which may be too large to pass on
    inferred = onnx.shape_inference.infer_shapes(bare).graph
    values = [*inferred.input, *inferred.value_info]
    return {value.name: value.type.tensor_type.elem_type for value in values}


def _values_to_keep(graph: GraphProto) -> set[str]:
    """Return the values that stay in fp32: softmax, the norms at the end, and positions with all
    values that they are computed from.
    """
    kept: set[str] = set()
    softmax = set()
    integers = {TensorProto.INT32, TensorProto.INT64}
    for node in reversed(graph.node):
        to_integer = node.op_type == "Cast" and node.attribute[0].i in integers
        if node.op_type in _EXACT or to_integer or kept.intersection(node.output):
            kept.update(node.output)
            if node.op_type not in _SHAPE_ONLY:
                kept.update(node.input)
        if node.op_type == _SOFTMAX:
            softmax.add(node.output[0])
    return kept | softmax | {OUTPUT, *NORMS}


def _attributes_to_fp16(node: NodeProto) -> None:
    for attribute in node.attribute:
        if node.op_type == "Cast" and attribute.i == _FLOAT:
            attribute.i = _HALF
        if attribute.type == AttributeProto.TENSOR and attribute.t.data_type == _FLOAT:
            attribute.t.CopyFrom(_fp16_tensor(attribute.t, attribute.t.name))
        for inner in attribute.g.node:  # a branch of a condition
            _attributes_to_fp16(inner)
        for output in attribute.g.output:
            if output.type.tensor_type.elem_type == _FLOAT:
                output.type.tensor_type.elem_type = _HALF


def _fp16_tensor(tensor: TensorProto, name: str) -> TensorProto:
    """Return a copy in fp16.

    Masks use the largest negative number, which becomes fp16's and not infinity.
    """
    array = to_array(tensor)
    clipped = np.where(np.isfinite(array), np.clip(array, -_LARGEST, _LARGEST), array)
    return from_array(clipped.astype(np.float16), name)


# int8: products with weights are computed in 8-bit integers, with a scale for each token. A product
# X W becomes (A B) s t, where A is X / s rounded to 8 bits, with a scale s for each row of X, which
# is a token, and B is W / t rounded to 7 bits, with a scale t for each column of W. The usual
# dynamic quantization has one scale for a whole batch instead, so that a score depends on the other
# texts of its batch, and vectors change more (MiniLM at layer 4: 1 - cos is 0.008 on average, and
# 0.002 here).

WEIGHT_LIMIT = 63
"""The largest weight. CPUs without VNNI add pairs of products in 16 bits and saturate; 2 * 255 * 63
fits, so that every CPU computes the same. An eighth bit of the weights brought no measurable
gain."""

_STEP = "int8_step"
_ZERO = "int8_zero"
_FLOOR = "int8_smallest_scale"
_CONSTANTS = {
    _STEP: np.float32(1 / 127),  # for a row divided by its largest absolute value
    _ZERO: np.uint8(128),
    _FLOOR: np.float32(1e-30),  # a row may be all zeros
}


def quantize_to_int8(folder: Path) -> None:
    """Rewrite the graph in a folder to multiply in int8.

    Products with constant matrices are computed so.
    """
    model = load_graph(folder)
    if not _quantize_products(model.graph):
        raise UnsupportedFamilyError(
            "Nothing in the graph can be computed in int8. Export it with --precision fp32."
        )
    replace_graph(model, folder)


def _quantize_products(graph: GraphProto) -> int:
    """Replace the products of a graph, and return their number."""
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
    replaced = matrices.keys() - _inputs(nodes)
    initializers = [tensor for tensor in graph.initializer if tensor.name not in replaced]
    initializers += [from_array(np.array(value), name) for name, value in _CONSTANTS.items()]
    initializers += chain(*matrices.values())
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(initializers)
    return products


def _inputs(nodes: list[NodeProto]) -> set[str]:
    return set().union(*(node.input for node in nodes))


def _quantized_matrix(weight: TensorProto) -> list[TensorProto]:
    matrix = to_array(weight)  # (rows, columns)
    scales = np.abs(matrix).max(axis=0) / WEIGHT_LIMIT  # (columns,)
    rounded = np.rint(matrix / np.where(scales > 0, scales, 1)).astype(np.int8)
    return [from_array(rounded, f"{weight.name}_int8"), from_array(scales, f"{weight.name}_scale")]


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
