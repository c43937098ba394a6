"""Puts a measured baseline into the bundle that it was measured with, under a language."""

import tempfile
from os import PathLike
from pathlib import Path

import msgspec

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.card import CARD, CARD_MARK, updated_card
from bertscore_onnx.bundle.manifest import Manifest, UnrelatedScores, write_manifest
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import BundleError, InputError
from bertscore_onnx.evaluation.unrelated.baseline import MeasuredBaseline
from bertscore_onnx.files import replace_whole
from bertscore_onnx.hub.source import read_origins

_INSTEAD = "Write the baseline to a file instead, which `baseline_path` (--baseline-path) takes."


def check_bundle(path: str | PathLike[str], language: str) -> None:
    """Check that a baseline can be put into a bundle under a language, before it is measured.

    Raises:
        InputError: the language is no code, such as `en`.
        BundleError: it is no bundle, was pulled from somewhere, is part of a cache, or cannot be written.
    """
    catalogue.default_model(language)
    folder = Path(path)
    read_manifest(folder)
    if origins := read_origins(folder):
        raise BundleError(
            f"The bundle {folder} was pulled from {origins[0].place}, and stays as it is there. {_INSTEAD}"
        )
    if (folder / MANIFEST).is_symlink():
        raise BundleError(f"{folder / MANIFEST} is a link, as in a cache that others share, and stays. {_INSTEAD}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BundleError(f"The bundle {folder} cannot be changed ({error.strerror}). {_INSTEAD}") from error


def add_to_bundle(path: str | PathLike[str], baseline: MeasuredBaseline, language: str) -> Manifest:
    """Put a baseline into a bundle's manifest under a language, and return the manifest, whose digest is new.

    A baseline of that language is replaced; those of others stay. Scorers that have opened the bundle go on as they
    are. The manifest is replaced whole; a model card that the export wrote follows.

    Args:
        path: the bundle's folder.
        baseline: as `compute_baseline` measured it with this bundle.
        language: a code such as `en`.

    Raises:
        InputError: the language is no code, or the baseline is one of other layers.
        BundleError: as `check_bundle` says.
    """
    check_bundle(path, language)
    folder, code = Path(path), language.lower()
    manifest = read_manifest(folder)
    if [layer.layer for layer in baseline.layers] != [*manifest.layers]:
        raise InputError(
            f"The baseline is one of layers {[layer.layer for layer in baseline.layers]}, and the bundle {folder} has "
            f"{[*manifest.layers]}. Measure it with this bundle."
        )
    unrelated = UnrelatedScores(
        baseline.num_pairs, baseline.precision, [list(layer.f1_quantiles) for layer in baseline.layers]
    )
    changed = msgspec.structs.replace(
        manifest,
        baselines={**manifest.baselines, code: [layer.mean for layer in baseline.layers]},
        unrelated={**manifest.unrelated_scores, code: unrelated},
    )
    try:
        sealed = write_manifest(folder, changed)
        _update_card(folder / CARD, manifest, sealed)
    except OSError as error:
        raise BundleError(f"The bundle {folder} cannot be changed ({error.strerror}). {_INSTEAD}") from error
    return sealed


def _update_card(card: Path, old: Manifest, new: Manifest) -> None:
    """Let a card that was written of the old manifest say what the new one does; one of somebody else stays."""
    if not card.is_file() or CARD_MARK not in (text := card.read_text(encoding="utf-8", errors="replace")):
        return
    replace_whole(card, updated_card(text, old, new).encode())
