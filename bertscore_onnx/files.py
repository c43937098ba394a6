"""Writes files atomically: readers, and a machine that starts after a crash, find the old file or the new one."""

import os
import shutil
from contextlib import suppress
from os import PathLike
from pathlib import Path

from bertscore_onnx.errors import InputError


def write_whole(file: str | PathLike[str], content: str | bytes) -> None:
    """Write a file in one step, replacing an existing one; raise an InputError if it cannot be written."""
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    path = Path(os.path.realpath(file))
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        replace_whole(path, data)
    except OSError as error:
        raise unwritable(file, error) from error


def replace_whole(path: Path, data: bytes) -> None:
    """Write a file in one step, with the permissions of the file that it replaces, if any; raise OSError on failure."""
    part = path.with_name(f".{path.name[:50]}-{os.getpid()}")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        os.replace(part, path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Put the names of a folder's files on the disk; a crash may undo a rename otherwise."""
    with suppress(OSError):  # Windows and some network file systems do not sync folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def unwritable(file: str | PathLike[str], error: OSError) -> InputError:
    """Return the InputError for a file that cannot be written, with the reason."""
    return InputError(
        f"Cannot write {os.fspath(file)!r} ({error.strerror}). Check the name, its folder and its permissions."
    )
