"""`_manifest.json`: what a job is of, and what came out; equal jobs give equal bytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from bertscore_onnx.errors import InputError
from bertscore_onnx.files import write_whole

MANIFEST = "_manifest.json"


class InputRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An input file."""

    file: str
    bytes: int
    rows: int
    sha256: str


class PartRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of scores; the number of failures is known once the job is complete."""

    file: str
    rows: int
    failures: int | None = None


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What decides what is written, beside the inputs and the signature."""

    candidate: str | None
    reference: str | None
    columns: tuple[str, ...] | None
    header: bool
    quotes: bool
    errors: Literal["raise", "null"]
    part_rows: int
    idf: Literal["no", "inputs", "given"]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job, at its beginning or complete."""

    format: Literal["bertscore-onnx job 1"] = "bertscore-onnx job 1"
    signature: str | None = None
    """That of the scores; None until it is known, where idf weights come from the inputs."""

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
        """Write it into a folder, one input and one part a line; raises InputError where that cannot be done."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        lines = ",\n".join(f"{_encoded(name)}: {_block(value)}" for name, value in fields.items())
        write_whole(folder / MANIFEST, f"{{\n{lines}\n}}\n")

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """Read that of a folder, if there is one.

        Raises:
            InputError: it is not that of a job.
        """
        file = folder / MANIFEST
        try:
            return msgspec.json.decode(file.read_bytes(), type=cls)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(f"{file} is not the manifest of a job ({error}). Write to another folder.") from error

    def check_same(self, other: "Manifest", folder: Path) -> None:
        """Raise an InputError, with what differs, where another manifest is not of the same job.

        Args:
            other: what was found in the folder; where a signature is not known yet, it is no matter.
            folder: the folder.
        """
        differences = [*_differences(self, other)]
        if differences:
            raise InputError(
                f"{folder} has the scores of another job: {'; '.join(differences)}. Write to another folder, or give "
                "the inputs and options of that job to go on with it."
            )


def _differences(new: Manifest, old: Manifest) -> Iterator[str]:
    for name in Settings.__struct_fields__:
        before, now = getattr(old.settings, name), getattr(new.settings, name)
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
    return "[\n" + ",\n".join(f"  {_encoded(one)}" for one in value) + "\n]"
