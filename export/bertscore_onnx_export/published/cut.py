"""Cuts a published graph at a layer.

Its hidden states are found by the names of nodes, and checked by their shape.
"""

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_node, make_tensor_value_info
from onnx.numpy_helper import from_array, to_array

from bertscore_onnx.bundle.bundle import MAX_NODES
from bertscore_onnx.bundle.manifest import DATA_FILE, GRAPH_FILE
from bertscore_onnx.encoding.providers import load_onnxruntime
from bertscore_onnx.errors import ExportError, one_line
from bertscore_onnx_export.graph.nodes import Nodes
from bertscore_onnx_export.graph.output import INPUTS, normalise_output
from bertscore_onnx_export.model.source import check_layer, first_line
from bertscore_onnx_export.published.config import PublishedConfig

_LAYER = re.compile(r"(?<![A-Za-z0-9_])(?:layers?|blocks?|h)(?:[./]|_\._)(\d+)(?!\d)")
"""The place of a layer in the name of a node, in TensorFlow `layer_._0`, or in the scopes that
PyTorch's newer exporter writes beside it."""

_VECTOR_OUTPUTS = ("encoder_last_hidden_state", "last_hidden_state", "token_embeddings")
"""The names of vectors in the graphs of transformers' and of sentence-transformers' exporters. The
first is that of a model with a decoder, to which the second belongs in a graph with both."""

_DECODER = re.compile(r"(?<![A-Za-z0-9])decoder(?![A-Za-z0-9])")
"""The part of a name that marks the nodes and weights of a decoder."""

_WIDE_TYPES = {
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.BOOL,
}
"""The types of constants in a graph that computes in fp32. The weights of others are rounded or
quantised.
"""

_WHOLE = (*INPUTS, "token_type_ids", "position_ids")
"""The inputs that are whole numbers, whatever type a graph has them in."""

_HALVES = {TensorProto.FLOAT16, TensorProto.BFLOAT16}

_DRAWING = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}
"""The operators that draw at random, beside Dropout in training mode."""

_PROBE = np.array([[5, 6, 7, 8, 9, 10, 11]] * 2)
"""Token ids of a shape that no other value is likely to have."""

_STATES = "published_states"
"""The input of the nodes after the last layer, where they are tried alone."""

_ROUNDING = 1e-4
"""The difference of equal vectors in fp32, as a share of their largest coordinate."""

_LONG = 512
"""The tokens of the longest text that is tried: attention to the whole of a longer one takes much
memory.
"""


@dataclass(frozen=True, slots=True)
class PublishedGraph:
    """A graph of token ids and a mask, with the names of its hidden states."""

    model: ModelProto
    vectors: str
    """The value that the graph returns as the vectors of the last layer."""

    hidden_states: list[str]
    """The values before each layer and after the last; empty if they cannot be found."""


def read_graph(file: str, config: PublishedConfig) -> PublishedGraph:
    """Read a graph and find its hidden states.

    Raise an ExportError if it is not one of an encoder in fp32.
    """
    try:
        model = onnx.load(file)
    except Exception as error:  # of protobuf, onnx or the system
        raise ExportError(
            f"{file} cannot be read: {one_line(error)}. Download it and its data again; in a "
            "clone, run `git lfs pull`."
        ) from error
    _check_size(model, file)
    _cast_inputs(model.graph)
    vectors = _rename_output(model, _find_vectors(model, config, file))
    kept = [value for value in model.graph.output if value.name == vectors]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    _prune(model.graph)
    _check_types(model, file)
    _move_to_raw(model.graph)
    _set_other_inputs(model, config, file)
    layers = _named_layers(model.graph)
    candidates: list[set[str]] = []
    if len(layers) == config.num_layers:
        candidates = list(_candidates(model.graph, layers))
    shapes = _shapes(model, vectors, set().union(*candidates), file)
    expected = (*_PROBE.shape, config.hidden_size)
    if shapes[vectors] != expected:
        raise ExportError(
            f"{file} returns {vectors} of the shape {shapes[vectors]} for ids of {_PROBE.shape}; "
            f"expected {expected}."
        )
    # The hidden states are known if a single value of each boundary has their shape.
    hidden_states = []
    for names in candidates:
        states = [name for name in names if shapes[name] == expected]
        if len(states) == 1:
            hidden_states += states
    is_clear = len(hidden_states) == config.num_layers + 1
    may_be_decoder = config.has_decoder and vectors != _renamed(_VECTOR_OUTPUTS[0])
    is_decoder = may_be_decoder and _is_decoder(model.graph)
    if layers and len(layers) != config.num_layers and not is_decoder:
        raise ExportError(
            f"{file} has {len(layers)} layers by the names of its nodes, and config.json has "
            f"{config.num_layers}. Take both from the same model."
        )
    if is_decoder or (may_be_decoder and not is_clear):
        raise ExportError(
            f"{file} returns the vectors of a decoder, or its nodes do not tell encoder and "
            f"decoder apart. Use a graph of the encoder, or one that returns {_VECTOR_OUTPUTS[0]}."
        )
    if not is_clear:
        return PublishedGraph(model, vectors, [])
    if not _is_norm(model, hidden_states[-1], vectors, config.hidden_size):
        raise ExportError(
            f"{file} computes more than a norm after its last layer, such as a mean of tokens, a "
            "sum of layers or a product with weights, so that its vectors are of no layer. "
            "Export the model itself with --model."
        )
    return PublishedGraph(model, vectors, hidden_states)


def cut(graph: PublishedGraph, num_layers: int, hidden_size: int) -> ModelProto:
    """Return the graph of a layer's unit vectors.

    A norm after the last layer is applied to it.
    """
    model = ModelProto()
    model.CopyFrom(graph.model)
    if graph.hidden_states and num_layers < len(graph.hidden_states) - 1:
        vectors = _lead_to_end(model, graph, num_layers)
    else:
        vectors = graph.vectors
    del model.graph.output[:]
    model.graph.output.append(
        make_tensor_value_info(vectors, TensorProto.FLOAT, ["batch", "tokens", hidden_size])
    )
    normalise_output(model, ["batch", "tokens", hidden_size])
    _prune(model.graph)
    return model


def uncut_vectors(graph: PublishedGraph, num_layers: int) -> Any:
    """Return a session of the whole graph for a layer's vectors.

    `cut` must give the same vectors before normalisation.
    """
    model = ModelProto()
    model.CopyFrom(graph.model)
    vectors = graph.vectors
    if graph.hidden_states and num_layers < len(graph.hidden_states) - 1:
        vectors = graph.hidden_states[num_layers]
        if graph.vectors != graph.hidden_states[-1]:
            vectors = _repeat_end(model, graph, num_layers)
    return _session(model, [vectors])


def check_cut(graph: PublishedGraph, num_layers: int, available: int, file: str) -> None:
    """Raise an error unless a graph can be cut at a layer."""
    check_layer(file, num_layers, available)
    if num_layers < available and not graph.hidden_states:
        raise ExportError(
            f"{file} cannot be cut at layer {num_layers}: its nodes do not tell its layers apart, "
            f"as in graphs whose operators were fused. Use layer {available}, or export the model "
            "itself."
        )


def _find_vectors(model: ModelProto, config: PublishedConfig, file: str) -> str:
    outputs = {value.name: value.type.tensor_type for value in model.graph.output}
    names = _VECTOR_OUTPUTS if config.has_decoder else _VECTOR_OUTPUTS[1:]
    for name in names:
        if name in outputs:
            if outputs[name].elem_type != TensorProto.FLOAT:
                raise ExportError(
                    f"{file} does not return {name} in fp32. Use the graph that does."
                )
            return name
    raise ExportError(
        f"{file} returns no vectors of tokens, but {', '.join(outputs) or 'nothing'}. Expected an "
        f"output {' or '.join(names)}: a graph for feature extraction, not of a task head or a "
        "generating decoder."
    )


def _check_size(model: ModelProto, file: str) -> None:
    nodes = 0
    for nodes, _ in enumerate(_all_nodes(model), 1):
        if nodes > MAX_NODES:
            raise ExportError(
                f"{file} has more than {MAX_NODES:,} nodes, several times as many as any encoder. "
                "Export the model itself with --model."
            )


def _check_types(model: ModelProto, file: str) -> None:
    """Raise an ExportError if a graph computes in less than fp32.

    The types of its inputs and outputs do not tell.
    """
    tensors = list(model.graph.initializer)
    cast_to = set()
    for node in _all_nodes(model):
        for graph in _graphs(node):
            tensors += graph.initializer
        for attribute in node.attribute:
            if attribute.HasField("t"):
                tensors.append(attribute.t)
            if node.op_type == "Cast":
                cast_to.add(attribute.i)
    types = {tensor.data_type for tensor in tensors} - _WIDE_TYPES
    types |= cast_to & _HALVES
    if types:
        names = ", ".join(sorted(map(TensorProto.DataType.Name, types)))
        raise ExportError(
            f"{file} is not in fp32 throughout: it computes with {names}. Use the graph that is."
        )


def _move_to_raw(graph: Any) -> None:
    """Rewrite weights that are stored number by number as bytes.

    Bytes alone can go to a file of their own.
    """
    for tensor in graph.initializer:
        if len(tensor.float_data) or len(tensor.double_data) or len(tensor.int64_data):
            tensor.CopyFrom(from_array(to_array(tensor), tensor.name))


def _all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph, of the branches in it and of its functions."""
    pending = [model.graph.node]
    pending += [function.node for function in model.functions]
    while pending:
        for node in pending.pop():
            yield node
            pending += [graph.node for graph in _graphs(node)]


def _graphs(node: NodeProto) -> Iterator[Any]:
    """Yield the graphs in a node's attributes, such as a condition's branches."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _is_decoder(graph: Any) -> bool:
    """Return whether the names of nodes or weights are a decoder's."""
    names = [tensor.name for tensor in graph.initializer]
    for node in graph.node:
        names += _names(node)
    return any(map(_DECODER.search, names))


def _renamed(vectors: str) -> str:
    return f"published_{vectors}"


def _rename_output(model: ModelProto, vectors: str) -> str:
    """Give the vectors a name that no output of a bundle has, and return it."""
    renamed = _renamed(vectors)
    for node in model.graph.node:
        _replace(node.input, {vectors: renamed})
        _replace(node.output, {vectors: renamed})
    for value in model.graph.output:
        if value.name == vectors:
            value.name = renamed
    return renamed


def _replace(names: Any, new_names: Mapping[str, str]) -> None:
    """Replace names among the inputs or the outputs of a node."""
    names[:] = [new_names.get(name, name) for name in names]


def _cast_inputs(graph: Any) -> None:
    """Let a graph take all ids and masks as int64, and declare the shapes of its inputs."""
    casts = []
    new_names = {}
    for value in graph.input:
        kind = value.type.tensor_type.elem_type
        if value.name in INPUTS and not value.type.tensor_type.HasField("shape"):
            value.CopyFrom(make_tensor_value_info(value.name, kind, ["batch", "tokens"]))
        # Some graphs take ids as int32, or masks as floats or booleans.
        if value.name in _WHOLE and kind != TensorProto.INT64:
            new_names[value.name] = f"published_{value.name}"
            casts.append(make_node("Cast", [value.name], [new_names[value.name]], to=kind))
            value.type.tensor_type.elem_type = TensorProto.INT64
    if not casts:
        return
    pending = [graph]
    for pending_graph in pending:
        for node in pending_graph.node:
            _replace(node.input, new_names)
            pending += _graphs(node)
    _put_first(graph, casts)


def _put_first(graph: Any, nodes: Sequence[NodeProto]) -> None:
    """Put nodes in front of those of a graph."""
    following = list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    graph.node.extend(following)


def _set_other_inputs(model: ModelProto, config: PublishedConfig, file: str) -> None:
    """Compute the inputs beside ids and mask as the model does.

    These are types of tokens, which are 0, and positions.
    """
    graph = model.graph
    op = Nodes("published_")
    used = _all_inputs(graph)
    weights = {tensor.name for tensor in graph.initializer}
    other_inputs = [value for value in graph.input if value.name not in INPUTS]
    for value in other_inputs:
        if value.name not in used:  # as a decoder's, whose part was left out
            pass
        elif value.name == "token_type_ids":
            config.check_token_types()
            op.Mul("input_ids", 0, name=value.name)
        elif value.name == "position_ids":
            padding = config.padding_before_positions()
            if padding is None:
                ones = op.Add(op.Mul("input_ids", 0), 1)
                op.Sub(op.CumSum(ones, 1), 1, name=value.name)
            else:  # literal padding in a text has that position too
                counted = op.Cast(op.Not(op.Equal("input_ids", padding)), to=TensorProto.INT64)
                op.Add(op.Mul(op.CumSum(counted, 1), counted), padding, name=value.name)
        elif value.name not in weights:
            raise ExportError(
                f"{file} wants {value.name!r}; expected only {', '.join(_WHOLE)}. A graph with a "
                "cache of past tokens cannot be used."
            )
        graph.input.remove(value)
    _put_first(graph, op.nodes)
    graph.initializer.extend(op.constants)


def _named_layers(graph: Any) -> list[int]:
    """Return the numbers of layers in the names of nodes.

    Empty if none has a name of a layer.
    """
    layers = set(map(_layer, graph.node))
    return sorted(layer for layer in layers if layer is not None)


def _candidates(graph: Any, layers: list[int]) -> Iterator[set[str]]:
    """Yield the possible inputs of each layer and the end: values computed before, used there."""
    used: dict[int | None, set[str]] = defaultdict(set)
    layer_of: dict[str, int | None] = {}
    for node in graph.node:
        layer = _layer(node)
        used[layer] |= _inputs(node)
        layer_of |= dict.fromkeys(node.output, layer)
    for before, layer in pairwise([None, *layers]):
        yield {name for name in used[layer] if name in layer_of and layer_of[name] == before}
    used_after = used[None] | {value.name for value in graph.output}
    yield {name for name in used_after if layer_of.get(name) == layers[-1]}


def _layer(node: NodeProto) -> int | None:
    """Return the number of the layer that a node is in, if it is in any."""
    found = _LAYER.search(" ".join(_names(node)))
    return int(found[1]) if found else None


def _names(node: NodeProto) -> list[str]:
    """Return the name of a node and the scopes that it was made in."""
    scopes = [prop.value for prop in node.metadata_props if prop.key.endswith("name_scopes")]
    return [node.name, *scopes]


def _inputs(node: NodeProto) -> set[str]:
    """Return the values that a node reads, also in its branches."""
    return set(node.input).union(*map(_all_inputs, _graphs(node)))


def _all_inputs(graph: Any) -> set[str]:
    """Return the values that the nodes of a graph read."""
    return set().union(*map(_inputs, graph.node))


def _shapes(
    model: ModelProto, vectors: str, candidates: set[str], file: str
) -> dict[str, tuple[int, ...] | None]:
    """Return the shapes of the vectors and candidates; None unless in fp32.

    Raise an ExportError if two runs differ in the vectors.
    """
    names = [vectors, *sorted(candidates - {vectors})]
    try:
        session = _session(model, names)
        values = _run(session, _PROBE, np.ones_like(_PROBE))
        [repeated, *_] = _run(session, _PROBE, np.ones_like(_PROBE))
    except Exception as error:  # ONNX Runtime's errors are untyped
        raise ExportError(
            f"{file} does not run: {first_line(error).rstrip('.')}. Expected a graph that takes "
            "input_ids and attention_mask of any shape (batch, tokens); or export the model "
            "itself with --model."
        ) from error
    if not np.array_equal(values[0], repeated, equal_nan=True):
        operators = sorted(set(_drawing_operators(model)))
        reason = f", by {', '.join(operators)}" if operators else ""
        raise ExportError(
            f"{file} draws at random{reason}: two runs on the same text give different vectors. "
            "Export it again from the model in evaluation mode (`model.eval()`)."
        )
    shapes = {}
    for name, value in zip(names, values, strict=True):
        shapes[name] = value.shape if value.dtype == np.float32 else None
    return shapes


def _drawing_operators(model: ModelProto) -> Iterator[str]:
    """Yield the types of the nodes that draw at random."""
    for node in _all_nodes(model):
        if node.op_type in _DRAWING:
            yield node.op_type
        elif node.op_type == "Dropout" and _is_training(model, node):
            yield "Dropout in training mode"


def _is_training(model: ModelProto, dropout: NodeProto) -> bool:
    """Return whether a Dropout trains: its third input, the mode, is set and not constant false."""
    if len(dropout.input) < 3 or not dropout.input[2]:
        return False
    mode = dropout.input[2]
    constants = [tensor for tensor in model.graph.initializer if tensor.name == mode]
    for node in _all_nodes(model):
        if node.op_type == "Constant" and mode in node.output:
            constants += [attribute.t for attribute in node.attribute if attribute.name == "value"]
    # A mode that is no constant may be true.
    return not constants or any(to_array(tensor).any() for tensor in constants)


def _is_norm(model: ModelProto, last: str, vectors: str, hidden_size: int) -> bool:
    """Return whether the vectors are the states of the last layer, or a norm of these states."""
    if vectors == last:
        return True
    # The nodes after the last layer are run with drawn states in place of the layer's, for texts of
    # different ids: each token's vector must be a norm of its own state, times one weight for each
    # dimension, plus one bias.
    session = _session(_after(model, last, hidden_size), [vectors])
    generator = np.random.default_rng(0)
    drawn = []
    returned = []
    # The tokens of the second text are alike, so that attention would mix them.
    for ids, difference in ((_PROBE, 1.0), (_PROBE[:, ::-1], 0.1)):
        shared = generator.normal(size=hidden_size)
        of_tokens = generator.normal(size=(*ids.shape, hidden_size))
        # Means and scales differ between tokens, and are far above the small number that a norm
        # adds to a variance.
        means = generator.uniform(-20, 20, (*ids.shape, 1))
        scales = generator.uniform(5, 20, (*ids.shape, 1))
        states = (means + scales * (shared + difference * of_tokens)).astype(np.float32)
        [result] = _run(session, ids, np.ones_like(ids), states)
        drawn.append(states.reshape(-1, hidden_size))
        returned.append(result.reshape(-1, hidden_size))
    all_states = np.concatenate(drawn).astype(np.float64)
    all_vectors = np.concatenate(returned).astype(np.float64)
    return _are_normed(all_states, all_vectors)


def _after(model: ModelProto, last: str, hidden_size: int) -> ModelProto:
    """Return the graph after the last layer, with its states as an input and no earlier weights."""
    after = ModelProto(
        ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions
    )
    graph = after.graph
    graph.name = model.graph.name
    graph.node.extend(model.graph.node)
    for node in graph.node:
        _replace(node.input, {last: _STATES})
    graph.input.extend(model.graph.input)
    graph.input.append(
        make_tensor_value_info(_STATES, TensorProto.FLOAT, ["batch", "tokens", hidden_size])
    )
    graph.output.extend(model.graph.output)
    _prune(graph)
    read = _all_inputs(graph)
    graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in read)
    return after


def _are_normed(states: NDArray[np.float64], vectors: NDArray[np.float64]) -> bool:
    """Return whether vectors are states, or a norm of theirs.

    States and vectors are (tokens, hidden); the norm is LayerNorm or RMSNorm with a weight and a
    bias.
    """
    if not np.isfinite(vectors).all():
        return False
    if not _differ(vectors, states):
        return True
    centred = states - states.mean(axis=1, keepdims=True)
    for numerator in (centred, states):
        normed = numerator / np.sqrt((numerator**2).mean(axis=1, keepdims=True))
        # Least squares for each dimension over the tokens.
        deviations = normed - normed.mean(axis=0)
        weight = (deviations * vectors).sum(axis=0) / (deviations**2).sum(axis=0)
        if not _differ(vectors, vectors.mean(axis=0) + weight * deviations):
            return True
    return False


def _session(model: ModelProto, outputs: list[str]) -> Any:
    """Return a session without optimisation.

    A fusion could remove the requested values.
    """
    asked = ModelProto()
    asked.CopyFrom(model)
    known = {value.name for value in asked.graph.output}
    asked.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in outputs if name not in known
    )
    runtime = load_onnxruntime()
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:  # a model in memory may have at most 2 GB
        onnx.save(asked, Path(folder) / GRAPH_FILE, save_as_external_data=True, location=DATA_FILE)
        session = runtime.InferenceSession(
            Path(folder) / GRAPH_FILE, options, providers=["CPUExecutionProvider"]
        )
    return session, outputs


def _run(
    session: Any,
    ids: NDArray[np.int64],
    mask: NDArray[np.int64],
    states: NDArray[np.float32] | None = None,
) -> list[NDArray[Any]]:
    values = {
        "input_ids": ids.astype(np.int64),
        "attention_mask": mask.astype(np.int64),
        _STATES: states,
    }
    running, outputs = session
    feed = {node.name: values[node.name] for node in running.get_inputs()}
    return list(running.run(outputs, feed))


def run_vectors(session: Any, ids: list[int]) -> NDArray[np.float32]:
    """Return the first output of a session for one text, (tokens, hidden)."""
    row = np.array([ids])
    return _run(session, row, np.ones_like(row))[0][0]


def check_length(session: Any, ids: list[int]) -> None:
    """Raise an ExportError if a graph fails on a long text.

    So does one whose exporter has fixed the length.
    """
    try:
        run_vectors(session, ids[:_LONG])
    except Exception as error:  # ONNX Runtime's errors are untyped
        raise ExportError(
            f"The graph fails on {len(ids[:_LONG])} tokens: {first_line(error)}. Use a graph for "
            "texts of any length, or set a lower model_max_length in tokenizer_config.json."
        ) from error


def check_independent(session: Any, ids: list[int]) -> None:
    """Raise an ExportError if a text's vectors depend on other texts in its batch."""
    both = np.array([ids, ids[::-1]])
    beside_other = _run(session, both, np.ones_like(both))[0][0]
    if _differ(run_vectors(session, ids), beside_other):
        raise ExportError(
            "The vectors that the graph gives a text depend on the other texts of its batch, as "
            "with BatchNormalization in training mode. Export it again from the model in "
            "evaluation mode (`model.eval()`)."
        )


def padding_changes(session: Any, ids: list[int], pad_id: int) -> bool:
    """Return whether padding changes the vectors of the real tokens."""
    padded = np.array([[*ids, *[pad_id] * 7]])
    mask = (np.arange(padded.shape[1]) < len(ids)).astype(np.int64)[None]
    without_padding = run_vectors(session, ids)
    with_padding = _run(session, padded, mask)[0][0, : len(ids)]
    return _differ(without_padding, with_padding)


def _differ(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return whether vectors of the same tokens differ by more than rounding."""
    return bool(np.abs(first - second).max() > _ROUNDING * np.abs(first).max())


def _end(graph: Any, start: str) -> list[NodeProto]:
    """Return the nodes after the last layer that depend on its hidden state."""
    reached = {start}
    nodes = []
    for node in graph.node:
        if _layer(node) is None and reached & _inputs(node):
            reached.update(node.output)
            nodes.append(node)
    return nodes


def _lead_to_end(model: ModelProto, graph: PublishedGraph, num_layers: int) -> str:
    """Let the nodes after the last layer follow another layer.

    Return the value of its vectors.
    """
    chosen = graph.hidden_states[num_layers]
    last = graph.hidden_states[-1]
    if graph.vectors == last:
        return chosen
    for node in _end(model.graph, last):
        _replace(node.input, {last: chosen})
    return graph.vectors


def _repeat_end(model: ModelProto, graph: PublishedGraph, num_layers: int) -> str:
    """Repeat the nodes after the last layer for another layer.

    Return the value of its vectors.
    """
    last = graph.hidden_states[-1]
    nodes = _end(model.graph, last)
    new_names = {}
    for node in nodes:
        for output in node.output:
            new_names[output] = f"{output}_again"
    new_names[last] = graph.hidden_states[num_layers]
    for node in nodes:
        copy = model.graph.node.add()
        copy.CopyFrom(node)
        if node.name:  # many nodes may have none
            copy.name = f"{node.name}_again"
        _replace(copy.input, new_names)
        _replace(copy.output, new_names)
    return new_names[graph.vectors]


def _prune(graph: Any) -> None:
    """Remove everything that the output does not depend on."""
    needed = {value.name for value in graph.output}
    nodes = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed |= _inputs(node)
            nodes.append(node)
    tensors = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(reversed(nodes))
    graph.initializer.extend(tensors)
