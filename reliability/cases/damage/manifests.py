"""Damage to the manifest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bertscore_onnx.bundle.bundle import MAX_MANIFEST_BYTES, read_manifest
from bertscore_onnx.bundle.manifest import GRAPH_FILE
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import (
    DigestError,
    FormatVersionError,
    GoldenScoreError,
    GraphError,
    ManifestError,
    UnsafePathError,
)
from reliability.cases.damage.kind import Damage, seal

Fields = dict[str, Any]
DEPTH = 1_000_000


def _rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def inflict(bundle: Path) -> None:
        file = bundle / MANIFEST
        file.write_bytes(change(file.read_bytes()))

    return inflict


def _edited(**changes: Any) -> Callable[[Path], None]:
    """Change fields without sealing."""
    return _rewritten(lambda content: json.dumps({**json.loads(content), **changes}).encode())


def _without(field: str) -> Callable[[Path], None]:
    def change(content: bytes) -> bytes:
        fields: Fields = json.loads(content)
        del fields[field]
        return json.dumps(fields).encode()

    return _rewritten(change)


def _naming(name: str) -> Callable[[Path], None]:
    """Name another file, which is there, and seal."""

    def inflict(bundle: Path) -> None:
        (bundle.parent / "secret").write_bytes(b"")
        (bundle / "sub").mkdir()
        seal(bundle, files={**read_manifest(bundle).files, name: "0" * 64})

    return inflict


def _sealed(**changes: Any) -> Callable[[Path], None]:
    return lambda bundle: seal(bundle, **changes)


def _deep(content: bytes) -> bytes:
    return b'{"format_version": 1, "x": ' + b"[" * DEPTH + b"]" * DEPTH + b"}"


_MISSTATED: Fields = {
    "hidden_size": "32",
    "pad_id": -1,
    "inputs": "input_ids",
    "empty_ids": [],
    "max_length": 0,
    "precision": "fp31",
    "files": {GRAPH_FILE: "short"},
    "format_version": "1",
    "golden": [{}],
    "a new field": 1,
}

MANIFESTS = [
    Damage("half a manifest", _rewritten(lambda content: content[: len(content) // 2]), (ManifestError,)),
    Damage("an empty manifest", _rewritten(lambda content: b""), (ManifestError,)),
    Damage("a list for a manifest", _rewritten(lambda content: b"[" + content + b"]"), (ManifestError,)),
    Damage(
        "a manifest that is not UTF-8", _rewritten(lambda content: content.replace(b"tiny", b"\xff")), (ManifestError,)
    ),
    Damage("a deep manifest", _rewritten(_deep), (ManifestError,)),
    Damage("a huge manifest", _rewritten(lambda content: content + b" " * MAX_MANIFEST_BYTES), (ManifestError,)),
    *(Damage(f"{field} misstated", _edited(**{field: value}), (ManifestError,)) for field, value in _MISSTATED.items()),
    Damage("no vocab_size", _without("vocab_size"), (ManifestError,)),
    Damage("no digest", _without("digest"), (DigestError,)),
    Damage("another digest", _edited(digest="0" * 64), (DigestError,)),
    Damage("other golden pairs", _edited(golden=[]), (DigestError,)),
    Damage("a later format", _edited(format_version=99), (FormatVersionError,)),
    *(
        Damage(f"it names {name}", _naming(name), (UnsafePathError,), is_sealed=True)
        for name in ("../secret", "/etc/hostname", "sub/file", "..", ".", "", "a\0b")
    ),
    Damage("no golden pairs, sealed", _sealed(golden=[]), (GoldenScoreError,), is_sealed=True),
    Damage("another maximum length, sealed", _sealed(max_length=5), (GoldenScoreError,), is_sealed=True),
    Damage("other ids of weight zero, sealed", _sealed(zero_weight_ids=[]), (GoldenScoreError,), is_sealed=True),
    Damage("another hidden size, sealed", _sealed(hidden_size=31), (GraphError,), is_sealed=True),
]
"""Damage to the manifest."""
