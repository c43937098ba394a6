"""Opens a bundle, and checks it by its manifest.

A bundle is one folder with everything that scoring with one model at one layer needs. The folder
holds `model.onnx` (with `model.onnx.data` beside it for large models), `scoring.onnx` if it was
requested, `tokenizer.json` or `tokenizer.slow.json` (with `spiece.model` beside it for
SentencePiece) and the manifest `bertscore.json`. It is the only thing that the export hands over to
the runtime.
"""

import errno
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bertscore_onnx.bundle.catalogue import misnamed
from bertscore_onnx.bundle.manifest import FORMAT_VERSION, GRAPH_FILE, SCORING_FILE, Manifest
from bertscore_onnx.bundle.store import MANIFEST, FileStamp, cached_digest, file_stamp
from bertscore_onnx.errors import (
    BundleNotFoundError,
    DigestError,
    FormatVersionError,
    GraphError,
    ManifestError,
    UnsafePathError,
    json_fault,
)
from bertscore_onnx.files import StrPath, read_regular
from bertscore_onnx.protobuf import message_fields
from bertscore_onnx.text.spec import tokenizer_file

GRAPH_FILES = {GRAPH_FILE, SCORING_FILE}

MAX_MANIFEST_BYTES = 16_000_000
"""Far more than any manifest has: 20 kB for most models, 250 bytes for each layer and language of
baselines, and 2 kB for each layer and language with measured baselines."""

MAX_NODES = 50_000
"""Several times as many as the deepest known model has; ONNX Runtime takes minutes for 200,000."""

T = TypeVar("T")

_EXPORT_AGAIN = "Export the model again, or copy the bundle again."


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened and checked bundle."""

    path: Path
    manifest: Manifest

    stamps: Mapping[str, FileStamp] = field(default_factory=dict)
    """By name, the stamps of the files, taken just before their digests were checked."""

    weights: frozenset[str] = frozenset()
    """The names of the files with weights of the graphs, apart from the graphs themselves."""

    stacked_layers: int = 0
    """The number of layers in the graph's output, on an axis of their own; 0 if it has no such
    axis.
    """

    @property
    def tokenizer_path(self) -> Path:
        """The tokenizer of the `tokenizers` package."""
        return self.path / tokenizer_file(self.manifest.tokenizer_spec)

    def check_unchanged(self) -> None:
        """Raise a DigestError if a file was replaced or removed.

        That is, after its digest was checked.
        """
        for name, stamp in self.stamps.items():
            file = os.path.join(self.path, name)
            try:
                is_same = (
                    file_stamp(file) == stamp
                    or cached_digest(Path(file)) == self.manifest.files[name]
                )
            except OSError:
                is_same = False
            if not is_same:
                raise DigestError(
                    f"{file} was replaced or removed after the bundle was opened. Load the bundle "
                    "again: make a new scorer, or start again."
                )


def open_bundle(path: StrPath, *, verify: bool = False) -> Bundle:
    """Open the bundle in a folder; raise a BundleError unless all files are as exported.

    Args:
        path: the folder.
        verify: whether to read every file for its digest, also where its size and times have not
            changed since the last time.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    stamps = {}
    for name, expected in manifest.files.items():
        file = bundle_file(folder, name)
        if not os.path.isfile(file):  # unlike Path, it accepts any name
            raise BundleNotFoundError(f"The bundle {folder} lacks its file {name}. {_EXPORT_AGAIN}")
        stamps[name] = file_stamp(file)
        digest = cached_digest(file, read_again=verify)
        if digest != expected:
            raise DigestError(
                f"{file} is not the file that was exported: its SHA-256 is {digest}, but the "
                f"manifest has {expected}. " + _EXPORT_AGAIN
            )
    weights = set[str]()
    for name in GRAPH_FILES & manifest.files.keys():
        weights |= external_files(folder / name, may_loop=name == SCORING_FILE)
    if unnamed := sorted(weights - manifest.files.keys()):
        raise UnsafePathError(
            f"A graph of {folder} takes weights from {unnamed[0]!r}, which its manifest does not "
            "name. Do not use this bundle."
        )
    stacked_layers = len(manifest.layers) if manifest.all_layers else 0
    return Bundle(folder, manifest, stamps, frozenset(weights), stacked_layers)


def read_manifest(path: StrPath) -> Manifest:
    """Read and check the manifest alone.

    Raise a BundleError if it cannot be used.
    """
    folder = Path(path)
    file = folder / MANIFEST
    try:
        os.fspath(folder).encode()
    except UnicodeEncodeError as error:
        raise BundleNotFoundError(
            f"The path {os.fspath(folder)!a} is no UTF-8, as native libraries read it. Set "
            "PYTHONUTF8=1, or rename the folder."
        ) from error
    # a regular file of reasonable size, which can neither block the reader nor fill the memory
    try:
        content = read_regular(file, MAX_MANIFEST_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise ManifestError(
                f"{file} is not a manifest: {error.strerror}. {_EXPORT_AGAIN}"
            ) from error
        raise BundleNotFoundError(
            f"{folder} is no bundle: cannot read {file} ({error.strerror})."
        ) from error
    version = _decode(file, content, dict[str, Any]).get("format_version")
    # its manifest may differ in everything else
    if type(version) is int and version != FORMAT_VERSION:
        upgrade = "Upgrade bertscore-onnx, or e" if version > FORMAT_VERSION else "E"
        raise FormatVersionError(
            f"{file} was made by another version of bertscore-onnx, in format version {version}; "
            f"this one reads {FORMAT_VERSION}. {upgrade}xport the model again with this one."
        )
    manifest = _decode(file, content, Manifest)
    missing = manifest.required_files - manifest.files.keys()
    if missing:
        raise ManifestError(
            f"{file} has no digest for {', '.join(sorted(missing))}. {_EXPORT_AGAIN}"
        )
    if manifest.computed_digest() != manifest.digest:
        raise DigestError(
            f"{file} was changed after it was exported: its own digest does not match. "
            f"{_EXPORT_AGAIN}"
        )
    if difference := misnamed(manifest.model_id, manifest.architecture):
        raise ManifestError(
            f"The bundle {folder} bears the name of another model: {difference}. Export it again "
            "with another --name."
        )
    return manifest


def bundle_file(folder: Path, name: str) -> Path:
    """Return the path of a file that the manifest names.

    Raise an UnsafePathError if it would be outside the folder.

    The file may be a link, as in the caches of a hub, of DVC or of git-annex: wherever it leads,
    the target must have the digest of the manifest.
    """
    if not name.isprintable() or name in {"", ".", ".."} or Path(name).name != name:
        raise UnsafePathError(
            f"The manifest of {folder} names {name!r}, which is not a file of that folder. Do not "
            "use this bundle."
        )
    return folder / name


def _decode(file: Path, content: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(
            f"{file} is not a manifest: {json_fault(error)}. {_EXPORT_AGAIN}"
        ) from error


@contextmanager
def mapped_links(folder: Path, names: Iterable[str]) -> Iterator[Mapping[str, mmap.mmap]]:
    """Map the weight files that are links into memory, and yield them by name.

    ONNX Runtime 1.24 and later refuse to follow a link out of the graph's folder, but accept the
    file's content.
    """
    with ExitStack() as opened:
        mapped = {}
        for name in names:
            path = folder / name
            # an empty file cannot be mapped
            if path.is_symlink() and path.is_file() and path.stat().st_size:
                file = opened.enter_context(path.open("rb"))
                mapped[name] = opened.enter_context(
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                )
        yield mapped


@contextmanager
def unlinked(graph: Path, weights: Iterable[str]) -> Iterator[Path]:
    """Yield the path of a graph whose weights are no links, for OpenVINO."""
    names = [graph.name, *weights]
    if not any((graph.parent / name).is_symlink() for name in weights):
        yield graph
        return
    # both cost start-up time
    import shutil
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name in names:
            source = (graph.parent / name).resolve()
            copy = Path(folder, name)
            try:
                copy.hardlink_to(source)
            except OSError:  # it is on another disk, or belongs to another user
                shutil.copyfile(source, copy)
        yield Path(folder, graph.name)


# The weight files of an ONNX graph, read from its bytes without the onnx package. A graph may keep
# a tensor's values in a file beside it (`external_data`). ONNX Runtime opens whatever file is named
# there, but only the files that the manifest names have a digest. The numbers below are those of
# the fields in `onnx.proto3`; the encoding is that of protocol buffers.

_NESTED = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""For each message the fields that may lead to a tensor, and the kind of message in them."""

_KEY = 1
_VALUE = 2
_OP_TYPE = 4

_REFUSED = {
    b"EPContext": "a model compiled for one device, which may come from a file without a digest",
    **dict.fromkeys((b"Loop", b"Scan", b"SequenceMap"), "a loop, which may be endless"),
}
"""Types of nodes that no encoder needs. A scoring graph may have a loop over texts; scoring here
does not run it.
"""


def external_files(path: Path, *, may_loop: bool = False) -> set[str]:
    """Return the files that the tensors of a graph name, verbatim.

    Raise a GraphError if it is not a usable graph.
    """
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return set(_locations(content, 0, len(content), "model", may_loop=may_loop))
    except GraphError:
        raise
    except (IndexError, ValueError, RecursionError) as error:  # an empty file cannot be mapped
        raise GraphError(
            f"{path} is not an ONNX graph. Export the model again, or copy the bundle again."
        ) from error


def _locations(
    content: mmap.mmap, start: int, end: int, message: str, *, may_loop: bool
) -> Iterator[str]:
    """Yield the files that are named in the message between the bytes `start` and `end`."""
    if message == "function":
        raise GraphError(
            "The graph has functions of its own, which may call themselves. Export the model again."
        )
    if message == "entry":
        entry = {}
        for number, begin, stop in message_fields(content, start, end):
            entry[number] = content[begin:stop]
        if entry.get(_KEY) == b"location":
            yield entry.get(_VALUE, b"").decode()
        return
    nested = _NESTED[message]
    num_nodes = 0
    for number, begin, stop in message_fields(content, start, end):
        if message == "node" and number == _OP_TYPE:
            op_type = content[begin:stop]
            reason = _REFUSED.get(op_type)
            if reason is not None and not (may_loop and op_type == b"Loop"):
                raise GraphError(
                    f"The graph has a node of the type {op_type.decode()}, {reason}. Export the "
                    "model again."
                )
        if number in nested:
            num_nodes += nested[number] == "node"
            if num_nodes > MAX_NODES:
                raise GraphError(
                    f"The graph has more than {MAX_NODES:,} nodes. Export the model again."
                )
            yield from _locations(content, begin, stop, nested[number], may_loop=may_loop)
