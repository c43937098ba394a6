"""Bundles whose manifest has other fields than the export wrote."""

import shutil
from pathlib import Path
from typing import Any

import msgspec

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import Bundle, read_manifest
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.store import Variant, bundle_folder, file_digest
from tests.support.bundles import link_or_copy


def with_fields(bundle: Bundle, **fields: Any) -> Bundle:
    """Return an open bundle with these fields in its manifest."""
    return Bundle(bundle.path, msgspec.structs.replace(bundle.manifest, **fields))


FORMATS = Path(__file__).parents[1] / "bertscore_onnx" / "bundle" / "formats"
"""Tiny bundles of one model, in folders named by their format version; the tests only read them."""


def seal(folder: Path, **fields: Any) -> Path:
    """Write a manifest again with these fields, and the digests of its files as they are now;
    return the folder.
    """
    manifest = read_manifest(folder)
    fields = {"files": {name: file_digest(folder / name) for name in manifest.files}, **fields}
    (folder / "bertscore.json").unlink()  # it may be a link
    write_manifest(folder, msgspec.structs.replace(manifest, **fields))
    return folder


def changed_copy(bundle: Path, folder: Path, **fields: Any) -> Path:
    """Return a copy of a bundle, whose files may be links, with these fields in its manifest."""
    return seal(shutil.copytree(bundle, folder, copy_function=link_or_copy), **fields)


def stored_copy(bundle: Path, name: str, variant: Variant) -> Path:
    """Store a copy of a bundle as one of another model, with the sizes of the catalogue's; it
    cannot score then.
    """
    fields: dict[str, Any] = {
        "model_id": name,
        "num_layers": variant.num_layers,
        "tokenizer_mode": variant.tokenizer_mode,
        "precision": variant.precision,
    }
    entry = catalogue.find(name)
    if entry is not None:
        model = entry.architecture
        fields |= {"family": model.family, "model_layers": model.model_layers}
        fields |= {"hidden_size": model.hidden_size, "vocab_size": model.vocab_size}
    return changed_copy(bundle, bundle_folder(name, variant), **fields)
