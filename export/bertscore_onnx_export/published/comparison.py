"""Compares a bundle of a published graph with the PyTorch model.

The model's weights must lie beside the graph.
"""

import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from bertscore_onnx.bundle.manifest import GRAPH_FILE, Manifest, write_manifest
from bertscore_onnx.errors import ExportError, VerificationError
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.model.source import Source, loading
from bertscore_onnx_export.verify.bundle import verify_bundle

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_PACKAGES = ("torch", "transformers")


def load_model(source: Source, num_layers: int) -> Any:
    """Load the PyTorch model up to a layer.

    Raise an ExportError with the reason if no comparison is possible.
    """
    folder = Path(source.name_or_path)
    files = [*_WEIGHTS, *(f"{name}.index.json" for name in _WEIGHTS)]
    if not any((folder / name).is_file() for name in files):
        raise ExportError(f"{folder} has no {' or '.join(_WEIGHTS)}")
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise ExportError(f"{package} is not installed")
    with loading("libraries for the weights", source):
        from bertscore_onnx_export.model.families import family_of
        from bertscore_onnx_export.model.load import load_config, load_cut
        from bertscore_onnx_export.quiet import quiet_libraries
    with warnings.catch_warnings():
        quiet_libraries()
        # which would be drawn at random
        warnings.filterwarnings("error", message=".* lacks .* weights")
        config = load_config(source)
        return load_cut(source, config, family_of(config), num_layers)


def compare_with_model(source: Source, bundle: Path, manifest: Manifest, model: Any) -> Manifest:
    """Write the model's scores of the golden pairs into a bundle.

    Raise a VerificationError if it gives others.
    """
    from bertscore_onnx_export.verify.golden import encode_long_text, score_golden_pairs
    from bertscore_onnx_export.verify.vectors import verify_vectors

    @cache
    def tokenizer(max_length: int | None) -> TextTokenizer:
        return TextTokenizer(bundle, spec=None, max_length=max_length, empty_ids=manifest.empty_ids)

    def ids_of(text: str, max_length: int | None) -> list[int]:
        return [int(index) for index in tokenizer(max_length)([text])[0][0]]

    # PyTorch fails in many ways if its tokenizer does not fit
    with loading("model to score with it", source):
        golden = score_golden_pairs(model, ids_of, manifest.max_length, manifest.zero_weight_ids)
        long_text = encode_long_text(model, ids_of, manifest.max_length)
    manifest = msgspec.structs.replace(manifest, golden=golden, comparison="with PyTorch")
    write_manifest(bundle, manifest)
    try:
        difference = verify_bundle(bundle, long_text)
        verify_vectors(model, bundle / GRAPH_FILE, padding=manifest.padding)
    except VerificationError as error:
        raise VerificationError(
            f"The published graph is not the model beside it: {error} Export the model itself "
            "with --model, or remove its weights from the folder to use the graph alone."
        ) from error
    return msgspec.structs.replace(manifest, golden_difference=difference)
