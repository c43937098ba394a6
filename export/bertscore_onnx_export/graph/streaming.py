"""Exports a large model in little more memory than its own: traces the graph alone, then writes weight after weight.

The usual export holds the weights several times over, and cannot write 2 GB into one file without help.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import torch
from onnx import ModelProto, NodeProto, TensorProto
from onnx.external_data_helper import set_external_data
from torch import Tensor
from transformers import PreTrainedModel

_INLINE_BYTES = 1024
"""Smaller tensors stay in the graph."""

_ALIGNMENT = 4096
"""The ONNX specification recommends that external data start at multiples of this, so that it can be mapped."""


def export_streamed(model: PreTrainedModel, config: Any, opset: int, path: Path, data: Path) -> ModelProto:
    """Export a model with its weights in a file of their own.

    Args:
        model: the model, on the CPU.
        config: optimum's description of its inputs and outputs.
        opset: the version of the operators.
        path: the file for the graph; what is written there lacks the weights.
        data: the file for the weights, beside it.

    Returns:
        The graph to be written to `path`, which refers to `data` by its name.
    """
    _trace(model, config, opset, path)
    proto = onnx.load(path)
    tensors = {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
    weights = [node.name for node in proto.graph.input if node.name not in config.inputs]
    with data.open("wb") as file:
        _move_weights(proto, {name: tensors[name].detach() for name in weights}, file)
    inputs = [node for node in proto.graph.input if node.name in config.inputs]
    del proto.graph.input[:]
    proto.graph.input.extend(inputs)
    return proto


def _trace(model: PreTrainedModel, config: Any, opset: int, path: Path) -> None:
    """Write the graph alone; the weights become inputs, named as in the model."""
    with torch.no_grad(), config.patch_model_for_export(model, model_kwargs={}):
        torch.onnx.export(
            model,
            (config.generate_dummy_inputs(framework="pt"),),
            path,
            input_names=list(config.ordered_inputs(model)),
            output_names=list(config.outputs),
            dynamic_axes={**config.inputs, **config.outputs},
            opset_version=opset,
            export_params=False,
            do_constant_folding=False,
            dynamo=False,
        )


def _move_weights(proto: ModelProto, weights: Mapping[str, Tensor], file: BinaryIO) -> None:
    """Turn inputs into initializers whose data lies in a file; a weight that is only used transposed lies so."""
    users: dict[str, list[NodeProto]] = defaultdict(list)
    for node in proto.graph.node:
        for name in node.input:
            users[name].append(node)
    written: dict[tuple[object, ...], str] = {}  # what lies in the file already, to the name of its initializer
    alias: dict[str, str] = {}  # names of further weights, or transposed ones, to the initializer that has their data
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
