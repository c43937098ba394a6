"""SHA-256 of files, cached by size and times so that opening a bundle need not read it twice.

The cache is `digests.json` in the store's folder. Since who writes it decides which files are not read again, it counts
only where both belong to this user and nobody else can write them. Where it cannot be used, files are read each time.
"""

import hashlib
import json
import logging
import os
import stat
import tempfile
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from bertscore_onnx.bundle.store import store_root
from bertscore_onnx.errors import BundleNotFoundError

_log = logging.getLogger(__name__)


class FileStamp(NamedTuple):
    """What changes with the content of a file, as the system sees it."""

    size: int
    modified: int
    """Nanoseconds since the epoch."""

    changed: int
    """Likewise; the system's own time, which a program that writes a file cannot set back."""

    inode: int


def file_stamp(path: str | PathLike[str]) -> FileStamp:
    """Return the stamp of a file."""
    status = os.stat(path)
    return FileStamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_digest(path: Path, *, read_again: bool = False) -> str:
    """Return the SHA-256 of a file, from the cache where its stamp is the same.

    Args:
        path: the file.
        read_again: read the file in any case.
    """
    path = path.resolve()
    stamp = file_stamp(path)
    cache = _cache_file()
    known = _load(cache) if cache is not None else {}
    entry = known.get(str(path))
    if not read_again and entry is not None and entry[:-1] == [*stamp]:
        return str(entry[-1])
    digest = file_digest(path)
    if cache is not None:
        _store(cache, {**known, str(path): [*stamp, digest]})
    return digest


def _cache_file() -> Path | None:
    """Return the cache's place; None where there is no home folder, or others decide what is in it."""
    try:
        folder = store_root()
    except BundleNotFoundError:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "digests.json" if _is_own(folder.stat(), stat.S_IWOTH) else None
    except OSError as error:
        _log.debug("cannot cache digests in %s: %s", folder, error)
        return None


def _is_own(status: os.stat_result, writable_by_others: int) -> bool:
    """Say whether a file is this user's and has none of these permissions; not known of, on Windows, it is."""
    return not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & writable_by_others)


def _load(cache: Path) -> dict[str, list[int | str]]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe would make it wait
    try:
        with os.fdopen(os.open(cache, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_own(status, stat.S_IWGRP | stat.S_IWOTH):
                return {}
            known = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    fields = len(FileStamp._fields) + 1
    return {path: entry for path, entry in known.items() if isinstance(entry, list) and len(entry) == fields}


def _store(cache: Path, known: dict[str, list[int | str]]) -> None:
    known = {path: entry for path, entry in known.items() if os.path.exists(path)}
    try:
        descriptor, temporary = tempfile.mkstemp(dir=cache.parent, prefix=".digests-")  # only this user may read it
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(known, file)
            os.replace(temporary, cache)
        except BaseException:
            Path(temporary).unlink()
            raise
    except OSError as error:
        _log.debug("cannot cache digests in %s: %s", cache, error)
