"""A bundle: one folder that holds all it takes to score with one model at one layer, and its manifest.

The folder holds `model.onnx` (with `model.onnx.data` beside it for large models), `tokenizer.json` (with `spiece.model`
beside it for SentencePiece) and the manifest `bertscore.json`. It is the only thing that passes from the export to the
runtime.
"""

import errno
import hashlib
import stat
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from bertscore_onnx.bundle.baseline import Baseline
from bertscore_onnx.bundle.digests import cached_digest
from bertscore_onnx.bundle.external_data import external_files
from bertscore_onnx.bundle.store import MANIFEST, Precision, TokenizerMode
from bertscore_onnx.errors import (
    BundleNotFoundError,
    DigestError,
    FormatVersionError,
    ManifestError,
    UnsafePathError,
)
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TOKENIZER_FILE, TokenizerSpec

FORMAT_VERSION = 2
GRAPH_FILE = "model.onnx"
DATA_FILE = "model.onnx.data"

MAX_MANIFEST_BYTES = 16_000_000
"""Far more than any has: 20 kB for most models, and 250 bytes for each layer and language of baselines."""

T = TypeVar("T", bound=msgspec.Struct)
Count = Annotated[int, msgspec.Meta(ge=0)]
Size = Annotated[int, msgspec.Meta(ge=1)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class GoldenPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair of sentences and the scores that the original PyTorch model gives it, without idf or rescaling."""

    candidate: str
    reference: str

    precision: list[float]
    """For each layer of the output; likewise `recall` and `f1`."""

    recall: list[float]
    f1: list[float]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `bertscore.json` says."""

    format_version: int
    """The generation of this form; this version writes and reads `FORMAT_VERSION` only."""

    model_id: str
    """The catalogue's or the Hub's name of the model, or the name of the local folder it came from."""

    revision: str | None
    """The Hub's commit, where there is one."""

    family: str
    """The architecture, by the name of its row in the export's table."""

    num_layers: Count
    """The layer the tokens are taken from; 0 is the embeddings."""

    all_layers: bool
    """Whether the graph gives every layer up to that one, and scores come for each."""

    precision: Precision
    """The arithmetic of the graph."""

    inputs: list[str]
    """The graph's inputs, each int64 (batch, tokens)."""

    output: str
    """The graph's output: unit token vectors, float32 (batch, tokens, hidden).

    With `all_layers` it has a first axis more, the layers.
    """

    hidden_size: Size
    vocab_size: Size

    max_length: Size | None
    """The most tokens of a text, special tokens included; what is beyond is cut off. None: no bound of the model's."""

    pad_id: Count

    zero_weight_ids: list[Count]
    """The ids that weigh 0 without idf, wherever they stand."""

    empty_ids: Annotated[list[Count], msgspec.Meta(min_length=1)]
    """The ids of an empty text."""

    tokenizer_mode: TokenizerMode
    """Which of the two tokenizers of transformers the ids are those of."""

    tokenizer_spec: TokenizerSpec | None
    """How texts become ids, as far as `tokenizer.json` does not say; None in the fast mode."""

    tokenizer_differences: Count
    """How many of the export's awkward texts get other ids than from the original tokenizer."""

    baselines: dict[str, list[Baseline]]
    """Language to the baseline of each layer of the output."""

    exported_with: dict[str, str]
    """The versions of the packages that made the bundle."""

    files: dict[str, Sha256]
    """Every other file of the bundle and its SHA-256."""

    golden: list[GoldenPair]

    golden_difference: Annotated[float, msgspec.Meta(ge=0)]
    """The largest difference from these scores when the bundle was exported; the cost of its precision."""

    padding: bool = True
    """Whether texts may be padded to the length of others. Where padding changes the vectors of the real tokens, a
    batch holds texts of one length only."""

    digest: Sha256 | Literal[""] = ""
    """The SHA-256 of all the above; it identifies the bundle."""

    @property
    def layers(self) -> range:
        """The layers of the graph's output."""
        return range(0 if self.all_layers else self.num_layers, self.num_layers + 1)

    @property
    def special_ids(self) -> list[int]:
        """The ids that do not make a text non-empty."""
        return sorted({*self.empty_ids, *self.zero_weight_ids})

    def computed_digest(self) -> str:
        """Return what `digest` has to be."""
        content = msgspec.json.encode(msgspec.structs.replace(self, digest=""), order="sorted")
        return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened and checked bundle."""

    path: Path
    manifest: Manifest

    @property
    def graph_path(self) -> Path:
        """The ONNX graph."""
        return self.path / GRAPH_FILE

    @property
    def tokenizer_path(self) -> Path:
        """The tokenizer of the `tokenizers` package."""
        return self.path / TOKENIZER_FILE


def open_bundle(path: str | PathLike[str], *, verify: bool = False) -> Bundle:
    """Open a bundle and check it against its manifest.

    Args:
        path: the bundle's folder.
        verify: read every file for its digest, also where size and times are those of the last reading.

    Raises:
        BundleNotFoundError: there is no manifest, or a file that it names is missing.
        ManifestError: the manifest is not one.
        FormatVersionError: it is of another format version.
        UnsafePathError: it names files outside the folder, or the graph names a file that it does not.
        DigestError: a file, or the manifest itself, is not as it was exported.
        GraphError: the graph is not one.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    for name, expected in manifest.files.items():
        file = _safe_path(folder, name)
        if not file.is_file():
            raise BundleNotFoundError(f"The bundle {folder} lacks its file {name}. {_EXPORT_AGAIN}")
        digest = cached_digest(file, read_again=verify)
        if digest != expected:
            raise DigestError(
                f"{file} is not the file that was exported: its SHA-256 is {digest}, the manifest says {expected}. "
                + _EXPORT_AGAIN
            )
    bundle = Bundle(folder, manifest)
    unnamed = sorted(external_files(bundle.graph_path) - manifest.files.keys())
    if unnamed:
        raise UnsafePathError(
            f"The graph of {folder} takes weights from {unnamed[0]!r}, which its manifest does not name. Do not use "
            "this bundle."
        )
    return bundle


def read_manifest(path: str | PathLike[str]) -> Manifest:
    """Read and check the manifest alone.

    Raises:
        BundleNotFoundError, ManifestError, FormatVersionError, UnsafePathError, DigestError: as `open_bundle` says.
    """
    folder = Path(path)
    file = folder / MANIFEST
    content = _read(folder, file)
    _check_format_version(file, content)
    manifest = _decode(file, content, Manifest)
    required = {GRAPH_FILE, TOKENIZER_FILE}
    if manifest.tokenizer_spec is not None and manifest.tokenizer_spec.sentencepiece is not None:
        required.add(SENTENCEPIECE_FILE)
    missing = required - manifest.files.keys()
    if missing:
        raise ManifestError(f"{file} gives no digest for {', '.join(sorted(missing))}. {_EXPORT_AGAIN}")
    if manifest.computed_digest() != manifest.digest:
        raise DigestError(f"{file} was changed after it was exported: its own digest does not match. {_EXPORT_AGAIN}")
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest with its digest into a folder, and return it."""
    sealed = msgspec.structs.replace(manifest, digest=manifest.computed_digest())
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(sealed), indent=2) + b"\n")
    return sealed


_EXPORT_AGAIN = "Export the model again, or copy the bundle anew."


class _Version(msgspec.Struct):
    format_version: int


def _read(folder: Path, file: Path) -> bytes:
    """Read the manifest: a regular file of reasonable size, so that nothing can be made to wait or fill memory."""
    _safe_path(folder, MANIFEST)
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # to open a pipe is to wait for who writes into it
            raise OSError(errno.EINVAL, "it is not a regular file")
        with file.open("rb") as opened:
            content = opened.read(MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise BundleNotFoundError(f"{folder} is no bundle: cannot read {file} ({error.strerror}).") from error
    if len(content) > MAX_MANIFEST_BYTES:
        raise ManifestError(
            f"{file} is not a manifest: it has more than the {MAX_MANIFEST_BYTES:,} bytes that are read. "
            + _EXPORT_AGAIN
        )
    return content


def _decode(file: Path, content: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(f"{file} is not a manifest: {error}. {_EXPORT_AGAIN}") from error


def _check_format_version(file: Path, content: bytes) -> None:
    """Look at the version first: another generation's manifest may differ in everything else."""
    version = _decode(file, content, _Version).format_version
    if version != FORMAT_VERSION:
        advice = "Upgrade bertscore-onnx." if version > FORMAT_VERSION else "Export the model again."
        raise FormatVersionError(
            f"{file} has format version {version}; this version of bertscore-onnx reads {FORMAT_VERSION}. {advice}"
        )


def _safe_path(folder: Path, name: str) -> Path:
    """Return the path of a file of the bundle, which must lie in its folder even after links are followed."""
    file = folder / name
    try:
        inside = bool(name) and Path(name).name == name and file.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, before Python 3.13 a RuntimeError; an embedded NUL
        inside = False
    if not inside:
        raise UnsafePathError(
            f"The manifest of {folder} names {name!r}, which is not a file of that folder. Do not use this bundle."
        )
    return file
