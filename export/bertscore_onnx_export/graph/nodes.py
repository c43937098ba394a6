"""Builds ONNX graphs from calls, such as `op.Add(a, 1.5)`.

Reads and replaces the graph of a folder.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import NodeProto, TensorProto
from onnx.helper import make_node, make_opsetid
from onnx.numpy_helper import from_array

from bertscore_onnx.bundle.manifest import DATA_FILE, GRAPH_FILE

CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""


class Nodes:
    """Collects the nodes of a graph in the order of the calls that add them.

    A call adds a node and returns the name of its value, or as many names as `outputs`; `name` sets
    it. An input is the name of a value, or an array or a number, which becomes a constant: int64
    for integers, otherwise fp32.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        """The beginning of all names of values."""
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def __getattr__(self, operator: str) -> Callable[..., Any]:
        def add(
            *inputs: str | ArrayLike, name: str = "", outputs: int = 1, **attributes: Any
        ) -> Any:
            names = [self._name(value) for value in inputs]
            prefix = f"{self.prefix}{operator}_{len(self.nodes)}"
            values = [name or f"{prefix}_{index}" for index in range(outputs)]
            self.nodes.append(make_node(operator, names, values, **attributes))
            return values[0] if outputs == 1 else values

        return add

    def _name(self, value: str | ArrayLike) -> str:
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        kind = np.int64 if array.dtype.kind in "iu" else np.float32
        array = array.astype(kind)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(from_array(array, name))
        return name


def take_axes_as_inputs(model: Any) -> None:
    """Give reductions their axes as an input, instead of an attribute.

    An input is what the axes are from opset 18 on.
    """
    if max(opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")) < 18:
        return
    pending = [model.graph]
    for graph in pending:
        for node in graph.node:
            for attribute in list(node.attribute):
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                if attribute.name == "axes" and node.op_type.startswith("Reduce"):
                    name = f"{node.output[0]}_axes"
                    node.input.append(name)
                    model.graph.initializer.append(from_array(np.array(attribute.ints), name))
                    node.attribute.remove(attribute)


def load_graph(folder: Path) -> Any:
    """Return the graph in a folder, an `onnx.ModelProto`.

    All its weights are in memory.
    """
    return onnx.load(folder / GRAPH_FILE)


def replace_graph(model: Any, folder: Path) -> None:
    """Replace the graph in a folder, and allow contrib operators.

    Weights stay in a file of their own if they were in one.
    """
    take_axes_as_inputs(model)
    if all(opset.domain != CONTRIB for opset in model.opset_import):
        model.opset_import.append(make_opsetid(CONTRIB, 1))
    if (folder / DATA_FILE).exists():
        write_apart(model, folder)
    else:
        onnx.save(model, folder / GRAPH_FILE)


def write_apart(model: Any, folder: Path) -> None:
    """Replace the graph in a folder, with the weights in a file of their own."""
    data = folder / DATA_FILE
    graph = folder / GRAPH_FILE
    data.unlink(missing_ok=True)  # onnx would append to it
    graph.unlink()  # its weights are in memory, and need not be on the disk twice
    onnx.save(model, graph, save_as_external_data=True, location=DATA_FILE)
    data.chmod(graph.stat().st_mode)  # onnx makes it readable for this user only
