"""The export of a published graph.

Write the bundle within limits, verify it, compare it with the model, and place it.
"""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.card import CARD, model_card
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.encoding.providers import load_onnxruntime
from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.model.source import (
    Source,
    check_name,
    check_name_of_folder,
    check_same_model,
    choose_layer,
    license_of,
)
from bertscore_onnx_export.placement import staging_folder
from bertscore_onnx_export.published.comparison import compare_with_model, load_model
from bertscore_onnx_export.published.config import read_config
from bertscore_onnx_export.published.limits import run_limited
from bertscore_onnx_export.verify.bundle import verify_bundle

_log = logging.getLogger(__name__)
_PLACES = ("onnx/model.onnx", "model.onnx")

STAGES = 3
"""The number of stages that `export_graph` reports."""


def export_graph(
    folder: Path,
    *,
    name: str | None = None,
    num_layers: int | None = None,
    output: Path | None = None,
    license_id: str | None = None,
    force: bool = False,
    report: Callable[[str], object] = _log.info,
) -> Path:
    """Make a bundle of the graph in a model's folder, and return its folder.

    The bundle has the model's fast tokenizer.

    Raises an ExportError if the graph has no vectors of tokens or cannot be cut at the layer, or if
    the bundle fails its verification.
    """
    load_onnxruntime()  # if it is missing, fail before the work
    source = Source(str(folder), name=name)
    if output is None and source.is_named_by_folder:
        check_name_of_folder(source.model_id)
    file = _graph_of(folder)
    config = read_config(folder)
    check_name(source, config.architecture)
    chosen = choose_layer(source.model_id, num_layers, config.num_layers)
    target = output or bundle_folder(source.model_id, Variant(chosen, "fast", "fp32"))
    with staging_folder(target, force=force) as staged:
        report(f"Cutting the graph of {folder} at layer {chosen}, and trying it with the tokenizer")
        arguments = (str(file), source.model_id, str(chosen), str(staged))
        doubts = run_limited("bertscore_onnx_export.published.write", folder, *arguments)
        manifest = read_manifest(staged)
        if source.is_named_by_folder and output is None:
            check_same_model(manifest)
        report("Verifying against the uncut graph")
        manifest = msgspec.structs.replace(manifest, golden_difference=verify_bundle(staged))
        try:
            model = load_model(source, chosen)
        except ExportError as error:
            if "attention_mask" not in manifest.inputs:
                raise ExportError(
                    f"{file} takes no attention_mask, so that nothing shows which tokens it "
                    f"hides, and it cannot be compared with PyTorch ({error}). Use a graph with "
                    "this input, or export the model with --model."
                ) from error
            report(f"Not comparing with PyTorch: {error}")
            for doubt in doubts:
                warnings.warn(doubt, UserWarning, stacklevel=2)
        else:
            report("Comparing with the PyTorch model")
            manifest = compare_with_model(source, staged, manifest, model)
        sealed = write_manifest(staged, manifest)
        license_fields = license_of(source) if license_id is None else {"license": license_id}
        (staged / CARD).write_text(
            model_card({"path/to/bundle": sealed}, license_fields), encoding="utf-8"
        )
    return target


def _graph_of(folder: Path) -> Path:
    for place in _PLACES:
        if (folder / place).is_file():
            return folder / place
    raise ExportError(
        f"{folder} has no {' or '.join(_PLACES)}. Name the folder of a model with a graph, "
        "config.json and tokenizer.json."
    )
