"""Pulls bundles into the home folder: from the hub, a web server, or any object store that fsspec reads."""

import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bertscore_onnx.bundle.bundle import MAX_MANIFEST_BYTES, bundle_file, open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import MANIFEST, bundle_folder, cached_digest, store_root
from bertscore_onnx.errors import (
    BertScoreOnnxError,
    BundleError,
    DigestError,
    HubError,
    HubUnreachableError,
    InputError,
    ManifestError,
    UnsafePathError,
)
from bertscore_onnx.hub.remote import Remote, open_remote
from bertscore_onnx.hub.source import ORIGINS, Source, add_origin, find_pulled, is_variant, parse_source

_log = logging.getLogger(__name__)

MAX_UNDECLARED = 64_000_000
"""The most bytes of a file whose size is not declared: far more than a tokenizer has, and too few to fill a disk."""

ATTEMPTS = 4
"""The number of times in a row that a download may break off without another byte."""

PAUSE = 0.5
"""Seconds before the second attempt, doubled before each further one."""


def pull(
    source: str,
    *,
    revision: str | None = None,
    variant: str | None = None,
    token: str | None = None,
    force: bool = False,
    offline: bool = False,
    progress: bool | None = None,
) -> Path:
    """Download a bundle into the home folder, where the name of its model finds it.

    An interrupted download resumes where it stopped. The bundle appears only when every file has the digest of the
    manifest. Without network, the bundle that was pulled from the same source earlier is returned; a commit that was
    pulled is never requested again.

    Args:
        source: `ORG/REPO[@REVISION][/VARIANT]` on the Hugging Face hub, or the URL of a folder that holds a bundle:
            `https://…`, or of any store that fsspec reads, such as `s3://…`.
        revision: a branch, tag or commit of the hub; None for the default branch.
        variant: the folder in the repository, such as `layer-17-slow-fp32`; None for the only one.
        token: for a repository that is not public; None for `HF_TOKEN`, or the token of `hf auth login`.
        force: replace another bundle of this model and variant in the home folder.
        offline: only look in the home folder.
        progress: show a progress bar on standard error; None for one on a terminal.

    Returns:
        The bundle's folder.

    Raises:
        InputError: the source is not valid, or has several variants and none is named.
        BundleNotFoundError: the repository, the revision or the variant does not exist.
        BundleError: the bundle is damaged, or does not match its manifest.
        HubUnreachableError: there is no network, and nothing was pulled from this source earlier.
        HubError: the hub refuses, the disk is full, or another bundle is stored under this model and variant.
        MissingExtraError: huggingface_hub, or the package for an object store, is not installed.
    """
    parsed = parse_source(source, revision, variant)
    return _pull(parsed, token=token, force=force, keep_both=False, offline=offline, progress=progress)


def find_or_pull(name: str) -> Path:
    """Return the folder of a bundle by its name on the hub, which is contacted only if it was not pulled earlier.

    A different bundle of the same model and variant in the home folder stays, and the new one is stored beside it.
    """
    source = parse_source(name)
    stored = find_pulled(source)
    if len(stored) == 1:
        return stored[0]
    return _pull(source, token=None, force=False, keep_both=True, offline=False, progress=None)


def _pull(
    source: Source, *, token: str | None, force: bool, keep_both: bool, offline: bool, progress: bool | None
) -> Path:
    stored = find_pulled(source)
    if len(stored) == 1 and source.is_pinned:
        return stored[0]
    try:
        if offline:
            raise HubUnreachableError(f"{source} is not in the home folder, and nothing else was to be searched.")
        remote = open_remote(source, token)
        manifest, content = _fetch_checked_manifest(remote)
    except HubUnreachableError as error:
        if len(stored) > 1:
            names = ", ".join(folder.name for folder in stored)
            raise InputError(f"{error} Several bundles were pulled from there: {names}. Name one of them.") from error
        if not stored:
            raise
        if not offline:
            _log.warning("%s Using the bundle that was pulled from there earlier.", error)
        return stored[0]
    destination = Destination(manifest)
    with destination.locked():
        folder = destination.existing(keep_both=keep_both)
        if folder is not None:
            with contextlib.suppress(OSError):  # the folder may belong to others
                add_origin(folder, remote.origin)
            return folder
        folder = destination.choose(force=force, keep_both=keep_both)
        with destination.staging() as staging:
            download(remote, manifest, staging, progress=progress)
            (staging / MANIFEST).write_bytes(content)  # last, since it makes a folder a bundle
            open_bundle(staging)
            add_origin(staging, remote.origin)
            _replace_folder(staging, folder)
    return folder


def _fetch_checked_manifest(remote: Remote) -> tuple[Manifest, bytes]:
    """Return the manifest of a remote bundle and its bytes, after checks that only a downloaded one must pass."""
    try:
        with tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as folder:
            manifest = fetch_manifest(remote, Path(folder))
            content = (Path(folder) / MANIFEST).read_bytes()
    except BertScoreOnnxError:
        raise
    except OSError as error:
        raise HubError(
            f"Cannot put the manifest of {remote.name} into a temporary folder: {error.strerror or error}. Make room, "
            "or set TMPDIR to a writable folder."
        ) from error
    names = {name.casefold().strip(". ") for name in manifest.files}  # as some file systems compare them
    if {MANIFEST, ORIGINS} & names:
        raise UnsafePathError(f"The manifest of {remote.name} names itself or {ORIGINS}. Do not use this bundle.")
    folder_name = (remote.origin.variant or "").rpartition("/")[2]
    if is_variant(folder_name) and folder_name != manifest.variant.folder_name:
        raise ManifestError(f"{remote.name} holds the variant {manifest.variant.folder_name}. Inform its owner.")
    return manifest, content


def fetch(remote: Remote, name: str, folder: Path, most: int) -> None:
    """Download a file of at most some bytes into an empty folder."""
    _resume(remote, name, folder / name, remote.size(name), lambda size: None, most)


def fetch_manifest(remote: Remote, folder: Path) -> Manifest:
    """Download the manifest into an empty folder and check it; raise a BundleError if it cannot be used."""
    fetch(remote, MANIFEST, folder, MAX_MANIFEST_BYTES)
    try:
        manifest = read_manifest(folder)
        for name in manifest.files:
            bundle_file(folder, name)
    except BundleError as error:
        raise type(error)(f"{remote.name} holds no usable bundle. {error}") from error
    return manifest


class Destination:
    """The folder where a bundle is stored: the usual one of its model and variant, or a second one beside that."""

    def __init__(self, manifest: Manifest) -> None:
        """Derive the folders; raise an UnsafePathError if the model's name would lead out of the home folder."""
        self._digest = manifest.digest
        self._usual = bundle_folder(manifest.model_id, manifest.variant)
        self._second = self._usual.with_name(f"{self._usual.name}-{manifest.digest[:12]}")
        self._model = self._usual.parent
        name = self._model.name
        if self._model.parent != store_root() / "bundles" or name in {"", ".", ".."} or "\\" in name:
            raise UnsafePathError(
                f"The manifest calls its model {manifest.model_id!r}, which cannot be the name of a folder. Do not use "
                "this bundle."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create and lock the model's folder; the system releases the lock of a process that ends."""
        from filelock import FileLock, Timeout  # a dependency of huggingface_hub

        with _disk_errors(self._model):
            self._model.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._model / ".lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                _log.warning("Another process pulls a bundle into %s; waiting for it.", self._model)
                lock.acquire()
        try:
            for folder in (self._usual, self._second):
                _recover(folder)
            yield
        finally:
            lock.release()

    def existing(self, *, keep_both: bool) -> Path | None:
        """Return the folder that already holds the same bundle undamaged; the second one only with `keep_both`."""
        for folder in (self._usual, self._second) if keep_both else (self._usual,):
            with contextlib.suppress(BundleError):
                if open_bundle(folder).manifest.digest == self._digest:
                    return folder
        return None

    def choose(self, *, force: bool, keep_both: bool) -> Path:
        """Return the folder to store the bundle in; raise a HubError if it holds something that must stay.

        `force` replaces another bundle, and `keep_both` uses the second folder, which no model's name finds.
        """
        if self._is_free(self._usual, force=force):
            return self._usual
        if keep_both and self._is_free(self._second, force=False):
            return self._second
        if not (self._usual / MANIFEST).is_file():
            raise HubError(f"{self._usual} exists and is no bundle. Move it away, and pull again.")
        raise HubError(
            f"{self._usual} holds another bundle. Pass --force (force=True) to replace it, or leave it there and "
            "score with the name that begins with hf://, which keeps both."
        )

    def _is_free(self, folder: Path, *, force: bool) -> bool:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return True
        if force:
            return (folder / MANIFEST).is_file()
        try:
            return read_manifest(folder).digest == self._digest  # a damaged copy, or `existing` would have returned it
        except BundleError:
            return False

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield the folder to download to. It stays after a failure, so that the next call can resume."""
        folder = self._model / f".{self._usual.name}.pulling-{self._digest[:12]}"
        with _disk_errors(self._model):
            folder.mkdir(exist_ok=True)
            yield folder


def _replace_folder(staging: Path, folder: Path) -> None:
    """Rename a complete bundle to its final folder; a bundle that it replaces is deleted last."""
    old = _old(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(folder, old)
    try:
        os.replace(staging, folder)
    except OSError:
        _recover(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _recover(folder: Path) -> None:
    """Restore a folder that a killed process had renamed in order to replace it."""
    if _old(folder).exists() and not folder.exists():
        os.replace(_old(folder), folder)


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.replaced")


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into a HubError."""
    try:
        yield
    except BertScoreOnnxError:
        raise
    except OSError as error:
        raise HubError(
            f"Cannot put a bundle into {folder}: {error.strerror or error}. The bytes downloaded so far are kept, and "
            "the next pull resumes there. BERTSCORE_ONNX_HOME sets another folder."
        ) from error


def download(remote: Remote, manifest: Manifest, folder: Path, *, progress: bool | None) -> None:
    """Download the files of a manifest into a folder, resuming an earlier download; raise a BundleError or HubError.

    Files in the folder must come from a source with the same manifest. `progress` shows a bar; None on a terminal only.
    """
    sizes = {name: remote.size(name) for name in manifest.files}
    total = sum(size or 0 for size in sizes.values())
    _check_free_space(remote, total - sum(_size(folder / name) for name in sizes), folder)
    with _bar(remote, total, shown=progress) as advance:
        for name, digest in manifest.files.items():
            _download_file(remote, name, digest, folder / name, sizes[name], advance)


def _check_free_space(remote: Remote, needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise HubError(
            f"{remote.name} needs {needed:,} more bytes, and {folder.parent} has room for {free:,}. Free some, or set "
            "BERTSCORE_ONNX_HOME to another folder."
        )


@contextmanager
def _bar(remote: Remote, total: int, *, shown: bool | None) -> Iterator[Callable[[int], object]]:
    """Yield a function that moves a progress bar by bytes; backwards, if they are negative."""
    from tqdm.auto import tqdm  # costs start-up time and is needed only here

    disable = None if shown is None else not shown
    with tqdm(total=total or None, desc=remote.name, unit="B", unit_scale=True, disable=disable) as bar:
        yield bar.update


def _download_file(
    remote: Remote, name: str, digest: str, file: Path, size: int | None, advance: Callable[[int], object]
) -> None:
    """Download a file until it has its digest; if the bytes of an earlier call turn out damaged, start over once."""
    earlier = _size(file)
    advance(earlier)
    if earlier and cached_digest(file) == digest:
        return
    if size is None or earlier < size:
        _resume(remote, name, file, size, advance)
    actual = cached_digest(file)
    if actual != digest and earlier:
        advance(-_size(file))
        file.unlink()
        _resume(remote, name, file, size, advance)
        actual = cached_digest(file)
    if actual != digest:
        file.unlink()
        raise DigestError(
            f"{remote.name} does not match its manifest: the SHA-256 of {name} is {actual}, expected {digest}. The "
            "file was deleted. Inform the owner of the bundle, or pull it from elsewhere."
        )


def _resume(
    remote: Remote,
    name: str,
    file: Path,
    size: int | None,  # in bytes; None if only the response may declare it
    advance: Callable[[int], object],
    most: int | None = None,  # in bytes
) -> None:
    """Download the rest of a file, with retries while the connection breaks off but brings more bytes."""
    attempt = 0
    while True:
        before = _size(file)
        try:
            return _receive(remote, name, file, size, advance, most)
        except HubUnreachableError:
            attempt = 1 if _size(file) > before else attempt + 1
            if attempt >= ATTEMPTS:
                raise
        time.sleep(PAUSE * 2 ** (attempt - 1))  # a server that broke off needs time to recover


def _receive(
    remote: Remote, name: str, file: Path, size: int | None, advance: Callable[[int], object], most: int | None
) -> None:
    """Append the response to one request to a file."""
    with file.open("ab") as opened, remote.open(name, opened.tell()) as body:
        received = opened.tell()
        declared = body.size if size is None else size
        bound = MAX_UNDECLARED if declared is None else declared
        bound = bound if most is None else min(bound, most)
        for chunk in body.chunks:
            if received + len(chunk) > bound:
                opened.truncate(0)  # the bytes so far may be a beginning of anything
                raise HubError(f"{remote.name} sends more of {name} than the {bound:,} bytes that it may have.")
            opened.write(chunk)
            advance(len(chunk))
            received += len(chunk)
        if declared is not None and received < declared:
            raise HubUnreachableError(
                f"{remote.name} broke off at {received:,} of {declared:,} bytes of {name}. Pull again to resume."
            )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
