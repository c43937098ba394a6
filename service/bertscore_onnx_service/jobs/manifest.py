"""The folder of a job: `_manifest.json` describes the job and its result, and only one job may write there."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.errors import InputError, json_fault
from bertscore_onnx.files import unwritable, write_whole
from bertscore_onnx_service.jobs.rows import Settings

MANIFEST = "_manifest.json"
DOCUMENT_COUNTS = "_document_counts.json"

_log = logging.getLogger(__name__)

_TEMPORARY = (".part-", "..part-", f".{MANIFEST}-", f".{DOCUMENT_COUNTS}-")
"""The beginnings of the names of files that are being written."""


class InputRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An input file."""

    file: str
    bytes: int
    rows: int
    sha256: str


class PartRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of scores."""

    file: str
    rows: int
    failures: int | None = None
    """The number of rows without scores; None until it is complete."""

    sha256: str | None = None
    """The digest of the file; None until it is complete."""

    truncated: int | UnsetType = UNSET
    """The number of rows with a text that was truncated; not in the manifest for each part."""

    sums: tuple[float, float, float] | UnsetType = UNSET
    """The sums of precision, recall and F1 over the rows that have scores; not in the manifest."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job, at its beginning or complete; equal jobs have equal bytes."""

    format: Literal["bertscore-onnx job 2"] = "bertscore-onnx job 2"
    signature: str | None = None
    """The signature of the scores; None until it is known, if idf weights come from the inputs."""

    provider: str | None = None
    """The ONNX Runtime execution provider that ran the model."""

    document_counts: str | None = None
    """The SHA-256 of the file of document counts, if idf weights come from the inputs; None until it is known."""

    settings: Settings
    rows: int
    failures: int | None = None
    truncated: int | None = None
    """The number of rows with a text that was truncated; None until it is complete."""

    mean: dict[str, float] | None = None
    """The means of precision, recall and F1 over the rows that have scores."""

    complete: bool = False
    inputs: tuple[InputRecord, ...]
    parts: tuple[PartRecord, ...]

    def write(self, folder: Path) -> None:
        """Write it into a folder, one input and one part per line, and the digest of all this in the last one."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        lines = ",\n".join(f"{_encoded(name)}: {_block(value)}" for name, value in fields.items())
        content = f"{{\n{lines}".encode()
        write_whole(folder / MANIFEST, content + _ending(content))

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """Read the manifest of a folder, if there is one; raise InputError if it is not that of a job, or damaged."""
        file = folder / MANIFEST
        try:
            written = file.read_bytes()
            content = written[: written.rfind(_ENDING)]
            if written == content + _ending(content):
                return msgspec.json.decode(content + b"}", type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(
                f"{file} is not the manifest of a job ({json_fault(error)}). Write to another folder."
            ) from error
        if b'"bertscore-onnx job 1"' in written:
            raise InputError(
                f"{file} is of an earlier version, which recorded no digests, so the scores cannot be checked. Score "
                "the inputs again into another folder."
            )
        if written and b'"bertscore-onnx job ' not in written and b'"part-00000-00000.parquet"' not in written:
            raise InputError(f"{file} is not the manifest of a job. Write to another folder.")
        raise DamagedManifestError(f"{file} {_HAS_CHANGED}")

    def check_same(self, other: "Manifest", folder: Path) -> None:
        """Raise InputError, with the differences, if the manifest that the folder has is not of the same job.

        Signatures that are not known yet do not count.
        """
        differences = [*_differences(self, other)]
        if differences:
            raise InputError(
                f"{folder} has the scores of another job: {'; '.join(differences)}. Write to another folder, or give "
                "the inputs and options of that job to resume it."
            )


def _differences(new: Manifest, old: Manifest) -> Iterator[str]:
    for field, name in zip(Settings.__struct_fields__, Settings.__struct_encode_fields__, strict=True):
        before, now = getattr(old.settings, field), getattr(new.settings, field)
        if before != now:
            yield f"{name} was {_shown(before)} and is {_shown(now)}"
    for name in ("signature", "provider"):
        before, now = getattr(old, name), getattr(new, name)
        if None not in (before, now) and before != now:
            yield f"the {name} was {before} and is {now}"
    if len(old.inputs) != len(new.inputs):
        yield f"there were {len(old.inputs):,} inputs and are {len(new.inputs):,}"
    else:
        for before, now in zip(old.inputs, new.inputs, strict=True):
            if before != now:
                is_other = before.file != now.file
                yield f"an input was {before.file} and is {now.file}" if is_other else f"{now.file} has changed"
                return


def _shown(value: object) -> str:
    return "not given" if value is None else str(value)


_ENDING = b',\n"sha256": "'
"""The beginning of the last line of a manifest, before the SHA-256 of the lines above."""


def _ending(content: bytes) -> bytes:
    return _ENDING + hashlib.sha256(content).hexdigest().encode() + b'"\n}\n'


class DamagedManifestError(InputError):
    """The manifest is that of a job, but some of its bytes have changed."""


_HAS_CHANGED = "has changed since the job wrote it"


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _block(value: object) -> str:
    if not isinstance(value, list | tuple):
        return _encoded(value)
    return "[\n" + ",\n".join(f"  {_encoded(item)}" for item in value) + "\n]"


@contextmanager
def lock_folder(folder: Path) -> Iterator[bool]:
    """Make a folder, and let no other job of this machine write into it inside the block, if True is yielded.

    InputError is raised if it cannot be made, or if another job writes into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        import fcntl
    except ImportError:  # on Windows
        yield False
        return
    descriptor, is_locked = os.open(folder, os.O_RDONLY), True
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"Another job writes to {folder} now. Wait for it, or write to another folder.") from error
        except OSError:  # some network file systems lock no folders
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)  # which unlocks it, as the end of the process does


def check_free(folder: Path, manifest: Manifest, *, is_locked: bool) -> Manifest | None:
    """Return the manifest of an earlier run of the same job, if the folder has one and it is not damaged.

    InputError is raised if the folder holds anything else, or the scores of another job. One that left no scores does
    not count, if the folder is locked, so that it no longer runs.
    """
    own = {part.file for part in manifest.parts}
    _check_files(folder, own)
    try:
        earlier = Manifest.read(folder)
    except DamagedManifestError as error:
        _log.warning("%s; it is written again.", error)
        earlier = None
    if is_locked and earlier and any(_differences(manifest, earlier)) and not _has_scores(folder):
        earlier = None
    if earlier is not None:
        manifest.check_same(earlier, folder)
    others = _others(folder, own if (folder / MANIFEST).exists() else set())
    if others:
        raise InputError(
            f"{folder} holds {others[0]}, which is not of this job. Write to an empty folder or a new one, so that it "
            "holds nothing but these scores."
        )
    return earlier


def _has_scores(folder: Path) -> bool:
    """Return whether a folder has a part, or the saved scores of an unfinished one."""
    return any(True for pattern in ("part-*.parquet", ".part-*.scores") for _ in folder.glob(pattern))


def _check_files(folder: Path, own: Set[str]) -> None:
    """Raise InputError if something in the place of a job's file is not a file: reading a pipe would never end."""
    with os.scandir(folder) as entries:
        for entry in entries:
            is_own = entry.name in (MANIFEST, DOCUMENT_COUNTS) or entry.name in own
            if is_own and not entry.is_file():
                raise InputError(f"{entry.path} is not a file. Remove it, or write to another folder.")


def _others(folder: Path, own: Set[str]) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.name[0] not in "._" and file.name not in own)


def find_faults(folder: Path, manifest: Manifest) -> list[str]:
    """Return a sentence for each file that is not the one whose digest is in a manifest; each is read as a stream."""
    digests = {part.file: part.sha256 for part in manifest.parts}
    if manifest.document_counts is not None:
        digests[DOCUMENT_COUNTS] = manifest.document_counts

    def fault_of(name: str) -> str:
        path = folder / name
        if not path.is_file():
            return f"{path} {'is not a file' if os.path.lexists(path) else 'is missing'}"
        try:
            return "" if file_digest(path) == digests[name] else f"{path} {_HAS_CHANGED}"
        except OSError as error:
            return f"{path} cannot be read ({error.strerror})"

    return [*filter(None, in_threads(fault_of, list(digests)))]


def verify_folder(folder: Path) -> list[str]:
    """Return a sentence for each file in the folder of a job that is not as a complete job leaves it."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}; expected that of a job.")
    _check_files(folder, set())
    try:
        manifest = Manifest.read(folder)
    except DamagedManifestError as error:
        return [str(error)]
    if manifest is None:
        raise InputError(f"{folder} has no {MANIFEST}; expected the folder of a job.")
    others = [f"{folder / name} is not of this job" for name in _others(folder, {part.file for part in manifest.parts})]
    if not manifest.complete:
        return [f"{folder} has a job that is not complete", *others]
    return [*find_faults(folder, manifest), *others]


READERS = 8
"""How many files are read at a time; if they are on remote storage, that is mostly waiting."""

_Item = TypeVar("_Item")
_Outcome = TypeVar("_Outcome")


def in_threads(read: Callable[[_Item], _Outcome], items: Sequence[_Item]) -> Iterator[_Outcome]:
    """Yield the outcomes of a function that reads files, in the order of its items."""
    readers = ThreadPoolExecutor(READERS)
    try:
        yield from readers.map(read, items)
    finally:
        readers.shutdown(cancel_futures=True)


def remove_temporary(folder: Path) -> None:
    """Remove the unfinished files that killed runs left."""
    for file in folder.iterdir():
        if file.name.startswith(_TEMPORARY):
            with suppress(OSError):
                file.unlink()
