"""Writes the ONNX graph: token ids and mask in, unit token vectors out."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import onnx
from optimum.exporters.onnx import export as optimum_export
from optimum.exporters.onnx.config import TextEncoderOnnxConfig
from optimum.utils import NormalizedTextConfig
from transformers import PreTrainedModel

from bertscore_onnx.bundle.manifest import DATA_FILE, GRAPH_FILE
from bertscore_onnx.errors import ExportError, UnsupportedFamilyError
from bertscore_onnx_export.graph.streaming import export_streamed
from bertscore_onnx_export.model.load import count_layers
from bertscore_onnx_export.model.source import first_line

INPUTS = ["input_ids", "attention_mask"]
OUTPUT = "token_embeddings"
NORMS = ("norm", "positive_norm")
"""The values between the model's own vectors and the output."""

OPSET = 17

LARGE = 250_000_000
"""Bytes of weights from which they are streamed into a file of their own. For 1.3 GB optimum's export peaks at 5.8 GB
and took 63 s, the streamed one at 2.0 GB and 23 s; past 2 GB a graph in one file cannot be."""

SPARE = 100_000_000
"""Bytes of disk an export needs beyond its weights."""


class _TokenEncoderConfig(TextEncoderOnnxConfig):  # type: ignore[misc] # optimum is untyped
    """Two inputs for every family; optimum's own configurations differ, and some are wrong for an encoder alone."""

    NORMALIZED_CONFIG_CLASS = NormalizedTextConfig.with_args(vocab_size="vocab_size", allow_new=True)

    @property
    def inputs(self) -> dict[str, dict[int, str]]:
        return {name: {0: "batch", 1: "tokens"} for name in INPUTS}

    @property
    def outputs(self) -> dict[str, dict[int, str]]:
        return {"last_hidden_state": {0: "batch", 1: "tokens"}}


class _AllLayersConfig(_TokenEncoderConfig):
    """The same for a model whose output has the layers before the batch."""

    @property
    def outputs(self) -> dict[str, dict[int, str]]:
        return {"last_hidden_state": {1: "batch", 2: "tokens"}}


def write_graph(model: PreTrainedModel, folder: Path, *, all_layers: bool = False) -> list[str]:
    """Export a cut model to `model.onnx` in a folder, with its weights in `model.onnx.data` where they are large.

    The output is `token_embeddings`, (batch, tokens, hidden), each vector divided by its L2 norm as bert-score does
    (`utils.py:greedy_cos_idf`). With `all_layers`, after `stack_hidden_states`, it has the layers before the batch.

    Returns:
        Which of `INPUTS` the graph takes; the embeddings alone, a model cut at 0, mostly need no mask.

    Raises:
        UnsupportedFamilyError: PyTorch cannot export the model.
        ExportError: the disk is too full, or cannot be written.
    """
    path = folder / GRAPH_FILE
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    _require_space(folder, size)
    config = (_AllLayersConfig if all_layers else _TokenEncoderConfig)(model.config, task="feature-extraction")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer warns of constants that do not depend on the input's shape
            if size < LARGE:
                optimum_export(model, config, path, opset=OPSET)
                graph = onnx.load(path)
            else:
                graph = export_streamed(model, config, OPSET, path, folder / DATA_FILE)
    except OSError as error:
        raise ExportError(f"Cannot write the graph to {folder}: {error.strerror}.") from error
    except Exception as error:  # whatever a model's own code raises when it is traced
        raise UnsupportedFamilyError(
            f"Models of the type {model.config.model_type!r} cannot be exported at {count_layers(model.config)} "
            f"layers: {type(error).__name__}, {first_line(error)}"
        ) from error
    layers = [count_layers(model.config) + 1] if all_layers else []
    _normalise_output(graph, [*layers, "batch", "tokens", model.config.hidden_size])
    onnx.save(graph, path)
    onnx.checker.check_model(path)  # by its path: a model in memory may have 2 GB at most
    return [node.name for node in graph.graph.input]


def _require_space(folder: Path, size: int) -> None:
    needed, free = size + SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise ExportError(
            f"The disk of {folder.parent} has {free / 1e9:.1f} GB left; this export needs {needed / 1e9:.1f} GB."
        )


def _normalise_output(model: Any, shape: list[int | str]) -> None:
    """Append x / max(‖x‖, 1e-12) to the graph; the floor keeps a zero vector from becoming NaN."""
    helper, graph = onnx.helper, model.graph
    vectors = graph.output[0].name
    norm, positive_norm = NORMS
    graph.initializer.append(helper.make_tensor("smallest_norm", onnx.TensorProto.FLOAT, [], [1e-12]))
    graph.node.extend(
        [
            helper.make_node("ReduceL2", [vectors], [norm], axes=[-1], keepdims=1),
            helper.make_node("Max", [norm, "smallest_norm"], [positive_norm]),
            helper.make_node("Div", [vectors, positive_norm], [OUTPUT]),
        ]
    )
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, shape))
