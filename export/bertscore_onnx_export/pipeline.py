"""The whole export of a model into a bundle.

Load, cut, write the graph, convert the tokenizer, verify, place the bundle.
"""

import importlib.metadata
import logging
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bertscore_onnx import __version__
from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.card import CARD, model_card
from bertscore_onnx.bundle.catalogue import Architecture, Baseline
from bertscore_onnx.bundle.manifest import FORMAT_VERSION, GRAPH_FILE, Manifest, write_manifest
from bertscore_onnx.bundle.store import (
    Exporter,
    Precision,
    TokenizerMode,
    Variant,
    bundle_folder,
    file_digest,
)
from bertscore_onnx.encoding.providers import load_onnxruntime
from bertscore_onnx.errors import ExportError, json_fault
from bertscore_onnx_export.graph.exporters import PACKAGES, check_exporter
from bertscore_onnx_export.graph.output import OUTPUT
from bertscore_onnx_export.graph.precision import convert_to_fp16, fuse, quantize_to_int8
from bertscore_onnx_export.graph.scoring import Vocabulary, write_scoring_graph
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.model.families import Family, family_of
from bertscore_onnx_export.model.load import (
    count_layers,
    load_config,
    load_cut,
    stack_hidden_states,
)
from bertscore_onnx_export.model.source import (
    Source,
    check_name,
    check_name_of_folder,
    check_same_model,
    choose_layer,
    license_of,
)
from bertscore_onnx_export.placement import staging_folder
from bertscore_onnx_export.tokenizer.check import check_tokenizer, compare_with_slow
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import TokenizerFacts, original_ids, write_tokenizer
from bertscore_onnx_export.verify.bundle import verify_bundle, verify_scoring_graph
from bertscore_onnx_export.verify.golden import encode_long_text, score_golden_pairs
from bertscore_onnx_export.verify.vectors import (
    max_tokens,
    takes_padding,
    verify_inner_layer,
    verify_vectors,
)

_log = logging.getLogger(__name__)
_PACKAGES = ("onnx", "sentencepiece", "tokenizers", "torch", "transformers")

STAGES = 5
"""The number of stages that `export_model` reports."""


def export_model(
    name_or_path: str,
    *,
    name: str | None = None,
    adapter: str | None = None,
    num_layers: int | None = None,
    all_layers: bool = False,
    inner_norm: bool = True,
    scoring_graph: bool = False,
    output: Path | None = None,
    tokenizer_mode: TokenizerMode = "slow",
    precision: Precision = "fp32",
    exporter: Exporter = "torch",
    revision: str | None = None,
    license_id: str | None = None,
    force: bool = False,
    report: Callable[[str], object] = _log.info,
) -> Path:
    """Export a model into a bundle with the same scores.

    Return the bundle's folder.

    Raises an ExportError if the model or its tokenizer cannot be exported, or the bundle fails its
    verification.
    """
    load_onnxruntime()  # if it is missing, fail before the work
    check_exporter(exporter)
    versions = _versions(exporter)
    source = Source(name_or_path, revision, name, adapter)
    model_id = source.model_id
    is_named_by_folder = output is None and source.is_named_by_folder
    if is_named_by_folder:
        check_name_of_folder(model_id)
    report(f"Loading the configuration of {name_or_path}")
    config = load_config(source)
    family = family_of(config)
    layers = count_layers(config)
    check_name(source, Architecture(family.name, layers, config.hidden_size, config.vocab_size))
    if all_layers:
        num_layers = layers
        variant = Variant(None, tokenizer_mode, precision)
    else:
        num_layers = choose_layer(model_id, num_layers, layers)
        variant = Variant(num_layers, tokenizer_mode, precision)
    target = output or bundle_folder(model_id, variant)
    with staging_folder(target, force=force) as folder:
        report(f"Loading the weights up to layer {num_layers}, and the tokenizer")
        model = load_cut(source, config, family, num_layers)
        original = load_tokenizer(source, tokenizer_mode)
        check_tokenizer(original, source, config.vocab_size)
        if not family.is_tested:
            _warn_of_untested(family)
        if all_layers:
            stack_hidden_states(model, family, inner_norm=inner_norm)
        report("Writing the graph")
        inputs = write_graph(model, folder, all_layers=all_layers, exporter=exporter)
        padding = takes_padding(model, family)
        if not family.is_tested:
            verify_vectors(model, folder / GRAPH_FILE, padding=padding)
            middle = num_layers // 2
            if all_layers and inner_norm and middle:
                verify_inner_layer(model, load_cut(source, config, family, middle), middle)
        if precision == "fp16":
            fuse(folder, config)
            # so that rounding cannot hide a wrong fusion
            verify_vectors(model, folder / GRAPH_FILE, padding=padding)
            convert_to_fp16(folder)
        elif precision == "int8":
            quantize_to_int8(folder)
        report(f"Converting the {tokenizer_mode} tokenizer")
        facts = write_tokenizer(original, max_tokens(model, config, family), folder)
        slow_differences = None
        if tokenizer_mode == "fast":
            slow_differences = compare_with_slow(source, facts, folder)
        if scoring_graph:
            vocabulary = _vocabulary(config, facts)
            written_layers = num_layers + 1 if all_layers else None
            write_scoring_graph(folder, vocabulary, padding=padding, layers=written_layers)
        report("Verifying against PyTorch")
        ids_of = partial(original_ids, original)
        first_layer = 0 if all_layers else num_layers
        final_norm = inner_norm if all_layers and family.final_norm else msgspec.UNSET
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            model_id=model_id,
            revision=getattr(config, "_commit_hash", None),
            family=family.name,
            num_layers=num_layers,
            all_layers=all_layers,
            precision=precision,
            inputs=inputs,
            output=OUTPUT,
            hidden_size=model.config.hidden_size,
            vocab_size=config.vocab_size,
            max_length=facts.max_length,
            pad_id=facts.pad_id,
            zero_weight_ids=facts.zero_weight_ids,
            empty_ids=facts.empty_ids,
            tokenizer_mode=tokenizer_mode,
            tokenizer_spec=facts.spec,
            tokenizer_differences=facts.differences,
            baselines=_baselines(model_id, range(first_layer, num_layers + 1)),
            exported_with=versions,
            files={file.name: file_digest(file) for file in sorted(folder.iterdir())},
            padding=padding,
            golden=score_golden_pairs(model, ids_of, facts.max_length, facts.zero_weight_ids),
            golden_difference=0.0,
            slow_differences=slow_differences or msgspec.UNSET,
            final_norm=final_norm,
            model_layers=layers,
        )
        _check_types(write_manifest(folder, manifest), source)
        if is_named_by_folder:
            check_same_model(manifest)
        long_text = encode_long_text(model, ids_of, facts.max_length)
        del model  # free memory for the runtime's own copy
        difference = verify_bundle(folder, long_text)
        manifest = msgspec.structs.replace(manifest, golden_difference=difference)
        if scoring_graph:
            difference = verify_scoring_graph(folder)
            manifest = msgspec.structs.replace(manifest, scoring_difference=difference)
        sealed = write_manifest(folder, manifest)
        license_fields = license_of(source) if license_id is None else {"license": license_id}
        (folder / CARD).write_text(
            model_card({"path/to/bundle": sealed}, license_fields), encoding="utf-8"
        )
    return target


def _versions(exporter: Exporter) -> dict[str, str]:
    """Return the versions of the packages, and who wrote the graph."""
    packages = sorted({*_PACKAGES, *PACKAGES[exporter]})
    versions = {package: importlib.metadata.version(package) for package in packages}
    return {"bertscore-onnx": __version__, **versions, "exporter": exporter}


def _vocabulary(config: Any, facts: TokenizerFacts) -> Vocabulary:
    special_ids = sorted({*facts.empty_ids, *facts.zero_weight_ids})
    return Vocabulary(config.vocab_size, facts.pad_id, special_ids, facts.zero_weight_ids)


def _baselines(model_id: str, layers: range) -> dict[str, list[Baseline]]:
    """Return the catalogue's baselines for the languages that have one for each layer."""
    rows = [catalogue.baselines(model_id, layer) for layer in layers]
    found = {}
    for language in rows[0]:
        if all(language in row for row in rows):
            found[language] = [row[language] for row in rows]
    return found


def _check_types(manifest: Manifest, source: Source) -> None:
    """Raise an ExportError if a setting in the manifest has a wrong type.

    The settings are those of the model.
    """
    try:
        msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest)
    except msgspec.ValidationError as error:
        raise ExportError(
            f"A setting of {source.name_or_path} has a wrong type: {json_fault(error)}. "
            f"{source.remedy}"
        ) from error


def _warn_of_untested(family: Family) -> None:
    warnings.warn(
        f"No test compares models of the type {family.name!r} with bert-score, and no layer was "
        "tuned for them. The export is verified against PyTorch as always; check that the scores "
        "make sense.",
        UserWarning,
        stacklevel=3,
    )
