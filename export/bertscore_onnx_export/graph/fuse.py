"""Joins the operators of a graph into ONNX Runtime's larger ones: attention, normalisation and activation.

On a GPU they are faster, and they sum in fp32 where a chain of small operators would overflow fp16.
"""

import contextlib
import io
from pathlib import Path
from typing import Any

from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model

from bertscore_onnx.bundle.manifest import GRAPH_FILE
from bertscore_onnx_export.graph.io import replace_graph

_FAMILY = "bert"
"""Which of ONNX Runtime's sets of patterns is tried; the others find no more in the encoders of the families here."""


def fuse(folder: Path, config: Any) -> None:
    """Rewrite the graph of a folder with fused operators where they fit; the graph stays in fp32.

    Args:
        folder: the folder.
        config: the model's configuration, which says what a graph does not always: how many heads there are.
    """
    heads = getattr(config, "num_attention_heads", 0)  # 0: to be found in the graph
    options = FusionOptions(_FAMILY)
    options.enable_embed_layer_norm = False  # it would take its inputs as int32
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that it cannot infer some shapes
        fused = optimize_model(
            str(folder / GRAPH_FILE),
            _FAMILY,
            heads,
            config.hidden_size,
            opt_level=0,
            optimization_options=options,
            use_gpu=True,
        )
        fused.topological_sort()
    replace_graph(fused.model, folder)
