"""Finds the bundle that a model's name, language or path means."""

import os
from pathlib import Path
from typing import NoReturn

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import Bundle, open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import (
    MANIFEST,
    Precision,
    TokenizerMode,
    Variant,
    bundle_folder,
    store_root,
    stored_bundles,
)
from bertscore_onnx.errors import BundleError, BundleNotFoundError, InputError, UnknownLayerError, UnknownModelError

NEAR = 0.6
"""How similar to a name that is not known others must be to be mentioned: that takes most of its letters in order."""


def resolve_bundle(
    model_type: str | None,
    *,
    lang: str | None = None,
    num_layers: int | None = None,
    all_layers: bool | None = False,
    tokenizer_mode: TokenizerMode | None = None,
    precision: Precision | None = None,
    verify: bool = False,
) -> Bundle:
    """Find and open a bundle."""
    if model_type is None:
        if lang is None:
            raise InputError("Name a model with `model_type` or a language with `lang`.")
        model_type = catalogue.default_model(lang)
    model_type = str(model_type)
    if num_layers is not None and num_layers < 0:
        raise UnknownLayerError(f"num_layers is {num_layers}; expected 0 (the embeddings) or more.")
    if os.path.isfile(os.path.join(model_type, MANIFEST)):  # unlike Path, it takes any string
        bundle = open_bundle(model_type, verify=verify)
        if all_layers is not None:
            _check_layers(bundle, num_layers, all_layers=all_layers)
        _check_variant(bundle, tokenizer_mode, precision)
        return bundle
    if _is_path(model_type):
        _explain_folder(model_type)
    tokenizer_mode, precision = tokenizer_mode or "slow", precision or "fp32"
    if all_layers:
        folder = _existing(model_type, Variant(None, tokenizer_mode, precision))
    else:
        folder = _folder_of(model_type, num_layers, tokenizer_mode, precision)
    return open_bundle(folder, verify=verify)


def _check_layers(bundle: Bundle, num_layers: int | None, *, all_layers: bool) -> None:
    """Raise where a bundle opened by its path does not hold the layers asked for."""
    manifest = bundle.manifest
    command = f"`bertscore-onnx export --model {manifest.model_id}{_options(manifest)}"
    if all_layers and not manifest.all_layers:
        raise UnknownLayerError(
            f"The bundle {bundle.path} holds layer {manifest.num_layers} only, and all layers were asked for. Run "
            f"{command} --all-layers` to make one of all, or leave all_layers out."
        )
    if manifest.all_layers and not all_layers:
        raise UnknownLayerError(
            f"The bundle {bundle.path} holds all layers. Pass all_layers=True (--all-layers), or run {command} "
            f"--num-layers {num_layers or manifest.num_layers}`."
        )
    if not all_layers and num_layers not in (None, manifest.num_layers):
        raise UnknownLayerError(
            f"The bundle {bundle.path} is cut at layer {manifest.num_layers}, and layer {num_layers} was asked for. "
            f"Leave num_layers out, or run {command} --num-layers {num_layers}`."
        )


def _check_variant(bundle: Bundle, tokenizer_mode: TokenizerMode | None, precision: Precision | None) -> None:
    """Raise where a bundle opened by its path is of another tokenizer or precision than asked for."""
    manifest = bundle.manifest
    wanted = Variant(manifest.num_layers, tokenizer_mode or manifest.tokenizer_mode, precision or manifest.precision)
    advice = f"or run `bertscore-onnx export --model {manifest.model_id}{_options(wanted)}`."
    if wanted.tokenizer_mode != manifest.tokenizer_mode:
        raise InputError(
            f"The bundle {bundle.path} has the {manifest.tokenizer_mode} tokenizer, and the {tokenizer_mode} one was "
            f"asked for. Leave use_fast_tokenizer out, {advice}"
        )
    if wanted.precision != manifest.precision:
        raise InputError(
            f"The bundle {bundle.path} is in {manifest.precision}, and {precision} was asked for. Leave precision out, "
            + advice
        )


def _folder_of(name: str, num_layers: int | None, tokenizer_mode: TokenizerMode, precision: Precision) -> Path:
    """Return the place in the home folder of the bundle of one layer that a name means."""
    entry = catalogue.find(name)
    if num_layers is None and entry is not None:
        num_layers = entry.num_layers
    if num_layers is not None:
        return _existing(name, Variant(num_layers, tokenizer_mode, precision))
    here = list(stored_bundles(name, f"layer-*-{tokenizer_mode}-{precision}"))
    if not here:
        _explain_missing_variant(name, tokenizer_mode, precision)
    if len(here) > 1:
        names = ", ".join(path.name for path in here)
        raise UnknownLayerError(f"There are several bundles of {name}, choose one with num_layers: {names}.")
    return here[0]


def _existing(name: str, variant: Variant) -> Path:
    """Return the place of a bundle in the home folder, or explain how to get it there."""
    folder = bundle_folder(name, variant)
    if (folder / MANIFEST).is_file():
        return folder
    entry = catalogue.find(name)
    here = ", ".join(path.name for path in stored_bundles(name))
    if entry is None and not here:
        _explain_unknown(name)
    command = f"bertscore-onnx export --model {name}"
    if variant.num_layers is None:
        command += " --all-layers"
    elif entry is None or variant.num_layers != entry.num_layers:
        command += f" --num-layers {variant.num_layers}"
    command += _options(variant)
    which = "with all layers" if variant.num_layers is None else f"at layer {variant.num_layers}"
    raise BundleNotFoundError(
        f"{name} {which} is not exported yet (there is no {folder}).{here and f' Here are: {here}.'} "
        f"Run `{command}`; that takes the extra `export`, once, on any machine."
    )


def _options(wanted: Variant | Manifest) -> str:
    """Return the options of the export command that choose a tokenizer and a precision."""
    mode = "" if wanted.tokenizer_mode == "slow" else f" --tokenizer-mode {wanted.tokenizer_mode}"
    precision = "" if wanted.precision == "fp32" else f" --precision {wanted.precision}"
    return mode + precision


def _explain_missing_variant(name: str, tokenizer_mode: TokenizerMode, precision: Precision) -> NoReturn:
    others = ", ".join(path.name for path in stored_bundles(name))
    if not others:
        _explain_unknown(name)
    command = f"bertscore-onnx export --model {name} --num-layers N{_options(Variant(None, tokenizer_mode, precision))}"
    raise BundleNotFoundError(
        f"No bundle of {name} with its {tokenizer_mode} tokenizer in {precision} is here, only {others}. Choose one of "
        f"these, or run `{command}`."
    )


def _is_path(name: str) -> bool:
    """Return whether a name can only be a path: that of a model on the Hub is `model` or `organisation/model`."""
    return not name or name[0] in "./~" or name[-1] == "/" or "\\" in name or name.count("/") > 1


def _explain_folder(name: str) -> NoReturn:
    if os.path.isfile(os.path.join(name, "config.json")):
        raise BundleNotFoundError(
            f"{name} holds a transformers model, not a bundle. Run `bertscore-onnx export --model {name} "
            "--num-layers N --output BUNDLE` and score with BUNDLE."
        )
    if os.path.exists(name):
        raise BundleNotFoundError(f"{name} is no bundle: it has no {MANIFEST}.")
    raise BundleNotFoundError(
        f"There is no folder {name!r}. Give the path of a bundle, or the name of a model; `bertscore-onnx models` "
        "lists those that are known."
    )


def _explain_unknown(name: str) -> NoReturn:
    if os.path.exists(name) or os.path.isdir(name.rpartition("/")[0]):
        _explain_folder(name)
    near = ", ".join(catalogue.nearest_names(name, [*catalogue.entries(), *installed_models()], cutoff=NEAR))
    raise UnknownModelError(
        f"No model {name!r} is in the catalogue or among the bundles in {store_root()}, and no folder has this path."
        f"{near and f' The nearest names are {near}.'} `bertscore-onnx models` lists all; any other model of the Hub "
        f"can be exported: `bertscore-onnx export --model {name} --num-layers N`."
    )


def installed_models() -> list[str]:
    """Return the ids of the models that have a bundle under the home folder."""
    found = set()
    for folder in stored_bundles():
        try:
            found.add(read_manifest(folder).model_id)
        except BundleError:
            continue
    return sorted(found)
