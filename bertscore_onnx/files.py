"""Writes files atomically: readers never see a part of one, and a failure leaves the old one."""

import os
import shutil
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
        part.write_bytes(data)
        if path.exists():
            shutil.copymode(path, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def unwritable(file: str | PathLike[str], error: OSError) -> InputError:
    """Return the InputError for a file that cannot be written, with the reason."""
    return InputError(
        f"Cannot write {os.fspath(file)!r} ({error.strerror}). Check the name, its folder and its permissions."
    )
