"""SHA-256 of files, cached by size and times so that opening a bundle need not read it twice."""

import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path

from bertscore_onnx.bundle.store import store_root

_log = logging.getLogger(__name__)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_digest(path: Path, *, read_again: bool = False) -> str:
    """Return the SHA-256 of a file, from the cache where its size, modification and change time are the same.

    The change time is the system's own; a program that writes a file cannot set it back. The cache is `digests.json` in
    the store's folder. Where that cannot be read or written, files are read each time.

    Args:
        path: the file.
        read_again: read the file in any case.
    """
    path = path.resolve()
    status = path.stat()
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    known = _load()
    entry = known.get(str(path))
    if not read_again and entry is not None and entry[:3] == stamp:
        return str(entry[3])
    digest = file_digest(path)
    _store({**known, str(path): [*stamp, digest]})
    return digest


def _cache_file() -> Path:
    return store_root() / "digests.json"


def _load() -> dict[str, list[int | str]]:
    try:
        known = json.loads(_cache_file().read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {path: entry for path, entry in known.items() if isinstance(entry, list) and len(entry) == 4}


def _store(known: dict[str, list[int | str]]) -> None:
    known = {path: entry for path, entry in known.items() if os.path.exists(path)}
    cache = _cache_file()
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache.parent, prefix=".digests-", delete=False) as file:
            json.dump(known, file)
        os.replace(file.name, cache)
    except OSError as error:
        _log.debug("cannot cache digests in %s: %s", cache, error)
