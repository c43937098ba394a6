"""Reads and replaces the graph of a bundle with its weights, which lie in a file of their own where they are large."""

from pathlib import Path
from typing import Any

import onnx
from onnx.helper import make_opsetid

from bertscore_onnx.bundle.manifest import DATA_FILE, GRAPH_FILE

CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""


def load_graph(folder: Path) -> Any:
    """Return the graph of a folder, an `onnx.ModelProto`, with all its weights in memory."""
    return onnx.load(folder / GRAPH_FILE)


def replace_graph(model: Any, folder: Path) -> None:
    """Write a graph in the place of the one in a folder, in as many files; it may use ONNX Runtime's own operators."""
    if all(opset.domain != CONTRIB for opset in model.opset_import):
        model.opset_import.append(make_opsetid(CONTRIB, 1))
    if (folder / DATA_FILE).exists():
        write_apart(model, folder)
    else:
        onnx.save(model, folder / GRAPH_FILE)


def write_apart(model: Any, folder: Path) -> None:
    """Write a graph with its weights in a file of their own, in the place of the one in a folder."""
    data, graph = folder / DATA_FILE, folder / GRAPH_FILE
    data.unlink(missing_ok=True)  # onnx would append to it
    graph.unlink()  # its weights are in memory; the disk need not hold them twice
    onnx.save(model, graph, save_as_external_data=True, location=DATA_FILE)
    data.chmod(graph.stat().st_mode)  # onnx lets nobody else read it
