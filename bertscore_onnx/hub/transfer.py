"""Downloads the files of a bundle, each until it has its digest; what was broken off goes on where it stopped."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from bertscore_onnx.bundle.bundle import MAX_MANIFEST_BYTES, bundle_file, read_manifest
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import MANIFEST, cached_digest
from bertscore_onnx.errors import BundleError, DigestError, HubError, HubUnreachableError
from bertscore_onnx.hub.client import Body
from bertscore_onnx.hub.origins import Origin

MAX_UNDECLARED = 64_000_000
"""The most bytes of a file whose size nobody declares: far more than a tokenizer has, and less than fills a disk."""

ATTEMPTS = 4
"""How many times in a row a download may break off without another byte."""

PAUSE = 0.5
"""Seconds before the second attempt; twice as many before each further one."""


class Remote(Protocol):
    """The place that a bundle comes from."""

    name: str
    """What to call it in messages."""

    origin: Origin

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, where the place says."""

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file at a byte of it."""


def fetch_manifest(remote: Remote, folder: Path) -> Manifest:
    """Download the manifest into an empty folder, and check it alone.

    Raises:
        BundleError: it is not there, or cannot be used.
        HubError: it cannot be read.
    """
    _continue(remote, MANIFEST, folder / MANIFEST, remote.size(MANIFEST), lambda size: None, MAX_MANIFEST_BYTES)
    try:
        manifest = read_manifest(folder)
        for name in manifest.files:
            bundle_file(folder, name)
    except BundleError as error:
        raise type(error)(f"{remote.name} holds no bundle that can be used. {error}") from error
    return manifest


def download(remote: Remote, manifest: Manifest, folder: Path, *, progress: bool | None) -> None:
    """Download the files that a manifest names into a folder, from where an earlier call stopped.

    Args:
        remote: where from.
        manifest: their names and digests.
        folder: where to; what is there of them came from a place with the same manifest.
        progress: whether to show a bar on standard error; None for one on a terminal.

    Raises:
        DigestError: a file is not the one that the manifest describes.
        BundleNotFoundError: one is not there.
        HubError: one cannot be read, or there is no room for it.
    """
    sizes = {name: remote.size(name) for name in manifest.files}
    total = sum(size or 0 for size in sizes.values())
    _check_room(remote, total - sum(_size(folder / name) for name in sizes), folder)
    with _bar(remote, total, shown=progress) as advance:
        for name, digest in manifest.files.items():
            _download_file(remote, name, digest, folder / name, sizes[name], advance)


def _download_file(
    remote: Remote, name: str, digest: str, file: Path, size: int | None, advance: Callable[[int], object]
) -> None:
    """Download a file until it has its digest; what an earlier call left may be damaged, and is tried once."""
    left = _size(file)
    advance(left)
    if left and cached_digest(file) == digest:
        return
    if size is None or left < size:
        _continue(remote, name, file, size, advance)
    found = cached_digest(file)
    if found != digest and left:
        advance(-_size(file))
        file.unlink()
        _continue(remote, name, file, size, advance)
        found = cached_digest(file)
    if found != digest:
        file.unlink()
        raise DigestError(
            f"{remote.name} does not hold what its manifest says: the SHA-256 of {name} is {found}, expected {digest}. "
            "Nothing of that file was kept. Tell its owner, or pull from elsewhere."
        )


def _continue(
    remote: Remote,
    name: str,
    file: Path,
    size: int | None,
    advance: Callable[[int], object],
    most: int | None = None,
) -> None:
    """Download the rest of a file, and go on where the connection breaks off while that brings more.

    Args:
        remote, name: which file.
        file: what is there of it.
        size: the bytes that it has; None where only the answer may say.
        advance: told of the bytes.
        most: the bytes that it may have.
    """
    attempt = 0
    while True:
        before = _size(file)
        try:
            return _receive(remote, name, file, size, advance, most)
        except HubUnreachableError:
            attempt = 1 if _size(file) > before else attempt + 1
            if attempt >= ATTEMPTS:
                raise
        time.sleep(PAUSE * 2 ** (attempt - 1))  # a server that broke off needs time to come back


def _receive(
    remote: Remote, name: str, file: Path, size: int | None, advance: Callable[[int], object], most: int | None
) -> None:
    """Append what one request brings of a file."""
    with file.open("ab") as opened, remote.open(name, opened.tell()) as body:
        if body.start < opened.tell():  # the server sends the whole file whatever is asked for
            advance(body.start - opened.tell())
            opened.truncate(body.start)
        received = body.start
        declared = body.size if size is None else size
        bound = MAX_UNDECLARED if declared is None else declared
        bound = bound if most is None else min(bound, most)
        for chunk in body.chunks:
            if received + len(chunk) > bound:
                opened.truncate(0)  # what came may be no more than a beginning
                raise HubError(f"{remote.name} sends more of {name} than the {bound:,} bytes that it may have.")
            opened.write(chunk)
            advance(len(chunk))
            received += len(chunk)
        if declared is not None and received < declared:
            raise HubUnreachableError(
                f"{remote.name} broke off at {received:,} of {declared:,} bytes of {name}. Pull again to go on there."
            )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _check_room(remote: Remote, needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise HubError(
            f"{remote.name} needs {needed:,} bytes more, and {folder.parent} has room for {free:,}. Free some, or set "
            "BERTSCORE_ONNX_HOME to a folder elsewhere."
        )


@contextmanager
def _bar(remote: Remote, total: int, *, shown: bool | None) -> Iterator[Callable[[int], object]]:
    """Yield a function that moves a bar on by bytes; back, where they are negative."""
    from tqdm import tqdm  # costs start-up time and is needed only here

    disable = None if shown is None else not shown
    with tqdm(total=total or None, desc=remote.name, unit="B", unit_scale=True, disable=disable) as bar:
        yield bar.update
