"""Writes nodes of ONNX as calls: `op.Add(a, 1.5)` adds a node and returns the name of its value."""

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


class Nodes:
    """Nodes in the order of their calls.

    An input is the name of a value, or an array or a number that becomes a constant: whole ones int64, others fp32. The
    value is called after the operator, unless `name` says how; with `outputs` a call returns as many names.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        """What the names of values begin with."""
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def __getattr__(self, operator: str) -> Callable[..., Any]:
        def add(*inputs: str | ArrayLike, name: str = "", outputs: int = 1, **attributes: Any) -> Any:
            names = [self._name(value) for value in inputs]
            made = [name or f"{self.prefix}{operator}_{len(self.nodes)}_{index}" for index in range(outputs)]
            self.nodes.append(make_node(operator, names, made, **attributes))
            return made[0] if outputs == 1 else made

        return add

    def _name(self, value: str | ArrayLike) -> str:
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float32)
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(from_array(array, name))
        return name


# Reads and replaces the graph of a bundle with its weights, which lie in a file of their own where they are large.


CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""


def load_graph(folder: Path) -> Any:
    """Return the graph of a folder, an `onnx.ModelProto`, with all its weights in memory."""
    return onnx.load(folder / GRAPH_FILE)


def replace_graph(model: Any, folder: Path) -> None:
    """Write a graph in the place of the one in a folder, in as many files; it may use ONNX Runtime's own operators."""
    if all(opset.domain != CONTRIB for opset in model.opset_import):
        model.opset_import.append(make_opsetid(CONTRIB, 1))
    if (folder / DATA_FILE).exists():
        write_apart(model, folder)
    else:
        onnx.save(model, folder / GRAPH_FILE)


def write_apart(model: Any, folder: Path) -> None:
    """Write a graph with its weights in a file of their own, in the place of the one in a folder."""
    data, graph = folder / DATA_FILE, folder / GRAPH_FILE
    data.unlink(missing_ok=True)  # onnx would append to it
    graph.unlink()  # its weights are in memory; the disk need not hold them twice
    onnx.save(model, graph, save_as_external_data=True, location=DATA_FILE)
    data.chmod(graph.stat().st_mode)  # onnx lets nobody else read it
