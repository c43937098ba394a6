"""Writes the ONNX graph: token ids and mask in, unit token vectors out."""

import contextlib
import math
import re
import shutil
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import onnx
import torch
from onnx import ModelProto, NodeProto, TensorProto
from onnx.external_data_helper import set_external_data
from torch import Tensor
from transformers import PreTrainedModel

from bertscore_onnx.bundle.manifest import DATA_FILE, GRAPH_FILE
from bertscore_onnx.errors import ExportError, UnsupportedFamilyError
from bertscore_onnx_export.graph.nodes import Nodes
from bertscore_onnx_export.graph.output import INPUTS, normalise_output
from bertscore_onnx_export.model.load import count_layers
from bertscore_onnx_export.model.source import first_line
from bertscore_onnx_export.model.versions import traceable

_VECTORS = "last_hidden_state"

OPSET = 17

LARGE = 250_000_000
"""The bytes of weights from which they are streamed into a file of their own. For 1.3 GB an export into one file took
5.8 GB of memory and 63 s, the streamed one 2.0 GB and 23 s; a graph in one file cannot have more than 2 GB."""

SPARE = 100_000_000
"""The bytes of disk that an export needs beyond its weights."""


_INLINE_BYTES = 1024
"""Smaller tensors stay in the graph, even if its weights are in a file of their own."""

_ALIGNMENT = 4096
"""External data starts at multiples of this, as the ONNX specification recommends, so that it can be mapped."""


def write_graph(model: PreTrainedModel, folder: Path, *, all_layers: bool = False) -> list[str]:
    """Export a cut model to `model.onnx` in a folder, and large weights to `model.onnx.data`; return its inputs.

    The output is `token_embeddings`, (batch, tokens, hidden), each vector divided by its L2 norm as in bert-score
    (`utils.py:greedy_cos_idf`). With `all_layers`, after `stack_hidden_states`, it has a first axis for the layers.
    """
    path = folder / GRAPH_FILE
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    _require_space(folder, size)
    layers = [count_layers(model.config) + 1] if all_layers else []
    shape = [*layers, "batch", "tokens", model.config.hidden_size]
    try:
        if size < LARGE:
            _trace(model, shape, path)
            graph = onnx.load(path)
        else:
            graph = _export_streamed(model, shape, path, folder / DATA_FILE)
    except OSError as error:
        raise ExportError(f"Cannot write the graph to {folder}: {error.strerror}.") from error
    except Exception as error:  # a model's code may raise anything when it is traced
        raise UnsupportedFamilyError(
            f"Models of the type {model.config.model_type!r} cannot be exported at {count_layers(model.config)} "
            f"layers: {type(error).__name__}, {first_line(error)}"
        ) from error
    _use_products(graph)
    normalise_output(graph, shape)
    onnx.save(graph, path)
    onnx.checker.check_model(path)  # by its path, since a model in memory may have at most 2 GB
    return [node.name for node in graph.graph.input]


def _require_space(folder: Path, size: int) -> None:
    needed, free = size + SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise ExportError(
            f"The disk of {folder.parent} has {free / 1e9:.1f} GB left; this export needs {needed / 1e9:.1f} GB."
        )


def _use_products(model: ModelProto) -> None:
    """Replace Einsum nodes that multiply with a weight, as XLNet's do, by products with a matrix.

    ONNX Runtime packs constant matrices, and then sums in the same order for any number of tokens and threads.
    """
    weights = {tensor.name: [*tensor.dims] for tensor in model.graph.initializer}
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        product = None
        if node.op_type == "Einsum" and len(node.input) == 2 and node.input[1] in weights:
            product = _product(node, weights[node.input[1]])
        nodes += [node] if product is None else product.nodes
        model.graph.initializer.extend([] if product is None else product.constants)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _product(node: NodeProto, sizes: list[int]) -> Nodes | None:
    """Return the product that replaces an Einsum node, such as "ibh,hnd->ibnd"; None for another kind of equation."""
    left, right, result = re.split(r",|->", node.attribute[0].s.decode().replace(" ", ""))
    summed = "".join(axis for axis in left if axis in right)
    kept, added = left.removesuffix(summed), "".join(axis for axis in right if axis not in summed)
    if not (summed and kept + summed == left and kept + added == result):
        return None
    op = Nodes(f"{node.output[0]}_")
    weight = op.Transpose(node.input[1], perm=[right.index(axis) for axis in summed + added])
    rows = math.prod(sizes[right.index(axis)] for axis in summed)
    matrix = op.Reshape(weight, [rows, -1])
    vectors = op.Reshape(node.input[0], [*[0] * len(kept), rows])
    products = op.MatMul(vectors, matrix)
    op.Reshape(products, [*[0] * len(kept), *(sizes[right.index(axis)] for axis in added)], name=node.output[0])
    return op


@contextlib.contextmanager
def _as_graph(model: PreTrainedModel) -> Iterator[None]:
    """Give a model the inputs and the output of a graph; families differ in theirs."""
    forward = model.forward

    def encode(input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        vectors: Tensor = forward(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return vectors  # (batch, tokens, hidden), with a first axis for all layers

    model.forward = encode
    try:
        yield
    finally:
        model.forward = forward


def _trace(model: PreTrainedModel, shape: Sequence[int | str], path: Path, *, with_weights: bool = True) -> None:
    """Write the graph; without weights these become inputs, named as in the model."""
    ids, mask = torch.ones(2, 16, dtype=torch.int64), torch.ones(2, 16, dtype=torch.int64)
    mask[1, -3:] = 0  # so that no part of a model skips the mask
    axes = {axis: name for axis, name in enumerate(shape) if isinstance(name, str)}
    with _as_graph(model), traceable(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer warns of constants, which do not depend on the input's shape
        torch.onnx.export(
            model,
            (ids, mask),
            path,
            input_names=INPUTS,
            output_names=[_VECTORS],
            dynamic_axes={**{name: {0: "batch", 1: "tokens"} for name in INPUTS}, _VECTORS: axes},
            opset_version=OPSET,
            export_params=with_weights,
            do_constant_folding=with_weights,
            dynamo=False,
        )


# The export of a large model in little more memory than its own: the graph is traced without weights, which are then
# written one after the other. The usual export holds the weights several times, and fails at 2 GB in one file.


def _export_streamed(model: PreTrainedModel, shape: Sequence[int | str], path: Path, data: Path) -> ModelProto:
    """Export a model with its weights in a file of their own."""
    _trace(model, shape, path, with_weights=False)
    proto = onnx.load(path)
    tensors = {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
    inputs = [node for node in proto.graph.input if node.name in INPUTS]
    weights = [node.name for node in proto.graph.input if node.name not in INPUTS]
    with data.open("wb") as file:
        _move_weights(proto, {name: tensors[name].detach() for name in weights}, file)
    del proto.graph.input[:]
    proto.graph.input.extend(inputs)
    return proto


def _move_weights(proto: ModelProto, weights: Mapping[str, Tensor], file: BinaryIO) -> None:
    """Turn inputs into initializers with data in a file; weights that are only used transposed are written so."""
    users: dict[str, list[NodeProto]] = defaultdict(list)
    for node in proto.graph.node:
        for name in node.input:
            users[name].append(node)
    written: dict[tuple[object, ...], str] = {}  # data in the file to the name of its initializer
    alias: dict[str, str] = {}  # names of weights, also transposed ones, to the initializer with their data
    for name, weight in weights.items():
        transposing = [node for node in users[name] if node.op_type == "Transpose"]
        views = [(node.output[0], weight.permute(*node.attribute[0].ints)) for node in transposing]
        if len(transposing) < len(users[name]) or not transposing:
            views.append((name, weight))
        for view_name, view in views:
            key = (view.data_ptr(), view.shape, view.stride())
            if key not in written:
                written[key] = view_name
                proto.graph.initializer.append(_write(view_name, view, file))
            alias[view_name] = written[key]
    nodes = [node for node in proto.graph.node if node.output[0] not in alias]
    for node in nodes:
        node.input[:] = [alias.get(name, name) for name in node.input]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)


def _write(name: str, tensor: Tensor, file: BinaryIO) -> TensorProto:
    array = tensor.contiguous().numpy()
    if array.nbytes < _INLINE_BYTES:
        return onnx.numpy_helper.from_array(array, name)
    file.write(bytes(-file.tell() % _ALIGNMENT))
    kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    external = TensorProto(name=name, data_type=kind, dims=array.shape, raw_data=b"")
    set_external_data(external, Path(file.name).name, offset=file.tell(), length=array.nbytes)
    external.ClearField("raw_data")
    file.write(array.data)
    return external
