"""Places an exported bundle.

It checks the target first, replaces it at the end, and recovers it after a crash.
"""

import contextlib
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import ExportError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

_ABANDONED_AFTER = 24 * 3600
"""The age in seconds of an abandoned staging folder, on file systems without locks."""


@contextlib.contextmanager
def staging_folder(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield an empty folder that is renamed to `target` after the block.

    The folder is removed if the block raises.

    A bundle that is replaced is renamed first and deleted last. A failure before the new one is in
    its place restores it; if the process is killed, the next export to the same folder does.
    """
    with _export_errors(target):
        folder = _resolve(target)
        missing = [parent for parent in folder.parents if not parent.exists()]
        folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _export_errors(target):
            _recover(folder)
            _check_free(folder, force=force)
            staging = Path(tempfile.mkdtemp(prefix=_prefix(folder), dir=folder.parent))
        try:
            with _lock_folder(staging):
                new = staging / "new"
                new.mkdir()
                yield new
                with _export_errors(target):
                    _check_free(folder, force=force)
                    if folder.exists():
                        folder.rename(staging / "old")
                    new.rename(folder)
        finally:
            _clear(staging, folder)
    finally:
        for parent in missing:
            with contextlib.suppress(OSError):  # it is not empty, as after a successful export
                parent.rmdir()


def _resolve(target: Path) -> Path:
    """Return the folder that `target` links to.

    A rename would replace the link.
    """
    folder = Path(os.path.realpath(target))
    if target.is_symlink() and not folder.exists():
        raise ExportError(
            f"{target} links to {folder}, which does not exist. Remove the link, or name another "
            "folder."
        )
    if os.path.ismount(folder):
        raise ExportError(
            f"{target} is a mount point, which cannot be replaced by a bundle. Name a folder "
            "inside it."
        )
    return folder


def _check_free(folder: Path, *, force: bool) -> None:
    """Raise an ExportError if the folder must not be replaced.

    A bundle must not be without force, and anything else never.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / MANIFEST).is_file():
        raise ExportError(
            f"{folder} already exists and is not a bundle. Name a folder that is new or empty."
        )
    if not force:
        raise ExportError(f"{folder} already exists. Pass --force to replace it.")


def _recover(folder: Path) -> None:
    """Clear the staging folders of killed exports to a folder."""
    for staging in folder.parent.glob(f"{glob.escape(_prefix(folder))}*"):
        if _is_abandoned(staging):
            _clear(staging, folder)


def _clear(staging: Path, folder: Path) -> None:
    """Remove a staging folder.

    The old bundle in it is restored first if no new one replaced it.
    """
    old = staging / "old"
    if old.exists() and not folder.exists():
        try:
            old.rename(folder)
        except OSError as error:
            raise ExportError(
                f"Cannot put {old} back at {folder}: {error.strerror}. Rename it yourself."
            ) from error
    shutil.rmtree(staging, ignore_errors=True)


def _prefix(folder: Path) -> str:
    return f".{folder.name}.exporting-"


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder.

    The system releases the lock when the process ends, even if it is killed.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _is_abandoned(staging: Path) -> bool:
    """Return whether the process of a staging folder has ended: its lock is free, or, without
    locks, the folder is old.
    """
    if fcntl is not None:
        descriptor = os.open(staging, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
        else:
            return True
        finally:
            os.close(descriptor)
    return time.time() - staging.stat().st_mtime > _ABANDONED_AFTER


@contextlib.contextmanager
def _export_errors(target: Path) -> Iterator[None]:
    """Turn an OSError into an ExportError."""
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"Cannot put a bundle at {target}: {error.strerror}. Name another folder."
        ) from error
