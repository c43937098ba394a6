"""Finds the bundle that a model's name, language or path means."""

import os
from pathlib import Path

from bertscore_onnx import catalogue
from bertscore_onnx.bundle import Bundle, TokenizerMode, open_bundle, read_manifest
from bertscore_onnx.errors import BundleError, BundleNotFoundError, InputError, UnknownLayerError, UnknownModelError
from bertscore_onnx.home import MANIFEST, bundle_folder, bundles_here, home


def find_bundle(
    model_type: str | None,
    *,
    lang: str | None = None,
    num_layers: int | None = None,
    tokenizer_mode: TokenizerMode = "slow",
    verify: bool = False,
) -> Bundle:
    """Find and open a bundle.

    Args:
        model_type: a catalogue name, a Hub id, or the path of a bundle; None for the language's default model.
        lang: a language code; needed where there is no `model_type`.
        num_layers: the layer; None for the bundle's own, or the catalogue's.
        tokenizer_mode: which tokenizer's ids, where a name is given.
        verify: read every file for its digest.

    Raises:
        InputError: neither a model nor a language was named.
        UnknownModelError: no such model.
        UnknownLayerError: the bundle is of another layer, or nothing says which to take.
        BundleNotFoundError: the model is known, but not exported yet.
        BundleError: the bundle cannot be used.
    """
    if model_type is None:
        if lang is None:
            raise InputError("Name a model with `model_type` or a language with `lang`.")
        model_type = catalogue.default_model(lang)
    model_type = str(model_type)
    if num_layers is not None and num_layers < 0:
        raise UnknownLayerError(f"num_layers is {num_layers}; expected 0 (the embeddings) or more.")
    if os.path.isfile(os.path.join(model_type, MANIFEST)):  # unlike Path, it takes any string
        bundle = open_bundle(model_type, verify=verify)
        if num_layers not in (None, bundle.manifest.num_layers):
            raise UnknownLayerError(
                f"The bundle {model_type} is cut at layer {bundle.manifest.num_layers}, and layer {num_layers} was "
                f"asked for. Leave num_layers out, or export that layer: `bertscore-onnx export --model "
                f"{bundle.manifest.model_id} --num-layers {num_layers}`."
            )
        return bundle
    return open_bundle(_folder_of(model_type, num_layers, tokenizer_mode), verify=verify)


def _folder_of(name: str, num_layers: int | None, tokenizer_mode: TokenizerMode) -> Path:
    """Return the place in the home folder of the bundle that a name means."""
    entry = catalogue.find(name)
    here = [path.name for path in bundles_here(name)]
    if entry is None and not here:
        _explain_unknown(name)
    layer = num_layers
    if layer is None and entry is not None:
        layer = entry.num_layers
    if layer is None:
        if len(here) > 1:
            raise UnknownLayerError(f"There are several bundles of {name}, choose one with num_layers: {here}.")
        return next(bundles_here(name))
    folder = bundle_folder(name, layer, tokenizer_mode, "fp32")
    if not (folder / MANIFEST).is_file():
        command = f"bertscore-onnx export --model {name}"
        if entry is None or layer != entry.num_layers:
            command += f" --num-layers {layer}"
        if tokenizer_mode != "slow":
            command += f" --tokenizer-mode {tokenizer_mode}"
        others = f" Here are: {', '.join(here)}." if here else ""
        raise BundleNotFoundError(
            f"{name} at layer {layer} is not exported yet (there is no {folder}).{others} Run `{command}`; that takes "
            "the extra `export`, once, on any machine."
        )
    return folder


def _explain_unknown(name: str) -> None:
    if os.path.isfile(os.path.join(name, "config.json")):
        raise BundleNotFoundError(
            f"{name} holds a transformers model, not a bundle. Run `bertscore-onnx export --model {name} "
            "--num-layers N --output BUNDLE` and score with BUNDLE."
        )
    if os.path.exists(name):
        raise BundleNotFoundError(f"{name} is no bundle: it has no {MANIFEST}.")
    known = [*catalogue.entries(), *installed_models()]
    raise UnknownModelError(
        f"No model {name!r} is in the catalogue, among the bundles in {home()} or at that path. The nearest names are "
        f"{', '.join(catalogue.nearest_names(name, known))}. Any other model of the Hub can be exported: "
        f"`bertscore-onnx export --model {name} --num-layers N`."
    )


def installed_models() -> list[str]:
    """Return the ids of the models that have a bundle under the home folder."""
    found = set()
    for folder in bundles_here():
        try:
            found.add(read_manifest(folder).model_id)
        except BundleError:
            continue
    return sorted(found)
