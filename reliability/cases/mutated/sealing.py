"""Writes a manifest with right digests, as far as it has the form of one."""

import json
from pathlib import Path
from typing import Any

import msgspec

from bertscore_onnx.bundle.manifest import Manifest, write_manifest
from bertscore_onnx.bundle.store import MANIFEST, file_digest

Fields = dict[str, Any]


def read_fields(bundle: Path) -> Fields:
    """Return what a manifest says, unchecked."""
    fields: Fields = json.loads((bundle / MANIFEST).read_bytes())
    return fields


def reseal(bundle: Path) -> None:
    """Write the digests that the files of a bundle have now."""
    write_sealed(bundle, read_fields(bundle))


def write_sealed(bundle: Path, fields: object) -> None:
    """Write a manifest, sealed if it has the form of one; where its files are names and digests, with right ones."""
    if isinstance(fields, dict) and isinstance(files := fields.get("files"), dict):
        right = {name: file_digest(bundle / name) for name in files if _is_file(bundle, name)}
        fields = {**fields, "files": {**files, **right}}
    try:
        write_manifest(bundle, msgspec.convert(fields, Manifest))
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeEncodeError):
        (bundle / MANIFEST).write_text(json.dumps(fields), encoding="utf-8")


def _is_file(bundle: Path, name: str) -> bool:
    try:
        return (bundle / name).is_file()
    except (OSError, ValueError):
        return False
