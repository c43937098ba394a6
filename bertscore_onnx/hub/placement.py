"""Puts a pulled bundle into the store: under a lock, whole or not at all."""

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import MANIFEST, bundle_folder, store_root
from bertscore_onnx.errors import BertScoreOnnxError, BundleError, HubError, UnsafePathError

_log = logging.getLogger(__name__)


class Place:
    """Where a bundle goes in the store: the ordinary place of its model and variant, or one beside that."""

    def __init__(self, manifest: Manifest) -> None:
        """Take the bundle's manifest.

        Raises:
            UnsafePathError: the model's name would lead out of the store.
        """
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
        """Return the folder to put the bundle at.

        Args:
            force: take the place of another bundle.
            beside: go beside another bundle, where no model's name finds it.

        Raises:
            HubError: something stands there.
        """
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
