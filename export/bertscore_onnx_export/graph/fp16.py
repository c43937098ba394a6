"""fp16: a graph computes in half precision, but for what half precision cannot hold."""

from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_node, make_tensor_value_info
from onnx.numpy_helper import from_array, to_array

from bertscore_onnx_export.graph.io import load_graph, replace_graph
from bertscore_onnx_export.graph.write import NORMS, OUTPUT

_LARGEST = float(np.finfo(np.float16).max)
_EXACT = {"CumSum", "Cos", "Log", "Range", "Sin"}
"""What these compute, and what leads to them, are positions: past 2,048 fp16 skips whole numbers, and the angles of
far positions are off by a radian long before."""

_SHAPE_ONLY = {"Shape", "Size"}
_FLOAT, _HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def convert_to_fp16(folder: Path) -> None:
    """Rewrite the graph of a folder to compute in fp16.

    Its inputs are integers and its output stays fp32, as do the norms of the vectors, whose floor is 0 in fp16, and
    all that is computed of positions.
    """
    model = load_graph(folder)
    _hoist_constants(model.graph)
    _Fp16Conversion(model).run()
    replace_graph(model, folder)


def _hoist_constants(graph: GraphProto) -> None:
    """Turn constant nodes into initializers, so that all constants are of one kind."""
    constants = [node for node in graph.node if node.op_type == "Constant" and node.attribute[0].name == "value"]
    for node in constants:
        graph.initializer.append(TensorProto())
        graph.initializer[-1].CopyFrom(node.attribute[0].t)
        graph.initializer[-1].name = node.output[0]
        graph.node.remove(node)


class _Fp16Conversion:
    """One pass over the nodes of a graph."""

    def __init__(self, model: ModelProto) -> None:
        self.graph: GraphProto = model.graph
        self.types = _value_types(model)
        self.constants = {tensor.name: tensor for tensor in self.graph.initializer}
        self.single = _values_to_keep(self.graph)
        """Values that stay in fp32."""

        self.nodes: list[NodeProto] = []
        self.copies: dict[tuple[str, int], str] = {}
        """By value and precision, the name of its copy in that precision."""

        self.new_constants: list[TensorProto] = []

    def run(self) -> None:
        for node in self.graph.node:
            kind = _FLOAT if node.output[0] in self.single else _HALF
            if node.op_type not in _SHAPE_ONLY:
                node.input[:] = [self._as(name, kind) for name in node.input]
            if kind == _HALF:
                _attributes_to_fp16(node)
            self.nodes.append(node)
        used = {name for node in self.nodes for name in node.input}
        replaced = {name for name, _ in self.copies} - used
        kept = [tensor for tensor in self.graph.initializer if tensor.name not in replaced]
        del self.graph.node[:], self.graph.initializer[:], self.graph.value_info[:]
        self.graph.node.extend(self.nodes)
        self.graph.initializer.extend([*kept, *self.new_constants])

    def _as(self, name: str, kind: int) -> str:
        """Return the name of a value in a precision; one that is not a float keeps its own."""
        here = _FLOAT if name in self.single or name in self.constants else _HALF
        if not name or self.types.get(name, _FLOAT) != _FLOAT or here == kind:
            return name
        if (name, kind) not in self.copies:
            copy = self.copies[name, kind] = f"{name}_{'fp16' if kind == _HALF else 'fp32'}"
            if name in self.constants:
                self.new_constants.append(_fp16_tensor(self.constants[name], copy))
            else:
                self.nodes.append(make_node("Cast", [name], [copy], to=kind))
        return self.copies[name, kind]


def _value_types(model: ModelProto) -> dict[str, int]:
    """Return the element types of the values of a graph, as far as ONNX's own operators say them.

    ONNX Runtime's, which are not inferred, give fp32 here.
    """
    bare = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    bare.graph.node.extend(model.graph.node)
    bare.graph.input.extend(model.graph.input)
    bare.graph.input.extend(
        make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in model.graph.initializer
    )  # without their data, which may be too large to be passed on
    inferred = onnx.shape_inference.infer_shapes(bare).graph
    return {value.name: value.type.tensor_type.elem_type for value in (*inferred.input, *inferred.value_info)}


def _values_to_keep(graph: GraphProto) -> set[str]:
    """Return the values that stay in fp32: the norms at the end, and positions with all that leads to them."""
    kept: set[str] = set()
    for node in reversed(graph.node):
        to_integer = node.op_type == "Cast" and node.attribute[0].i in {TensorProto.INT32, TensorProto.INT64}
        if node.op_type in _EXACT or to_integer or kept & {*node.output}:
            kept.update(node.output)
            if node.op_type not in _SHAPE_ONLY:
                kept.update(node.input)
    return kept | {OUTPUT, *NORMS}


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
    """Return a copy in fp16; the masks' largest negative number becomes fp16's own, and not infinity."""
    array = to_array(tensor)
    clipped = np.where(np.isfinite(array), np.clip(array, -_LARGEST, _LARGEST), array)
    return from_array(clipped.astype(np.float16), name)
