"""The folder of a job's output: whether it can be written to, and what of it is there already."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bertscore_onnx.distributed.job.manifest import MANIFEST, Manifest
from bertscore_onnx.distributed.job.part_files import TEMPORARY
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import unwritable

DOCUMENT_COUNTS = "_document_counts.json"

_TEMPORARY = (TEMPORARY, f".{MANIFEST}-", f".{DOCUMENT_COUNTS}-")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make a folder, and let no other job of this machine write into it for as long as the block lasts.

    Raises:
        InputError: it cannot be made, or another job writes into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    with _locked(folder):
        yield


def check_free(folder: Path, manifest: Manifest) -> Manifest | None:
    """Return the manifest of an earlier run of the same job, if a folder has one.

    Args:
        folder: the folder.
        manifest: that of the job.

    Raises:
        InputError: it holds something else, or the scores of another job.
    """
    earlier = Manifest.read(folder)
    if earlier is not None:
        manifest.check_same(earlier, folder)
    own = set() if earlier is None else {part.file for part in manifest.parts}
    others = sorted(file.name for file in folder.iterdir() if file.name[0] not in "._" and file.name not in own)
    if others:
        raise InputError(
            f"{folder} holds {others[0]}, which is not of this job. Write to an empty folder or a new one, so that it "
            "holds nothing but these scores."
        )
    return earlier


def remove_temporary(folder: Path) -> None:
    """Remove what runs that were killed left of files they were writing."""
    for file in folder.iterdir():
        if file.name.startswith(_TEMPORARY):
            with suppress(OSError):
                file.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # on Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"Another job writes to {folder} now. Wait for it, or write to another folder.") from error
        except OSError:  # some network file systems lock no folders
            pass
        yield
    finally:
        os.close(descriptor)  # which unlocks it, as the end of the process does
