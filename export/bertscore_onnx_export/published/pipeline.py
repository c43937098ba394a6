"""The export of a published graph: cut it, convert the tokenizer, verify against the uncut graph, place the bundle."""

import importlib.metadata
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import onnx
from numpy.typing import NDArray

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.card import CARD, model_card
from bertscore_onnx.bundle.manifest import DATA_FILE, FORMAT_VERSION, GRAPH_FILE, GoldenPair, Manifest, write_manifest
from bertscore_onnx.bundle.store import Variant, bundle_folder, file_digest
from bertscore_onnx.errors import ExportError, VerificationError
from bertscore_onnx.text.spec import TOKENIZER_FILE
from bertscore_onnx_export.graph.output import OUTPUT
from bertscore_onnx_export.model.positions import max_positions
from bertscore_onnx_export.model.source import Source, check_name_of_folder, check_same_model, choose_layer, license_of
from bertscore_onnx_export.placement import staging_folder
from bertscore_onnx_export.published.cut import (
    PublishedGraph,
    check_layer,
    cut,
    padding_changes,
    read_graph,
    run_vectors,
    uncut_vectors,
)
from bertscore_onnx_export.published.tokenizer import PublishedTokenizer, read_tokenizer
from bertscore_onnx_export.verify.bundle import verify_bundle
from bertscore_onnx_export.verify.sample_texts import GOLDEN_PAIRS

_log = logging.getLogger(__name__)
_PACKAGES = ("bertscore-onnx", "onnx", "tokenizers")
_PLACES = ("onnx/model.onnx", "model.onnx")
_LAYERS = ("encoder_layers", "num_encoder_layers", "num_hidden_layers", "num_layers", "n_layers")
_SIZES = ("hidden_size", "d_model", "dim", "emb_dim")

STAGES = 5
"""The number of stages that `export_graph` reports."""

_LARGE = 250_000_000
"""The bytes of weights from which they get a file of their own."""


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
    """Make a bundle of the graph in a model's folder, with its fast tokenizer, and return the bundle's folder.

    Raises an ExportError if the graph has no vectors of tokens or cannot be cut at the layer, or if the bundle fails
    its verification.
    """
    source = Source(str(folder), name=name)
    if output is None and source.is_named_by_folder:
        check_name_of_folder(source.model_id)
    report(f"Reading the graph of {folder}")
    file = _graph_of(folder)
    config = _read_config(folder)
    size, layers = _number(config, _SIZES, folder), _number(config, _LAYERS, folder)
    graph = read_graph(str(file), size, layers)
    chosen = choose_layer(source.model_id, num_layers, layers)
    check_layer(graph, chosen, layers, str(file))
    target = output or bundle_folder(source.model_id, Variant(chosen, "fast", "fp32"))
    with staging_folder(target, force=force) as staged:
        report(f"Writing the graph up to layer {chosen}")
        _write(cut(graph, chosen, size), staged)
        report("Copying the fast tokenizer")
        tokenizer = read_tokenizer(folder, config, max_positions(SimpleNamespace(**({"model_type": None} | config))))
        tokenizer.tokenizer.no_truncation()
        (staged / TOKENIZER_FILE).write_text(tokenizer.tokenizer.to_str(pretty=True), encoding="utf-8")
        report("Scoring with the uncut graph")
        if tokenizer.max_length is not None:
            tokenizer.tokenizer.enable_truncation(tokenizer.max_length)
        manifest = _manifest(source.model_id, config, chosen, size, graph, tokenizer, staged)
        write_manifest(staged, manifest)
        if source.is_named_by_folder and output is None:
            check_same_model(manifest)
        report("Verifying against the uncut graph")
        manifest = msgspec.structs.replace(manifest, golden_difference=verify_bundle(staged))
        sealed = write_manifest(staged, manifest)
        license_fields = license_of(source) if license_id is None else {"license": license_id}
        (staged / CARD).write_text(model_card({"path/to/bundle": sealed}, license_fields), encoding="utf-8")
    return target


def _manifest(
    model_id: str,
    config: Mapping[str, Any],
    num_layers: int,
    hidden_size: int,
    graph: PublishedGraph,
    tokenizer: PublishedTokenizer,
    folder: Path,
) -> Manifest:
    session = uncut_vectors(graph, num_layers)
    rows = catalogue.baselines(model_id, num_layers)
    written = onnx.load(folder / GRAPH_FILE, load_external_data=False)
    return Manifest(
        format_version=FORMAT_VERSION,
        model_id=model_id,
        revision=None,
        family=str(config.get("model_type", "unknown")),
        num_layers=num_layers,
        all_layers=False,
        precision="fp32",
        inputs=[node.name for node in written.graph.input],
        output=OUTPUT,
        hidden_size=hidden_size,
        vocab_size=_number(config, ("vocab_size",), folder),
        max_length=tokenizer.max_length,
        pad_id=tokenizer.pad_id,
        zero_weight_ids=tokenizer.zero_weight_ids,
        empty_ids=tokenizer.empty_ids,
        tokenizer_mode="fast",
        tokenizer_spec=None,
        tokenizer_differences=0,
        baselines={language: [row] for language, row in rows.items()},
        exported_with={package: importlib.metadata.version(package) for package in _PACKAGES},
        files={file.name: file_digest(file) for file in sorted(folder.iterdir())},
        padding=not padding_changes(session, tokenizer.ids(GOLDEN_PAIRS[0][0]), tokenizer.pad_id),
        golden=[_score(session, tokenizer, *pair) for pair in GOLDEN_PAIRS],
        golden_difference=0.0,
        model_layers=_number(config, _LAYERS, folder),
    )


def _score(session: Any, tokenizer: PublishedTokenizer, candidate: str, reference: str) -> GoldenPair:
    """Score a golden pair with the uncut graph (Zhang et al., ICLR 2020, section 3)."""

    def embed(text: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        ids = tokenizer.ids(text)
        vectors = run_vectors(session, ids)  # (tokens, hidden)
        weights = np.array([index not in tokenizer.zero_weight_ids for index in ids], np.float32)  # (tokens,)
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), weights / weights.sum()

    (candidate_vectors, candidate_weights), (reference_vectors, reference_weights) = embed(candidate), embed(reference)
    similarity = candidate_vectors @ reference_vectors.T  # (cand_tokens, ref_tokens)
    precision = float(similarity.max(axis=1) @ candidate_weights)
    recall = float(similarity.max(axis=0) @ reference_weights)
    f1 = 2 * precision * recall / (precision + recall)
    if not np.isfinite(f1):
        raise VerificationError("The published graph's own scores are undefined: its vectors are zero or overflow.")
    return GoldenPair(candidate, reference, [precision], [recall], [f1])


def _graph_of(folder: Path) -> Path:
    for place in _PLACES:
        if (folder / place).is_file():
            return folder / place
    raise ExportError(
        f"{folder} has no {' or '.join(_PLACES)}. Name the folder of a model with a graph, config.json "
        "and tokenizer.json."
    )


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(
            f"Cannot read {folder / 'config.json'}: {error}. Copy it from the model's repository."
        ) from error
    if not isinstance(config, dict):
        raise ExportError(f"{folder / 'config.json'} is no JSON object. Copy it from the model's repository.")
    return config


def _number(config: Mapping[str, Any], names: tuple[str, ...], folder: Path) -> int:
    for name in names:
        if type(number := config.get(name)) is int and number > 0:
            return number
    raise ExportError(
        f"The config.json of {folder} has no number as {' or '.join(names)}. Copy it from the model's repository."
    )


def _write(model: Any, folder: Path) -> None:
    """Write a graph, and large weights to a file of their own."""
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size < _LARGE:
        onnx.save(model, folder / GRAPH_FILE)
    else:
        onnx.save(model, folder / GRAPH_FILE, save_as_external_data=True, location=DATA_FILE)
    onnx.checker.check_model(folder / GRAPH_FILE)
