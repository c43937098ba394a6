"""Pulls bundles into the store: from the hub, from a web server, or from any store that fsspec reads."""

import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

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
from bertscore_onnx.hub.remote import Body, HubRepository, HubVariant, StoreFolder, WebFolder, check_online
from bertscore_onnx.hub.source import ORIGINS, Origin, Source, add_origin, find, is_variant, parse_source

# Puts a pulled bundle into the store: under a lock, whole or not at all.


_log = logging.getLogger(__name__)


class Place:
    """Where a bundle goes in the store: the ordinary place of its model and variant, or one beside that."""

    def __init__(self, manifest: Manifest) -> None:
        """Take the bundle's manifest."""
        self._digest = manifest.digest
        self._ordinary = bundle_folder(manifest.model_id, manifest.variant)
        self._beside = self._ordinary.with_name(f"{self._ordinary.name}-{manifest.digest[:12]}")
        self._model = self._ordinary.parent
        name = self._model.name
        if self._model.parent != store_root() / "bundles" or name in {"", ".", ".."} or "\\" in name:
            raise UnsafePathError(
                f"The manifest calls its model {manifest.model_id!r}, which cannot be the name of a folder. Do not use "
                "this bundle."
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the model's folder, which is made; the system takes it back from a process that ends."""
        from filelock import FileLock, Timeout  # which huggingface_hub needs too

        with told(self._model):
            self._model.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._model / ".lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                _log.warning("Another process pulls a bundle into %s; waiting for it.", self._model)
                lock.acquire()
        try:
            for path in (self._ordinary, self._beside):
                _recover(path)
            yield
        finally:
            lock.release()

    def existing(self, *, beside: bool) -> Path | None:
        """Return where the same bundle is already, undamaged; beside its ordinary place too, where that will do."""
        for folder in (self._ordinary, self._beside) if beside else (self._ordinary,):
            with contextlib.suppress(BundleError):
                if open_bundle(folder).manifest.digest == self._digest:
                    return folder
        return None

    def choose(self, *, force: bool, beside: bool) -> Path:
        """Return the folder to put the bundle at."""
        if self._is_free(self._ordinary, force=force):
            return self._ordinary
        if beside and self._is_free(self._beside, force=False):
            return self._beside
        if not (self._ordinary / MANIFEST).is_file():
            raise HubError(f"{self._ordinary} is there already and is no bundle. Move it away, and pull again.")
        raise HubError(
            f"{self._ordinary} holds another bundle. Pass --force (force=True) to replace it, or leave it there and "
            "score with the name that begins with hf://, which keeps both."
        )

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield the folder to download to, which stays where that fails: the next call goes on in it."""
        folder = self._model / f".{self._ordinary.name}.pulling-{self._digest[:12]}"
        with told(self._model):
            folder.mkdir(exist_ok=True)
            yield folder

    def _is_free(self, path: Path, *, force: bool) -> bool:
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return True
        if force:
            return (path / MANIFEST).is_file()
        try:
            return read_manifest(path).digest == self._digest  # and damaged, since it was not taken
        except BundleError:
            return False


def put(staging: Path, path: Path) -> None:
    """Rename a complete bundle to its place; what it replaces is deleted last."""
    old = _old(path)
    if path.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(path, old)
    try:
        os.replace(staging, path)
    except OSError:
        _recover(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def told(folder: Path) -> Iterator[None]:
    """Tell what the system refuses in a HubError."""
    try:
        yield
    except BertScoreOnnxError:
        raise
    except OSError as error:
        raise HubError(
            f"Cannot put a bundle into {folder}: {error.strerror or error}. What was downloaded by then is kept, and "
            "the next pull goes on there. BERTSCORE_ONNX_HOME names another folder."
        ) from error


def _recover(path: Path) -> None:
    """Put back what stood at a place, where a call that was killed had moved it away."""
    if _old(path).exists() and not path.exists():
        os.replace(_old(path), path)


def _old(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


# Downloads the files of a bundle, each until it has its digest; what was broken off goes on where it stopped.


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
    """Download the manifest into an empty folder, and check it alone."""
    _continue(remote, MANIFEST, folder / MANIFEST, remote.size(MANIFEST), lambda size: None, MAX_MANIFEST_BYTES)
    try:
        manifest = read_manifest(folder)
        for name in manifest.files:
            bundle_file(folder, name)
    except BundleError as error:
        raise type(error)(f"{remote.name} holds no bundle that can be used. {error}") from error
    return manifest


def download(remote: Remote, manifest: Manifest, folder: Path, *, progress: bool | None) -> None:
    """Download the files that a manifest names into a folder, from where an earlier call stopped."""
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
    """Download the rest of a file, and go on where the connection breaks off while that brings more."""
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
    """Bring a bundle into the store of this machine, where its model's name then finds it.

    A download that was broken off goes on where it stopped. The bundle appears in the store when every file has the
    digest of the manifest, and not before. Without network a bundle that came from there earlier is found again; one of
    a commit is never asked for twice.

    Args:
        source: `ORG/REPO[@REVISION][/VARIANT]` on the Hugging Face hub, or the URL of a folder that holds a bundle:
            `https://…`, or of any store that fsspec reads, such as `s3://…`.
        revision: a branch, tag or commit of the hub; None for the default branch.
        variant: the folder in the repository, such as `layer-17-slow-fp32`; None for the only one.
        token: for a repository that is not public; None for `HF_TOKEN`, or that of `hf auth login`.
        force: replace another bundle of this model and variant in the store.
        offline: only look in the store.
        progress: show a progress bar on standard error; None for one on a terminal.

    Returns:
        The bundle's folder.

    Raises:
        InputError: the source is none, or leaves open which variant is meant.
        BundleNotFoundError: the repository, the revision or the variant is not there.
        BundleError: what is there is damaged, or not what its manifest says.
        HubUnreachableError: there is no network, and nothing came from there earlier.
        HubError: the hub refuses, the disk is full, or another bundle is in its place.
        MissingExtraError: huggingface_hub, or the package for a store, is not installed.
    """
    wanted = parse_source(source, revision, variant)
    return _pull(wanted, token=token, force=force, beside=False, offline=offline, progress=progress)


def find_or_pull(name: str) -> Path:
    """Return the folder of a bundle by its name on the hub, which is asked only where nothing came from there yet.

    The ordinary place of its model and variant stays as it is where another bundle is there.
    """
    wanted = parse_source(name)
    here = find(wanted)
    if len(here) == 1:
        return here[0]
    return _pull(wanted, token=None, force=False, beside=True, offline=False, progress=None)


def _pull(
    wanted: Source, *, token: str | None, force: bool, beside: bool, offline: bool, progress: bool | None
) -> Path:
    here = find(wanted)
    if len(here) == 1 and wanted.is_pinned:
        return here[0]
    try:
        if offline:
            raise HubUnreachableError(f"{wanted} is not in the store, and was to be looked for there only.")
        remote = _open(wanted, token)
        manifest, content = _read_manifest(remote)
    except HubUnreachableError as error:
        if len(here) > 1:
            names = ", ".join(folder.name for folder in here)
            raise InputError(f"{error} Several bundles came from there earlier: {names}. Name one of them.") from error
        if not here:
            raise
        if not offline:
            _log.warning("%s Taking the bundle that came from there earlier.", error)
        return here[0]
    place = Place(manifest)
    with place.locked():
        path = place.existing(beside=beside)
        if path is not None:
            with contextlib.suppress(OSError):  # a store that others write
                add_origin(path, remote.origin)
            return path
        path = place.choose(force=force, beside=beside)
        with place.staging() as folder:
            download(remote, manifest, folder, progress=progress)
            (folder / MANIFEST).write_bytes(content)  # last, since it makes a folder a bundle
            open_bundle(folder)
            add_origin(folder, remote.origin)
            put(folder, path)
    return path


def _open(source: Source, token: str | None) -> Remote:
    """Connect to the place that a bundle comes from."""
    check_online()
    if source.repo is not None:
        return HubVariant(HubRepository(source, token), source)
    if source.place.startswith(("https://", "http://")):
        return WebFolder(source, token)
    return StoreFolder(source)


def _read_manifest(remote: Remote) -> tuple[Manifest, bytes]:
    """Return a place's manifest, and its bytes."""
    try:
        with tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as folder:
            manifest = fetch_manifest(remote, Path(folder))
            content = (Path(folder) / MANIFEST).read_bytes()
    except BertScoreOnnxError:
        raise
    except OSError as error:
        raise HubError(
            f"Cannot put the manifest of {remote.name} into a temporary folder: {error.strerror or error}. Make room, "
            "or set TMPDIR to a folder that can be written."
        ) from error
    names = {name.casefold().strip(". ") for name in manifest.files}  # as some systems take them, and as they are made
    if {MANIFEST, ORIGINS} & names:
        raise UnsafePathError(f"The manifest of {remote.name} names itself or {ORIGINS}. Do not use this bundle.")
    folder_name = (remote.origin.variant or "").rpartition("/")[2]
    if is_variant(folder_name) and folder_name != manifest.variant.folder_name:
        raise ManifestError(f"{remote.name} holds the variant {manifest.variant.folder_name}. Tell its owner.")
    return manifest, content
