"""Writes the ONNX graph: token ids and mask in, unit token vectors out."""

import math
import re
import shutil
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.external_data_helper import set_external_data
from onnx.numpy_helper import from_array, to_array
from torch import Tensor
from transformers import PreTrainedModel

from bertscore_onnx.bundle.manifest import DATA_FILE, GRAPH_FILE
from bertscore_onnx.bundle.store import Exporter
from bertscore_onnx.errors import ExportError, MissingExtraError, UnsupportedFamilyError
from bertscore_onnx_export.graph import exporters
from bertscore_onnx_export.graph.exporters import export_graph, size_of
from bertscore_onnx_export.graph.nodes import Nodes
from bertscore_onnx_export.graph.output import INPUTS, normalise_output
from bertscore_onnx_export.model.distances import tabulated_distances
from bertscore_onnx_export.model.load import count_layers
from bertscore_onnx_export.model.source import first_line
from bertscore_onnx_export.model.versions import traceable

SPARE = 100_000_000
"""The bytes of disk that an export needs beyond its weights."""

_INLINE_BYTES = 1024
"""Smaller tensors stay in the graph, even if its weights are in a file of their own."""

_ALIGNMENT = 4096
"""External data starts at multiples of this, so that it can be mapped.

The ONNX specification recommends it.
"""


def write_graph(
    model: PreTrainedModel, folder: Path, *, all_layers: bool = False, exporter: Exporter = "torch"
) -> list[str]:
    """Export a cut model to `model.onnx` in a folder, and return its inputs.

    Large weights go to `model.onnx.data`.

    The output is `token_embeddings`, (batch, tokens, hidden), each vector divided by its L2 norm as
    in bert-score (`utils.py:greedy_cos_idf`). With `all_layers`, after `stack_hidden_states`, it
    has a first axis for the layers.
    """
    path = folder / GRAPH_FILE
    size = size_of(model)
    _require_space(folder, size)
    layers = [count_layers(model.config) + 1] if all_layers else []
    shape = [*layers, "batch", "tokens", model.config.hidden_size]
    try:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _run(exporter, model, Path(scratch) / GRAPH_FILE)
            proto = onnx.load(Path(scratch) / GRAPH_FILE)
        if size >= exporters.LARGE:
            with (folder / DATA_FILE).open("wb") as file:
                _move_weights(proto.graph, model, file)
    except OSError as error:
        raise ExportError(f"Cannot write the graph to {folder}: {error.strerror}.") from error
    except MissingExtraError:
        raise
    except Exception as error:  # a model's code may raise anything when it is traced
        raise UnsupportedFamilyError(
            f"Models of the type {model.config.model_type!r} cannot be exported at "
            f"{count_layers(model.config)} layers: {type(error).__name__}, {first_line(error)}"
        ) from error
    _use_products(proto)
    normalise_output(proto, shape)
    onnx.save(proto, path)
    onnx.checker.check_model(path)  # by its path, since a model in memory may have at most 2 GB
    return [node.name for node in proto.graph.input]


def _require_space(folder: Path, size: int) -> None:
    needed = size + SPARE
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ExportError(
            f"The disk of {folder.parent} has {free / 1e9:.1f} GB left; this export needs "
            f"{needed / 1e9:.1f} GB."
        )


def _use_products(model: ModelProto) -> None:
    """Replace Einsum nodes that multiply with a weight by products.

    XLNet has such nodes.

    ONNX Runtime packs constant matrices, and then sums in the same order for any number of tokens
    and threads.
    """
    weights = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        product = None
        if node.op_type == "Einsum" and len(node.input) == 2 and node.input[1] in weights:
            product = _product(node, weights[node.input[1]])
        if product is None:
            nodes.append(node)
        else:
            nodes += product.nodes
            model.graph.initializer.extend(product.constants)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _product(node: NodeProto, sizes: list[int]) -> Nodes | None:
    """Return the product that replaces an Einsum such as `ibh,hnd->ibnd`; None for another kind."""
    left, right, result = re.split(r",|->", node.attribute[0].s.decode().replace(" ", ""))
    # The summed axes must end the left input, and the result must have the others in order.
    summed = "".join(axis for axis in left if axis in right)
    added = "".join(axis for axis in right if axis not in summed)
    kept = left.removesuffix(summed)
    if not (summed and kept + summed == left and kept + added == result):
        return None
    op = Nodes(f"{node.output[0]}_")
    order = [right.index(axis) for axis in summed + added]
    ordered_sizes = [sizes[axis] for axis in order]
    rows = math.prod(ordered_sizes[: len(summed)])
    matrix = op.Reshape(op.Transpose(node.input[1], perm=order), [rows, -1])
    kept_sizes = [0] * len(kept)  # 0 keeps a size
    vectors = op.Reshape(node.input[0], [*kept_sizes, rows])
    products = op.MatMul(vectors, matrix)
    shape = [*kept_sizes, *ordered_sizes[len(summed) :]]
    op.Reshape(products, shape, name=node.output[0])
    return op


def _run(exporter: Exporter, model: PreTrainedModel, path: Path) -> None:
    """Write a graph with the inputs and the output of all graphs.

    Families differ in theirs.
    """
    forward = model.forward

    def encode(input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return forward(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    model.forward = encode
    try:
        with traceable(), tabulated_distances(model), torch.no_grad(), warnings.catch_warnings():
            # a tracer warns of constants, which do not depend on the input's shape
            warnings.simplefilter("ignore")
            export_graph(exporter, model, path)
    finally:
        model.forward = forward


# A large model is exported in little more memory than its own: its graph comes without weights, or
# with them in files, and they are written one after the other.


def _move_weights(graph: GraphProto, model: PreTrainedModel, file: BinaryIO) -> None:
    """Move a graph's weights to a file, also those that it takes as inputs.

    Those that are only used transposed are written so.
    """
    weights = _take_weights(graph, model)
    users: dict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            users[name].append(node)
    written: dict[tuple[object, ...], str] = {}  # data in the file to the name of its initializer
    # names of weights, also transposed ones, to the initializer with their data
    alias: dict[str, str] = {}
    for name, weight in weights.items():
        transposing = [node for node in users[name] if node.op_type == "Transpose"]
        views = [(node.output[0], weight.transpose(_order(node))) for node in transposing]
        if len(transposing) < len(users[name]) or not transposing:
            views.append((name, weight))
        for view_name, view in views:
            key = (view.__array_interface__["data"], view.dtype, view.shape, view.strides)
            if key not in written:
                written[key] = view_name
                graph.initializer.append(_write(view_name, view, file))
            alias[view_name] = written[key]
    nodes = [node for node in graph.node if node.output[0] not in alias]
    for node in nodes:
        node.input[:] = [alias.get(name, name) for name in node.input]
    del graph.node[:]
    graph.node.extend(nodes)


def _take_weights(graph: GraphProto, model: PreTrainedModel) -> dict[str, NDArray[Any]]:
    """Remove the weights of a graph, and return them.

    Those among its inputs are the model's, by its names.
    """
    tensors = dict(model.named_parameters(remove_duplicate=False))
    tensors |= model.named_buffers(remove_duplicate=False)
    inputs = []
    weights = {}
    for node in graph.input:
        if node.name in INPUTS:
            inputs.append(node)
        else:
            weights[node.name] = tensors[node.name].detach().numpy()
    for tensor in graph.initializer:
        weights[tensor.name] = to_array(tensor)
        tensor.ClearField("raw_data")
    del graph.input[:], graph.initializer[:]
    graph.input.extend(inputs)
    return weights


def _order(transpose: NodeProto) -> list[int] | None:
    """Return the order in which a node transposes axes; None for the reverse."""
    return list(transpose.attribute[0].ints) if transpose.attribute else None


def _write(name: str, weight: NDArray[Any], file: BinaryIO) -> TensorProto:
    array = np.ascontiguousarray(weight).reshape(weight.shape)  # a number would get an axis
    if array.nbytes < _INLINE_BYTES:
        return from_array(array, name)
    file.write(bytes(-file.tell() % _ALIGNMENT))
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    external = TensorProto(name=name, data_type=kind, dims=array.shape, raw_data=b"")
    set_external_data(external, Path(file.name).name, offset=file.tell(), length=array.nbytes)
    external.ClearField("raw_data")
    file.write(array.data)
    return external
