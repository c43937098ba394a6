"""One kind of damage, and the tool that seals a damaged bundle again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.errors import BundleError


@dataclass(frozen=True, slots=True)
class Damage:
    """A damage and what it has to end in."""

    name: str
    inflict: Callable[[Path], object]
    """Damages the bundle in this folder; the folder above it is free to be used."""

    errors: tuple[type[BundleError], ...]
    """Any of these."""

    is_sealed: bool = False
    """Whether the digests are right, so that it may take `verify=True` to detect it."""


def link_out(bundle: Path, name: str) -> None:
    """Move a file of a bundle out of its folder, and leave a link to it."""
    outside = bundle.parent / f"outside-{name}"
    (bundle / name).rename(outside)
    (bundle / name).symlink_to(outside)


def seal(bundle: Path, **fields: Any) -> None:
    """Write the manifest again, with other fields and the digests of the files as they are, as a buggy tool would."""
    manifest = read_manifest(bundle)
    files = {name: file_digest(bundle / name) for name in manifest.files}
    write_manifest(bundle, msgspec.structs.replace(manifest, **{"files": files, **fields}))
