"""The folder of a job: `_manifest.json` describes the job and its result, and only one job may write there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from bertscore_onnx.distributed.rows import Settings
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import unwritable, write_whole

MANIFEST = "_manifest.json"
DOCUMENT_COUNTS = "_document_counts.json"

_TEMPORARY = (".part-", f".{MANIFEST}-", f".{DOCUMENT_COUNTS}-")
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

    sums: tuple[float, float, float] | UnsetType = UNSET
    """The sums of precision, recall and F1 over the rows that have scores; not in the manifest."""


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job, at its beginning or complete; equal jobs have equal bytes."""

    format: Literal["bertscore-onnx job 1"] = "bertscore-onnx job 1"
    signature: str | None = None
    """The signature of the scores; None until it is known, if idf weights come from the inputs."""

    provider: str | None = None
    """The ONNX Runtime execution provider that ran the model."""

    settings: Settings
    rows: int
    failures: int | None = None
    mean: dict[str, float] | None = None
    """The means of precision, recall and F1 over the rows that have scores."""

    complete: bool = False
    inputs: tuple[InputRecord, ...]
    parts: tuple[PartRecord, ...]

    def write(self, folder: Path) -> None:
        """Write it into a folder, one input and one part per line."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        lines = ",\n".join(f"{_encoded(name)}: {_block(value)}" for name, value in fields.items())
        write_whole(folder / MANIFEST, f"{{\n{lines}\n}}\n")

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """Read the manifest of a folder, if there is one; raise InputError if it is not that of a job."""
        file = folder / MANIFEST
        try:
            return msgspec.json.decode(file.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(f"{file} is not the manifest of a job ({error}). Write to another folder.") from error

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


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _block(value: object) -> str:
    if not isinstance(value, list | tuple):
        return _encoded(value)
    return "[\n" + ",\n".join(f"  {_encoded(item)}" for item in value) + "\n]"


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and let no other job of this machine write into it inside the block.

    InputError is raised if it cannot be made, or if another job writes into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
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


def check_free(folder: Path, manifest: Manifest) -> Manifest | None:
    """Return the manifest of an earlier run of the same job, if the folder has one.

    InputError is raised if the folder holds anything else, or the scores of another job.
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
    """Remove the unfinished files that killed runs left."""
    for file in folder.iterdir():
        if file.name.startswith(_TEMPORARY):
            with suppress(OSError):
                file.unlink()
