"""Reads regular files within a bound, and writes files atomically.

After a crash there is the old file or the new one.
"""

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom, BufferedReader, BufferedWriter, FileIO
from os import PathLike
from pathlib import Path

from bertscore_onnx.errors import InputError, InputTypeError

StrPath = str | PathLike[str]


def path_text(path: StrPath, name: str) -> str:
    """Return a path, or the name of a model, as text.

    Raise an InputTypeError, with the argument's name, for others.
    """
    text = os.fspath(path) if isinstance(path, PathLike) else path
    if not isinstance(text, str):
        raise InputTypeError(f"{name} is {path!r}; expected a string or a path.")
    return text


def open_regular(file: StrPath) -> BufferedReader:
    """Open a regular file.

    Raise OSError for anything else, since a pipe may block, and a device may have no end.
    """
    opened = open(file, "rb", opener=_without_waiting)  # noqa: SIM115 -- the caller closes it
    if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        return opened
    opened.close()
    raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(file))


def read_regular(file: StrPath, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raise OSError if it is not regular, or larger than the bound.
    """
    with open_regular(file) as opened:
        return _read(opened, max_bytes)


def read_named(file: StrPath, max_bytes: int) -> bytes:
    """Return the content of a file that a user named, which may be a pipe.

    Raise OSError beyond the bound.
    """
    with Path(file).open("rb") as opened:
        return _read(opened, max_bytes)


def _read(opened: BufferedReader, max_bytes: int) -> bytes:
    if (
        os.fstat(opened.fileno()).st_size <= max_bytes
        and len(content := opened.read(max_bytes + 1)) <= max_bytes
    ):
        return content
    raise OSError(errno.EFBIG, f"it has more than the {max_bytes:,} bytes that are read")


def _without_waiting(file: str, flags: int) -> int:
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))


def write_whole(file: StrPath, content: str | bytes) -> None:
    """Write a file in one step, replacing an existing one.

    Raise an InputError if it cannot be written.
    """
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    with write_errors(file):
        device = open_device(file)
        if device is None:
            replace_whole(Path(os.path.realpath(file)), data)
        else:
            with device, BufferedWriter(device) as writer:
                writer.write(data)


def open_device(file: StrPath) -> FileIO | None:
    """Open a pipe, a device, or an open file by its descriptor, to write.

    None for other files. A descriptor, such as /dev/fd/3, is used as it is, not opened again: a
    redirected file keeps what others write there. OSError is raised if it cannot be opened.
    """
    name = os.fspath(file)
    descriptor = _descriptor(name)
    if descriptor is not None:
        return FileIO(os.dup(descriptor), "w")
    return FileIO(name, "w") if os.path.exists(name) and not os.path.isfile(name) else None


def is_stdout(name: str) -> bool:
    """Return whether a name refers to standard output."""
    return name == "-" or _descriptor(name) == 1


def _descriptor(name: str) -> int | None:
    """Return the descriptor that a name is of; None for other names."""
    standard = {"/dev/stdout": 1, "/dev/stderr": 2}
    numbered = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name)
    return standard.get(name) if numbered is None else int(numbered[1])


def replace_whole(path: Path, data: bytes) -> None:
    """Write a file in one step; raise OSError on failure.

    It has the permissions of the file that it replaces, if any.
    """
    part = path.with_name(f".{path.name[:50]}-{os.getpid()}")
    try:
        with open_new(part) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(part, path)
    finally:
        part.unlink(missing_ok=True)


def open_new(path: Path) -> BufferedRandom:
    """Open a new file in the place of an earlier one.

    That is of a run that was killed; a link there is not followed.
    """
    path.unlink(missing_ok=True)
    return path.open("x+b")


def put_in_place(part: Path, path: Path) -> None:
    """Give a file that is on the disk another name.

    It gets the permissions of the file that it replaces, if any.
    """
    if path.exists():
        shutil.copymode(path, part)
    os.replace(part, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names of a folder's files on the disk.

    Otherwise a crash may undo a rename.
    """
    with suppress(OSError):  # Windows and some network file systems do not sync folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def write_errors(file: StrPath) -> Iterator[None]:
    """Translate an OSError to the InputError for a file that cannot be written.

    It has the reason.
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Cannot write {os.fspath(file)!r} ({error.strerror}). Check the name, its folder and "
            "its permissions."
        ) from error
