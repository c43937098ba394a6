"""Writes nodes of ONNX as calls: `op.Add(a, 1.5)` adds a node and returns the name of its value."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import NodeProto, TensorProto
from onnx.helper import make_node
from onnx.numpy_helper import from_array


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
