"""Finds the bundle of a model's name, a language or a path."""

import os
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import NoReturn

import msgspec

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import Bundle, open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import (
    MANIFEST,
    MODEL_VARIABLE,
    Precision,
    TokenizerMode,
    Variant,
    bundle_folder,
    store_root,
    stored_bundles,
)
from bertscore_onnx.errors import (
    Argument,
    BundleError,
    BundleNotFoundError,
    InputError,
    InputTypeError,
    ManifestError,
    UnknownLayerError,
    UnknownModelError,
    check_choice,
)


def resolve_bundle(
    # a catalogue name, a Hub id, or the path of a bundle; None for the language's default
    model_type: str | None,
    *,
    lang: str | None = None,  # a language code, required without `model_type`
    # None for the bundle's own layer, or the catalogue's; ignored with `all_layers`
    num_layers: int | None = None,
    all_layers: bool | None = False,  # None accepts both kinds of bundle, if a path is given
    # None accepts both by path, and by name means the model's default
    tokenizer_mode: TokenizerMode | None = None,
    precision: Precision | None = None,  # None accepts all by path, and means fp32 by name
    verify: bool = False,
) -> Bundle:
    """Find and open a bundle.

    Raises an InputError without a model and a language or for a bundle of another tokenizer or
    precision, an UnknownModelError or UnknownLayerError for names and layers that do not exist, and
    a BundleError for a bundle that is not exported yet or cannot be used.
    """
    if model_type is None:
        if lang is None:
            raise InputError(
                "There is no model. Name one with ",
                Argument("model_type", option="--model"),
                ", or a language with ",
                Argument("lang"),
                f" for its default model, or set {MODEL_VARIABLE}.",
            )
        model_type = catalogue.default_model(lang)
    model_type = str(model_type)
    if isinstance(num_layers, bool) or not isinstance(num_layers, Integral | None):
        raise InputTypeError(f"num_layers is {num_layers!r}; expected an integer.")
    if precision is not None:
        check_choice("precision", precision, Precision)
    if num_layers is not None and num_layers < 0:
        raise UnknownLayerError(f"num_layers is {num_layers}; expected 0 (the embeddings) or more.")
    if os.path.isfile(os.path.join(model_type, MANIFEST)):  # unlike Path, it accepts any string
        bundle = open_bundle(model_type, verify=verify)
        _check_variant(bundle, tokenizer_mode, precision)
        if all_layers is None:
            return bundle
        return _of_layers(bundle, num_layers, all_layers=all_layers)
    if _is_path(model_type):
        _raise_not_a_bundle(model_type)
    entry = catalogue.find(model_type)
    precision = precision or "fp32"
    tokenizer_mode = tokenizer_mode or (entry.tokenizer if entry else "slow")
    if all_layers:
        folder = _exported(model_type, Variant(None, tokenizer_mode, precision))
    else:
        folder = _folder_of_one_layer(model_type, num_layers, tokenizer_mode, precision)
    bundle = open_bundle(folder, verify=verify)
    _check_place(bundle, model_type)
    return bundle


def installed_models() -> list[str]:
    """Return the ids of the models with a bundle in the home folder."""
    names = set()
    for folder in stored_bundles():
        with suppress(BundleError):
            names.add(read_manifest(folder).model_id)
    return sorted(names)


def _is_path(name: str) -> bool:
    """Return whether a name can only be a path: on the Hub names are `model` or
    `organisation/model`.
    """
    return not name or name[0] in "./~" or name[-1] == "/" or "\\" in name or name.count("/") > 1


def _of_layers(bundle: Bundle, num_layers: int | None, *, all_layers: bool) -> Bundle:
    """Return the requested layers of a bundle opened by its path, or raise an UnknownLayerError."""
    manifest = bundle.manifest
    # A bundle of one layer cannot give all; that of all layers can give each.
    if all_layers:
        if manifest.all_layers:
            return bundle
        raise UnknownLayerError(
            f"The bundle {bundle.path} holds layer {manifest.num_layers} only, and all layers are "
            f"needed. Run {_export_of(manifest.model_id, manifest, ' --all-layers')} to export "
            "all layers, or leave out the option that needs them."
        )
    model_layers = manifest.num_layers if manifest.all_layers else manifest.model_layers
    if num_layers is not None and model_layers is not msgspec.UNSET and num_layers > model_layers:
        found = f"Layer {num_layers} was asked for; {manifest.model_id} has {model_layers}."
        if manifest.all_layers:
            raise UnknownLayerError(f"{found} Choose one of 0 (the embeddings) to {model_layers}.")
        cut = f"The bundle is cut at layer {manifest.num_layers}"
        raise UnknownLayerError(f"{found} {cut}: leave ", Argument("num_layers"), " out.")
    if manifest.all_layers:
        if num_layers is not None:
            return replace(bundle, manifest=manifest.of_layer(num_layers))
        raise UnknownLayerError(
            f"The bundle {bundle.path} holds all layers, 0 to {manifest.num_layers}. Choose one "
            "with ",
            Argument("num_layers"),
            ", or score by each with ",
            Argument("all_layers", True),
            ".",
        )
    if num_layers not in (None, manifest.num_layers):
        export = _export_of(manifest.model_id, manifest, f" --num-layers {num_layers}")
        raise UnknownLayerError(
            f"The bundle {bundle.path} is cut at layer {manifest.num_layers}, and layer "
            f"{num_layers} was asked for. Leave ",
            Argument("num_layers"),
            f" out, or run {export}.",
        )
    return bundle


def _check_place(bundle: Bundle, name: str) -> None:
    """Raise a ManifestError if a stored bundle is in the place of another."""
    manifest = bundle.manifest
    variant = manifest.variant.folder_name
    if (manifest.model_id, variant) != (name, bundle.path.name):
        raise ManifestError(
            f"{bundle.path} is the place of {name}, and holds {manifest.model_id}, {variant}. "
            "Move it to a folder elsewhere and score with its path, or export it again."
        )


def _check_variant(
    bundle: Bundle, tokenizer_mode: TokenizerMode | None, precision: Precision | None
) -> None:
    """Raise an InputError if a bundle opened by its path has another tokenizer or precision."""
    manifest = bundle.manifest
    wanted = Variant(
        manifest.num_layers,
        tokenizer_mode or manifest.tokenizer_mode,
        precision or manifest.precision,
    )
    layer = " --all-layers" if manifest.all_layers else f" --num-layers {manifest.num_layers}"
    advice = f"or run {_export_of(manifest.model_id, wanted, layer)}."
    if wanted.tokenizer_mode != manifest.tokenizer_mode:
        raise InputError(
            f"The bundle {bundle.path} has the {manifest.tokenizer_mode} tokenizer, and the "
            f"{tokenizer_mode} one was asked for. Leave ",
            Argument("use_fast_tokenizer"),
            f" out, {advice}",
        )
    if wanted.precision != manifest.precision:
        raise InputError(
            f"The bundle {bundle.path} is in {manifest.precision}, and {precision} was asked for. "
            "Leave ",
            Argument("precision"),
            f" out, {advice}",
        )


def _folder_of_one_layer(
    name: str, num_layers: int | None, tokenizer_mode: TokenizerMode, precision: Precision
) -> Path:
    """Return the folder of a bundle of the given layer, the catalogue's, or the only one."""
    entry = catalogue.find(name)
    if num_layers is None and entry is not None:
        num_layers = entry.num_layers
    if num_layers is not None:
        return _exported(name, Variant(num_layers, tokenizer_mode, precision))
    folders = list(stored_bundles(name, f"layer-*-{tokenizer_mode}-{precision}"))
    if not folders:
        stored = ", ".join(path.name for path in stored_bundles(name))
        if not stored:
            _raise_unknown(name)
        command = _export_of(name, Variant(None, tokenizer_mode, precision), " --num-layers N")
        raise BundleNotFoundError(
            f"No bundle of {name} with its {tokenizer_mode} tokenizer in {precision} is here, "
            f"only {stored}. Choose one of these, or run {command}."
        )
    if len(folders) > 1:
        names = ", ".join(path.name for path in folders)
        raise UnknownLayerError(
            f"There are several bundles of {name}, choose one with ",
            Argument("num_layers"),
            f": {names}.",
        )
    return folders[0]


def _exported(name: str, variant: Variant) -> Path:
    """Return the folder of a bundle; if there is none, raise an error with the export command."""
    folder = bundle_folder(name, variant)
    if (folder / MANIFEST).is_file():
        return folder
    entry = catalogue.find(name)
    stored = ", ".join(path.name for path in stored_bundles(name))
    if entry is None and not stored:
        _raise_unknown(name)
    which = f"at layer {variant.num_layers}"
    layer = f" --num-layers {variant.num_layers}"
    if variant.num_layers is None:
        which = "with all layers"
        layer = " --all-layers"
    elif entry is not None and variant.num_layers == entry.num_layers:
        layer = ""
    found = f" There is {stored}." if stored else ""
    raise BundleNotFoundError(
        f"{name} {which} is not exported yet (there is no {folder}).{found} Run "
        f"{_export_of(name, variant, layer)} once, on any machine with the `export` extra "
        "installed."
    )


def _export_of(name: str, wanted: Variant | Manifest, layer: str) -> str:
    """Return the command that exports another variant of a model, also under a chosen name."""
    options = layer
    if wanted.tokenizer_mode != "slow":
        options += f" --tokenizer-mode {wanted.tokenizer_mode}"
    if wanted.precision != "fp32":
        options += f" --precision {wanted.precision}"
    if catalogue.find(name) is not None or name.count("/") == 1:
        return f"`bertscore-onnx export --model {name}{options}`"
    command = f"`bertscore-onnx export --model MODEL{options}`"
    return f"{command} (MODEL is the folder or the Hub id of {name})"


def _raise_not_a_bundle(path: str) -> NoReturn:
    if os.path.isfile(os.path.join(path, "config.json")):
        raise BundleNotFoundError(
            f"{path} holds a transformers model, not a bundle. Run `bertscore-onnx export --model "
            f"{path} --num-layers N --output BUNDLE` and score with BUNDLE."
        )
    folder = Path(path).parent
    if os.path.isfile(path) and (folder / MANIFEST).is_file():
        raise BundleNotFoundError(
            f"{path} is a file of a bundle. Give the bundle's folder, {folder}."
        )
    if os.path.exists(path):
        raise BundleNotFoundError(
            f"{path} is no bundle, which is a folder with a {MANIFEST}. `bertscore-onnx export` "
            "makes one from a model."
        )
    raise BundleNotFoundError(
        f"There is no folder {path!r}. Give the path of a bundle, absolute if it is not in the "
        "working folder, or the name of a model; `bertscore-onnx models` lists those that are "
        "known."
    )


def _raise_unknown(name: str) -> NoReturn:
    if os.path.exists(name) or os.path.isdir(name.rpartition("/")[0]):
        _raise_not_a_bundle(name)
    message = (
        f"No model {name!r} is in the catalogue or among the bundles in {store_root()}, and the "
        "working folder has no such folder; give the absolute path of one elsewhere."
    )
    near = ", ".join(catalogue.nearest_names(name, [*catalogue.entries(), *installed_models()]))
    if near:
        message += f" The nearest names are {near}."
    raise UnknownModelError(
        f"{message} `bertscore-onnx models` lists all; `bertscore-onnx export` makes a bundle of "
        "any other model of the Hub. A bundle on the Hub is hf://ORG/REPO."
    )
