"""Puts a bundle at its place: checked before the work, swapped when all is well, recovered after a crash."""

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

_LEFT_AFTER = 24 * 3600
"""Seconds after which a staging folder is taken for a leftover where no lock can tell."""


@contextlib.contextmanager
def staging_folder(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` if all goes well, and is removed otherwise.

    A bundle that is replaced is renamed first and deleted last. Until the new one stands in its place, any failure puts
    it back; if the process is killed in between, the next export to the same place does.
    """
    with _telling(target):
        place = _place_of(target)
        made = [folder for folder in place.parents if not folder.exists()]
        place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _telling(target):
            _recover(place)
            _check_free(place, force=force)
            staging = Path(tempfile.mkdtemp(prefix=_prefix(place), dir=place.parent))
        try:
            with _locked(staging):
                new = staging / "new"
                new.mkdir()
                yield new
                with _telling(target):
                    _check_free(place, force=force)
                    if place.exists():
                        place.rename(staging / "old")
                    new.rename(place)
        finally:
            _clear(staging, place)
    finally:
        for folder in made:  # those that hold nothing
            with contextlib.suppress(OSError):
                folder.rmdir()


def _place_of(target: Path) -> Path:
    """Return where `target` leads to, since a rename would replace a link."""
    place = Path(os.path.realpath(target))
    if target.is_symlink() and not place.exists():
        raise ExportError(f"{target} is a link to {place}, where nothing is. Remove the link, or name another folder.")
    if os.path.ismount(place):
        raise ExportError(f"{target} is a mount point, which no bundle can take the place of. Name a folder inside it.")
    return place


def _check_free(place: Path, *, force: bool) -> None:
    """Raise an ExportError where something stands that must not be replaced: all but a bundle, even by force."""
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    if not (place / MANIFEST).is_file():
        raise ExportError(f"{place} is there already and is no bundle. Name a folder that is new or empty.")
    if not force:
        raise ExportError(f"{place} is there already. Pass --force to replace it.")


def _recover(place: Path) -> None:
    """Clear what exports to this place left when they were killed."""
    for staging in place.parent.glob(f"{glob.escape(_prefix(place))}*"):
        if _is_left(staging):
            _clear(staging, place)


def _clear(staging: Path, place: Path) -> None:
    """Remove a staging folder, once the bundle that it may have taken from the place is back there or replaced."""
    old = staging / "old"
    if old.exists() and not place.exists():
        try:
            old.rename(place)
        except OSError as error:
            raise ExportError(f"Cannot put {old} back at {place}: {error.strerror}. Rename it yourself.") from error
    shutil.rmtree(staging, ignore_errors=True)


def _prefix(place: Path) -> str:
    return f".{place.name}.exporting-"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; the system takes it back when the process ends, in whatever way."""
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


def _is_left(staging: Path) -> bool:
    """Tell whether the process that made a staging folder is gone: its lock is free, or it is old."""
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
    return time.time() - staging.stat().st_mtime > _LEFT_AFTER


@contextlib.contextmanager
def _telling(target: Path) -> Iterator[None]:
    """Tell what the system refuses in an ExportError."""
    try:
        yield
    except OSError as error:
        raise ExportError(f"Cannot put a bundle at {target}: {error.strerror}. Name another folder.") from error
