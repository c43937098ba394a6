"""The folder of bundles, and the default model.

The folder is `$BERTSCORE_ONNX_HOME`, by default the platform's cache folder.
"""

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertscore_onnx.errors import BundleNotFoundError
from bertscore_onnx.files import StrPath

_log = logging.getLogger(__name__)

MANIFEST = "bertscore.json"
"""The file that makes a folder a bundle."""

TokenizerMode = Literal["slow", "fast"]
Precision = Literal["fp32", "fp16", "int8"]
Exporter = Literal["torch", "transformers", "optimum"]


@dataclass(frozen=True, slots=True)
class Variant:
    """Identifies one of a model's bundles."""

    num_layers: int | None
    """The layer; None for a bundle of all layers."""

    tokenizer_mode: TokenizerMode = "slow"
    """Which of the two tokenizers of transformers the ids match."""

    precision: Precision = "fp32"
    """The compute precision of the graph."""

    @property
    def folder_name(self) -> str:
        """The name of its folder."""
        layers = "all-layers" if self.num_layers is None else f"layer-{self.num_layers}"
        return f"{layers}-{self.tokenizer_mode}-{self.precision}"


MODEL_VARIABLE = "BERTSCORE_ONNX_MODEL"
"""The environment variable that names the model to use where none is given."""


def default_model() -> str | None:
    """Return the model that the environment names; None if it names none."""
    return os.environ.get(MODEL_VARIABLE) or None


def store_root() -> Path:
    """Return the folder of exported bundles, which need not exist.

    Raises a BundleNotFoundError if the user has no home folder and none is named.
    """
    home = os.environ.get("BERTSCORE_ONNX_HOME")
    try:
        if home:
            root = Path(home).expanduser()
        else:
            import platformdirs  # costs start-up time and is needed only here

            root = platformdirs.user_cache_path("bertscore-onnx", appauthor=False)
    except RuntimeError:
        root = None
    if root is None or root.parts[0] == "~":  # some versions of platformdirs leave it as it is
        raise BundleNotFoundError(
            "There is no folder of bundles, since this user has no home folder. Give the path of "
            "a bundle, or set BERTSCORE_ONNX_HOME to a folder."
        )
    return root


def bundle_folder(model_id: str, variant: Variant) -> Path:
    """Return the folder of one bundle: `bundles/MODEL/VARIANT` in the home folder."""
    return _model_folder(model_id) / variant.folder_name


def stored_bundles(model_id: str | None = None, variants: str = "*") -> Iterator[Path]:
    """Yield the folders of the stored bundles of one model, or of all.

    Their names match a pattern; they are sorted.
    """
    pattern = f"{variants}/{MANIFEST}" if model_id else f"*/{variants}/{MANIFEST}"
    try:
        root = _model_folder(model_id) if model_id else store_root() / "bundles"
    except BundleNotFoundError:
        return
    if not os.path.isdir(root):  # unlike Path, it accepts any name
        return
    yield from sorted(
        manifest.parent
        for manifest in root.glob(pattern)
        if not manifest.parent.name.startswith(".")
    )


def _model_folder(model_id: str) -> Path:
    return store_root() / "bundles" / model_id.replace("/", "--")


# SHA-256 of files, cached by size and times so that opening a bundle need not read it twice. The
# cache is the file `digests.json` in the home folder. Anyone who can write it can prevent files
# from being checked, so it is used only if file and folder belong to this user and nobody else can
# write them. Otherwise files are read each time.

FileStamp = tuple[int, ...]
"""A file's size, modification and change times in nanoseconds, and inode, which differ if its
content does. Programs can set the modification time, but not the change time."""


def file_stamp(path: StrPath) -> FileStamp:
    """Return the stamp of a file."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_digest(path: Path, *, read_again: bool = False) -> str:
    """Return the SHA-256 of a file, from the cache if its stamp is unchanged, or read again."""
    path = path.resolve()
    stamp = file_stamp(path)
    cache = _cache_file()
    entries = _load(cache) if cache is not None else {}
    entry = entries.get(str(path))
    if not read_again and entry is not None and entry[:-1] == list(stamp):
        return str(entry[-1])
    digest = file_digest(path)
    if cache is not None:
        _save(cache, {**entries, str(path): [*stamp, digest]})
    return digest


def _cache_file() -> Path | None:
    """Return the path of the cache; None without a home folder, or if others can write to it."""
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
    """Return whether a file is this user's and lacks permission bits; always True on Windows."""
    return not hasattr(os, "geteuid") or (
        status.st_uid == os.geteuid() and not status.st_mode & writable_by_others
    )


def _load(cache: Path) -> dict[str, list[int | str]]:
    import json  # costs start-up time

    # do not wait for a pipe
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(cache, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_own(status, stat.S_IWGRP | stat.S_IWOTH):
                return {}
            entries = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(entries, dict):
        return {}
    return {path: entry for path, entry in entries.items() if isinstance(entry, list) and entry}


def _save(cache: Path, entries: dict[str, list[int | str]]) -> None:
    import json

    entries = {path: entry for path, entry in entries.items() if os.path.exists(path)}
    try:
        # readable by this user only
        descriptor, temporary = tempfile.mkstemp(dir=cache.parent, prefix=".digests-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(entries, file)
            os.replace(temporary, cache)
        except BaseException:
            Path(temporary).unlink()
            raise
    except OSError as error:
        _log.debug("cannot cache digests in %s: %s", cache, error)
