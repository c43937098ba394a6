"""Writes the matching graph of the runtime.

It matches vectors where they lie. It has no weights and fits every model, so that the runtime holds
it as a file, which `python -m bertscore_onnx_export.graph.matching
bertscore_onnx/matching/greedy.onnx` writes. The equations are those of `matching.greedy`: Zhang et
al., ICLR 2020, section 3.
"""

import sys
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_model, make_opsetid, make_tensor_value_info

from bertscore_onnx_export.graph.exporters import OPSET
from bertscore_onnx_export.graph.nodes import Nodes

_SIDES = ("candidate", "reference")
_FLOAT = TensorProto.FLOAT
_INT64 = TensorProto.INT64
_IR_VERSION = 8
_BELOW_SIMILARITY = -2.0  # times a weight of 0 it is 0


def matching_graph() -> ModelProto:
    """Return the graph from vectors to P and R.

    It also takes the place, the length and the token weights of each text.
    """
    op = Nodes("")
    inputs = []
    vectors = []
    is_token = []
    for side in _SIDES:
        inputs += [
            make_tensor_value_info(f"{side}_vectors", _FLOAT, [f"{side}_rows", "hidden"]),
            make_tensor_value_info(f"{side}_starts", _INT64, ["pairs"]),
            make_tensor_value_info(f"{side}_lengths", _INT64, ["pairs"]),
            make_tensor_value_info(f"{side}_weights", _FLOAT, ["pairs", f"{side}_tokens"]),
        ]
        width = op.Squeeze(op.Slice(op.Shape(f"{side}_weights"), [1], [2]), [0])
        places = op.Range(0, width, 1)  # (tokens,)
        is_token.append(op.Less(places, op.Unsqueeze(f"{side}_lengths", [1])))  # (pairs, tokens)
        rows = op.Add(op.Unsqueeze(f"{side}_starts", [1]), op.Where(is_token[-1], places, 0))
        vectors.append(op.Gather(f"{side}_vectors", rows, axis=0))  # (pairs, tokens, hidden)
    candidates, references = vectors
    # (pairs, cand_tokens, ref_tokens)
    similarity = op.MatMul(candidates, op.Transpose(references, perm=[0, 2, 1]))
    both = op.And(op.Unsqueeze(is_token[0], [2]), op.Unsqueeze(is_token[1], [1]))
    among_tokens = op.Where(both, similarity, _BELOW_SIMILARITY)
    # A maximum may hide a NaN; a sum does not.
    # (pairs,)
    zero_or_nan = op.Mul(op.ReduceSum(op.Where(both, similarity, 0.0), [1, 2], keepdims=0), 0.0)
    outputs = []
    for side, axis, name in zip(_SIDES, (2, 1), ("precision", "recall"), strict=True):
        nearest = op.ReduceMax(among_tokens, axes=[axis], keepdims=0)  # (pairs, tokens)
        # one token after the other, so that a sum does not depend on the padding behind it
        sums = op.CumSum(op.Mul(nearest, f"{side}_weights"), 1)
        op.Add(op.Gather(sums, -1, axis=1), zero_or_nan, name=name)
        outputs.append(make_tensor_value_info(name, _FLOAT, ["pairs"]))
    graph = make_graph(op.nodes, "matching", inputs, outputs, op.constants)
    model = make_model(graph, opset_imports=[make_opsetid("", OPSET)], ir_version=_IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(matching_graph().SerializeToString())
