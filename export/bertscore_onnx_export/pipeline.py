"""The export from end to end: load, cut, write the graph, convert the tokenizer, verify, put in place."""

import contextlib
import importlib.metadata
import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bertscore_onnx import catalogue
from bertscore_onnx.bundle import FORMAT_VERSION, Manifest, TokenizerMode, write_manifest
from bertscore_onnx.device import load_onnxruntime
from bertscore_onnx.digests import file_digest
from bertscore_onnx.errors import ExportError, UnknownLayerError
from bertscore_onnx.home import MANIFEST, bundle_folder
from bertscore_onnx_export.families import Family, family_of
from bertscore_onnx_export.graph import OUTPUT, write_graph
from bertscore_onnx_export.source import Source
from bertscore_onnx_export.tokenizers import load_tokenizer, write_tokenizer
from bertscore_onnx_export.truncate import load_config, load_cut
from bertscore_onnx_export.verify import score_golden_pairs, verify_bundle

_log = logging.getLogger(__name__)
_PACKAGES = ("bertscore-onnx", "onnx", "optimum-onnx", "tokenizers", "torch", "transformers")

STAGES = 5
"""How many times `export_model` reports a stage."""


def export_model(
    name_or_path: str,
    *,
    num_layers: int | None = None,
    output: Path | None = None,
    tokenizer_mode: TokenizerMode = "slow",
    revision: str | None = None,
    force: bool = False,
    report: Callable[[str], object] = _log.info,
) -> Path:
    """Export a model into a bundle that gives its scores.

    Args:
        name_or_path: a catalogue name, a Hub id, or a folder written by `save_pretrained`.
        num_layers: the layer to take tokens from; None for the one in the catalogue.
        output: the bundle's own folder; None for its place under the home folder.
        tokenizer_mode: whose ids to reproduce, the slow tokenizer's (bert-score's default) or the fast one's.
        revision: a branch, tag or commit of the Hub.
        force: replace a bundle that is there already.
        report: called with a sentence before each of the `STAGES` stages.

    Returns:
        The bundle's folder.

    Raises:
        UnsupportedFamilyError, UnknownLayerError, VerificationError, ExportError: the model cannot be exported.
        MissingExtraError: ONNX Runtime, which verifies the bundle, is not installed.
    """
    load_onnxruntime()  # fail before the work rather than after it
    source = Source(name_or_path, revision)
    report(f"Loading the configuration of {name_or_path}")
    config = load_config(source)
    family = family_of(config)
    num_layers = _choose_layer(source, num_layers)
    target = output or bundle_folder(source.model_id, num_layers, tokenizer_mode, "fp32")
    _check_target(target, force=force)
    report(f"Loading the weights, {num_layers} of {config.num_hidden_layers} layers")
    model = load_cut(source, config, family, num_layers)
    with _folder_to_be(target, force=force) as folder:
        report("Writing the graph")
        inputs = write_graph(model, folder)
        report(f"Converting the {tokenizer_mode} tokenizer")
        facts = write_tokenizer(source, tokenizer_mode, _positions(config, family), folder)
        report("Verifying against PyTorch")
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            model_id=source.model_id,
            revision=getattr(config, "_commit_hash", None),
            family=family.name,
            num_layers=num_layers,
            precision="fp32",
            inputs=inputs,
            output=OUTPUT,
            hidden_size=config.hidden_size,
            vocab_size=config.vocab_size,
            max_length=facts.max_length,
            pad_id=facts.pad_id,
            zero_weight_ids=facts.zero_weight_ids,
            empty_ids=facts.empty_ids,
            tokenizer_mode=tokenizer_mode,
            recipe=facts.recipe,
            tokenizer_differences=facts.differences,
            baselines=catalogue.baselines(source.model_id, num_layers),
            exported_with={package: importlib.metadata.version(package) for package in _PACKAGES},
            files={file.name: file_digest(file) for file in sorted(folder.iterdir())},
            golden=score_golden_pairs(model, load_tokenizer(source, tokenizer_mode), facts),
        )
        write_manifest(folder, manifest)
        verify_bundle(folder)
    return target


def _check_target(target: Path, *, force: bool) -> None:
    """Raise an ExportError where something stands that must not be replaced: all but a bundle, even by force."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / MANIFEST).is_file():
        raise ExportError(f"{target} is there already and is no bundle. Name a folder that is new or empty.")
    if not force:
        raise ExportError(f"{target} is there already. Pass --force to replace it.")


def _choose_layer(source: Source, num_layers: int | None) -> int:
    entry = catalogue.find(source.model_id)
    if num_layers is not None:
        return num_layers
    if entry is None:
        raise UnknownLayerError(
            f"The catalogue has no layer for {source.model_id}; choose one with --num-layers. About two thirds of the "
            "way up is usual."
        )
    return entry.num_layers


def _positions(config: Any, family: Family) -> int | None:
    """Return how many tokens the model has positions for; None where it has no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    return None if positions is None else int(positions) - family.reserved_positions(config)


@contextlib.contextmanager
def _folder_to_be(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` in one step when all went well, and goes otherwise."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-", ignore_cleanup_errors=True) as outer:
        folder = Path(outer) / "new"
        folder.mkdir()
        yield folder
        if force and target.exists():
            target.rename(Path(outer) / "old")
        try:
            folder.rename(target)
        except OSError as error:
            raise ExportError(f"Cannot put the bundle in place at {target}: {error.strerror}.") from error
