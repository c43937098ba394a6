"""Writes the scoring graph, for any runtime of ONNX.

Token ids of pairs go in, their P, R and F come out.

The graph contains the encoder's graph, which receives both sides of the pairs as one batch, and
shares the weight file of `model.onnx`. The matching is as in Zhang et al., ICLR 2020, section 3,
and in `matching.greedy`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_tensor_value_info
from onnx.numpy_helper import from_array

from bertscore_onnx.bundle.manifest import (
    DATA_FILE,
    GRAPH_FILE,
    SCORING_FILE,
    SCORING_INPUTS,
    SCORING_OUTPUTS,
    WEIGHTS_INPUT,
)
from bertscore_onnx_export.graph.nodes import Nodes, load_graph, take_axes_as_inputs, write_apart
from bertscore_onnx_export.graph.output import INPUTS, OUTPUT

_INPUT_IDS, _ATTENTION_MASK = INPUTS
_SIDES = ("candidate", "reference")
_BOOL = TensorProto.BOOL
_FLOAT = TensorProto.FLOAT
_INT64 = TensorProto.INT64


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The facts about a model's ids in a scoring graph."""

    size: int
    pad_id: int
    special_ids: list[int]
    """The ids that do not count as content: a text of these alone is empty."""

    zero_weight_ids: list[int]
    """The ids with weight 0 if the caller gives no weights."""


def write_scoring_graph(
    folder: Path, vocabulary: Vocabulary, *, padding: bool, layers: int | None
) -> None:
    """Write `scoring.onnx` beside `model.onnx`, in the same precision.

    `layers` is None for one layer.
    """
    if not (folder / DATA_FILE).exists():
        write_apart(load_graph(folder), folder)
    model = onnx.load(folder / GRAPH_FILE, load_external_data=False)
    all_layers = layers is not None
    texts = Nodes("texts/")
    matched = Nodes("matched/")
    tokens = _join_sides(texts, vocabulary)
    if padding:
        encoder = Nodes("")
        encoder.nodes += model.graph.node
    else:
        encoder = _encode_one_by_one(model, all_layers=all_layers)
    _match(matched, tokens, all_layers=all_layers)
    weights = np.ones(vocabulary.size, dtype=np.float32)
    weights[vocabulary.zero_weight_ids] = 0
    nodes = [*texts.nodes, *encoder.nodes, *matched.nodes]
    constants = [*model.graph.initializer, *texts.constants, *encoder.constants, *matched.constants]
    # The weights of the vocabulary are a default, which the caller may replace.
    constants.append(from_array(weights, WEIGHTS_INPUT))
    inputs = []
    for name in SCORING_INPUTS:
        side = name.partition("_")[0]
        inputs.append(make_tensor_value_info(name, _INT64, ["pairs", f"{side}_tokens"]))
    inputs.append(make_tensor_value_info(WEIGHTS_INPUT, _FLOAT, weights.shape))
    scores = ["pairs"] if layers is None else [layers, "pairs"]
    outputs = [make_tensor_value_info(name, _FLOAT, scores) for name in SCORING_OUTPUTS]
    model.graph.CopyFrom(make_graph(nodes, "scoring", inputs, outputs, constants))
    take_axes_as_inputs(model)
    onnx.save(model, folder / SCORING_FILE)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The names of values about the tokens of both sides.

    Candidates come first; shapes are (texts, tokens) or (texts,).
    """

    num_texts: str
    """The numbers of candidates and of references, (2,)."""

    is_token: str
    """int64: 1 on real tokens."""

    weights: str
    """fp32, 0 on padding."""

    total_weight: str
    is_scorable: str
    """int64, (texts,): 1 if there is a token that is not special, the total weight is positive and
    finite, all ids are the model's, and padding stands only at the end."""


def _join_sides(op: Nodes, vocabulary: Vocabulary) -> _Tokens:
    """Write the nodes that make the encoder's inputs from both sides.

    Texts are padded to the longest.
    """
    shapes = [op.Shape(f"{side}_ids") for side in _SIDES]
    numbers = [op.Slice(shape, [0], [1]) for shape in shapes]
    widths = [op.Slice(shape, [1], [2]) for shape in shapes]
    common_width = op.Max(*widths, [1])
    paddings = []
    for number, width in zip(numbers, widths, strict=True):
        shape = op.Concat(number, op.Sub(common_width, width), axis=0)
        paddings.append(op.ConstantOfShape(shape, value=from_array(np.zeros(1, np.int64))))

    def joined(kind: str) -> str:
        # a mask of another shape than its ids must fail, and not be broadcast
        given = []
        for side, shape in zip(_SIDES, shapes, strict=True):
            given.append(op.Reshape(f"{side}_{kind}", shape))
        sides = [op.Concat(*values, axis=1) for values in zip(given, paddings, strict=True)]
        return op.Concat(*sides, axis=0)

    ids = joined("ids")
    is_token = op.Cast(joined("mask"), to=_BOOL)
    num_tokens = op.ReduceSum(op.Cast(is_token, to=_INT64), [1], keepdims=0)
    longest = op.Max(op.ReduceMax(num_tokens, axes=[0], keepdims=1), [1])
    # Callers may pad to any width; the model has no positions beyond its longest text.
    ids = op.Slice(ids, [0], longest, [1])
    is_token = op.Slice(is_token, [0], longest, [1])
    is_known = op.And(op.GreaterOrEqual(ids, 0), op.Less(ids, vocabulary.size))
    ids = op.Where(op.And(is_token, is_known), ids, vocabulary.pad_id, name=_INPUT_IDS)
    mask = op.Cast(is_token, to=_INT64, name=_ATTENTION_MASK)
    given = op.Gather(WEIGHTS_INPUT, ids)
    # an invalid weight makes the sum NaN
    given = op.Where(op.GreaterOrEqual(given, 0.0), given, np.nan)
    weights = op.Where(is_token, given, 0.0)
    total_weight = op.ReduceSum(weights, [1], keepdims=0)
    # (texts, tokens, special ids)
    is_special = op.Equal(op.Unsqueeze(ids, [2]), vocabulary.special_ids)
    num_special = op.ReduceSum(op.Cast(is_special, to=_INT64), [2], keepdims=0)
    num_words = op.ReduceSum(op.Mul(mask, op.Sub(1, num_special)), [1], keepdims=0)
    num_unknown = op.ReduceSum(op.Mul(mask, op.Cast(op.Not(is_known), to=_INT64)), [1], keepdims=0)
    weighs = op.And(op.Greater(total_weight, 0.0), op.Less(total_weight, np.inf))
    has_words = op.And(op.Greater(num_words, 0), op.Equal(num_unknown, 0))
    # (texts, tokens)
    is_first = op.Less(op.Range(0, op.Squeeze(longest, [0]), 1), op.Unsqueeze(num_tokens, [1]))
    num_first = op.ReduceSum(op.Cast(op.And(is_token, is_first), to=_INT64), [1], keepdims=0)
    is_text = op.And(has_words, op.Equal(num_first, num_tokens))  # no padding stands before a token
    is_scorable = op.Cast(op.And(is_text, weighs), to=_INT64)
    return _Tokens(op.Concat(*numbers, axis=0), mask, weights, total_weight, is_scorable)


def _encode_one_by_one(model: ModelProto, *, all_layers: bool) -> Nodes:
    """Write a loop over the texts that encodes them without padding.

    Then it pads the vectors of each text.
    """
    op = Nodes("loop/")
    body = Nodes("text/")
    ids = body.Gather(_INPUT_IDS, "text", axis=0)  # (tokens,)
    mask = body.Gather(_ATTENTION_MASK, "text", axis=0)
    length = body.Max(body.ReduceSum(mask, [0], keepdims=1), [1])
    renamed = {OUTPUT: f"{body.prefix}{OUTPUT}"}
    for name, value in zip(INPUTS, (ids, mask), strict=True):
        renamed[name] = body.Unsqueeze(body.Slice(value, [0], length), [0])
    for node in model.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
        body.nodes.append(node)
    shape = body.Shape(renamed[OUTPUT])
    missing = body.Sub(body.Shape(mask), length)
    missing_shape = body.Concat(
        body.Slice(shape, [0], [-2]), missing, body.Slice(shape, [-1], [4]), axis=0
    )
    vectors = body.Concat(renamed[OUTPUT], body.ConstantOfShape(missing_shape), axis=-2)
    # (tokens, hidden), with all layers (layers, tokens, hidden)
    vectors = body.Squeeze(vectors, [1 if all_layers else 0])
    going_on = body.Identity("going_on")
    loop = make_graph(
        body.nodes,
        "encode_a_text",
        [make_tensor_value_info("text", _INT64, []), make_tensor_value_info("going_on", _BOOL, [])],
        [
            make_tensor_value_info(going_on, _BOOL, []),
            make_tensor_value_info(vectors, _FLOAT, None),
        ],
    )
    number = op.Squeeze(op.Slice(op.Shape(_INPUT_IDS), [0], [1]), [0])
    encoded = op.Loop(number, op.Cast(1, to=_BOOL), body=loop)
    if all_layers:
        op.Transpose(encoded, perm=[1, 0, 2, 3], name=OUTPUT)
    else:
        op.Identity(encoded, name=OUTPUT)
    op.constants += body.constants
    return op


def _match(op: Nodes, tokens: _Tokens, *, all_layers: bool) -> None:
    """Write the nodes that make P, R and F from vectors.

    Vectors are (texts, tokens, hidden), with a first axis for all layers.
    """
    texts = 1 if all_layers else 0  # the axis

    def sides(value: str, axis: int = 0) -> tuple[str, str]:
        candidate, reference = op.Split(value, tokens.num_texts, outputs=2, axis=axis)
        return candidate, reference

    candidates, references = sides(OUTPUT, texts)
    swapped = [0, 1, 3, 2] if all_layers else [0, 2, 1]
    # (pairs, tokens, tokens)
    similarity = op.MatMul(candidates, op.Transpose(references, perm=swapped))
    candidate_mask, reference_mask = sides(tokens.is_token)
    both = op.Mul(op.Unsqueeze(candidate_mask, [2]), op.Unsqueeze(reference_mask, [1]))
    is_similarity = op.Cast(both, to=_BOOL)
    among_tokens = op.Where(is_similarity, similarity, -np.inf)
    nearest = op.Concat(
        op.ReduceMax(among_tokens, axes=[-1], keepdims=0),
        op.ReduceMax(among_tokens, axes=[-2], keepdims=0),
        axis=texts,
    )  # (texts, tokens)
    nearest = op.Where(op.Cast(tokens.is_token, to=_BOOL), nearest, 0.0)
    sums = op.ReduceSum(op.Mul(nearest, tokens.weights), [-1], keepdims=0)
    weight = op.Where(op.Cast(tokens.is_scorable, to=_BOOL), tokens.total_weight, 1.0)
    means = op.Clip(op.Div(sums, weight), -1.0, 1.0)
    # A maximum may hide a NaN; a sum does not.
    any_similarity = op.ReduceSum(op.Where(is_similarity, similarity, 0.0), [-2, -1], keepdims=0)
    is_scorable = op.And(
        op.Cast(op.Mul(*sides(tokens.is_scorable)), to=_BOOL),
        op.Less(op.Abs(any_similarity), np.inf),
    )
    precision_mean, recall_mean = sides(means, texts)
    precision = op.Where(is_scorable, precision_mean, 0.0, name=SCORING_OUTPUTS[0])
    recall = op.Where(is_scorable, recall_mean, 0.0, name=SCORING_OUTPUTS[1])
    total = op.Add(precision, recall)
    is_zero = op.Equal(total, 0.0)
    doubled = op.Mul(op.Mul(precision, recall), 2.0)
    op.Where(is_zero, 0.0, op.Div(doubled, op.Where(is_zero, 1.0, total)), name=SCORING_OUTPUTS[2])
