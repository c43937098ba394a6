"""Writes the ONNX graph: token ids and mask in, unit token vectors out."""

import warnings
from pathlib import Path
from typing import Any

import onnx
from optimum.exporters.onnx import export as optimum_export
from optimum.exporters.onnx.config import TextEncoderOnnxConfig
from optimum.utils import NormalizedTextConfig
from transformers import PreTrainedModel

from bertscore_onnx.bundle import GRAPH_FILE

INPUTS = ["input_ids", "attention_mask"]
OUTPUT = "token_embeddings"
OPSET = 17


class _TokenEncoderConfig(TextEncoderOnnxConfig):  # type: ignore[misc] # optimum is untyped
    """Two inputs for every family; optimum's own configurations differ, and some are wrong for an encoder alone."""

    NORMALIZED_CONFIG_CLASS = NormalizedTextConfig.with_args(vocab_size="vocab_size", allow_new=True)

    @property
    def inputs(self) -> dict[str, dict[int, str]]:
        return {name: {0: "batch", 1: "tokens"} for name in INPUTS}

    @property
    def outputs(self) -> dict[str, dict[int, str]]:
        return {"last_hidden_state": {0: "batch", 1: "tokens"}}


def write_graph(model: PreTrainedModel, folder: Path) -> list[str]:
    """Export a cut model to `model.onnx` in a folder.

    The output is `token_embeddings`, (batch, tokens, hidden), each vector divided by its L2 norm as bert-score does
    (`utils.py:greedy_cos_idf`).

    Returns:
        The graph's inputs; without a layer of attention there is no mask among them.
    """
    path = folder / GRAPH_FILE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer warns of constants that do not depend on the input's shape
        optimum_export(model, _TokenEncoderConfig(model.config, task="feature-extraction"), path, opset=OPSET)
    graph = onnx.load(path, load_external_data=False)
    _normalise_output(graph, model.config.hidden_size)
    onnx.save(graph, path)
    return [node.name for node in graph.graph.input]


def _normalise_output(model: Any, hidden_size: int) -> None:
    """Append x / max(‖x‖, 1e-12) to the graph; the floor keeps a zero vector from becoming NaN."""
    helper, graph = onnx.helper, model.graph
    vectors = graph.output[0].name
    graph.initializer.append(helper.make_tensor("smallest_norm", onnx.TensorProto.FLOAT, [], [1e-12]))
    graph.node.extend(
        [
            helper.make_node("ReduceL2", [vectors], ["norm"], axes=[-1], keepdims=1),
            helper.make_node("Max", ["norm", "smallest_norm"], ["positive_norm"]),
            helper.make_node("Div", [vectors, "positive_norm"], [OUTPUT]),
        ]
    )
    del graph.output[:]
    shape = ["batch", "tokens", hidden_size]
    graph.output.append(helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, shape))
    onnx.checker.check_model(model)
