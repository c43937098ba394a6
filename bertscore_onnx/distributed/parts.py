"""Parts of the input: consecutive rows of one file, whose scores go into one file."""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bertscore_onnx.distributed.rows import InputTable, RowBatch, TableSettings, changed
from bertscore_onnx.distributed.rows import read_part_rows as read_rows
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import unwritable, write_whole

if TYPE_CHECKING:
    import pyarrow


PART_ROWS = 16_384
"""The rows of a part, where nothing else is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of a file."""

    file: str
    """The name of the file with its scores."""

    table: InputTable
    """What the rows are of."""

    digest: str
    """That of the input file."""

    start: int
    """The number of the first row in the input file, from 0."""

    rows: int

    @property
    def stop(self) -> int:
        """The number after that of the last row."""
        return self.start + self.rows


def cut_parts(tables: Sequence[InputTable], digests: Sequence[str], part_rows: int) -> list[Part]:
    """Return the parts of all files, one at least for each.

    Args:
        tables: the files.
        digests: that of each.
        part_rows: the rows of a part, except the last one of a file.
    """
    return [
        Part(f"part-{number:05}-{index:05}.parquet", table, digest, start, min(part_rows, table.rows - start))
        for number, (table, digest) in enumerate(zip(tables, digests, strict=True))
        for index, start in enumerate(range(0, max(1, table.rows), part_rows))
    ]


def read_parts(parts: Sequence[Part], settings: TableSettings) -> Iterator[tuple[Part, RowBatch]]:
    """Yield the rows of parts in order, each file read once for those parts of it that stand together.

    Where batches of a part are cut depends on its rows alone; a part without rows comes with one empty batch.

    Raises:
        InputError: a file is damaged, or has changed since it was inspected.
    """
    for _, some in groupby(parts, key=lambda part: part.table.path):
        of_table = list(some)
        table = of_table[0].table
        yield from _cut(of_table, read_rows(table, settings, of_table[0].start, of_table[-1].stop))


def _cut(parts: Sequence[Part], batches: Iterator[RowBatch]) -> Iterator[tuple[Part, RowBatch]]:
    batch = RowBatch.without_rows(parts[0].table)
    for part in parts:
        if not part.rows:
            yield part, batch
        reached = part.start
        while reached < part.stop:
            while batch.stop <= reached:
                following = next(batches, None)
                if following is None:
                    raise changed(part.table)
                batch = following
            yield part, batch.between(reached, part.stop)
            reached = min(batch.stop, part.stop)


# Files with the scores of a part: written under another name until they are whole, and what their end says.


ROW_GROUP_BYTES = 64_000_000
"""About how large a row group becomes in memory before it is written; most parts are smaller and have one."""

TEMPORARY = ".part-"
"""How names of files begin that are being written."""

_METADATA = "bertscore_onnx.part"


@dataclass(frozen=True, slots=True)
class PartScores:
    """What is known of a part that is complete."""

    file: str
    """The name of its file."""

    rows: int
    failures: int
    """How many of the rows have no scores."""

    sums: tuple[float, float, float]
    """The sums of precision, recall and F1 over the rows that have scores."""


class PartWriter:
    """Writes the file of one part, which is there whole when the last row was added, or not at all."""

    def __init__(self, folder: str, part: Part, job: str) -> None:
        """Take what is to be written; no file is made yet.

        Args:
            folder: where to.
            part: the part.
            job: what tells the scores from those made otherwise.
        """
        self._folder = Path(folder)
        self._part = part
        self._job = job
        self._temporary = self._folder / f".{part.file}-{uuid.uuid4().hex[:12]}"
        self._writer: Any = None
        self._waiting: list[pyarrow.RecordBatch] = []
        self._waiting_bytes = 0
        self._num_rows = 0
        self._num_failures = 0
        self._sums: list[list[float]] = [[], [], []]

    def add(self, scored: "pyarrow.RecordBatch") -> PartScores | None:
        """Add rows with their scores; return the part once it is complete.

        Raises:
            InputError: the file cannot be written.
        """
        self._count(scored)
        self._waiting.append(scored)
        self._waiting_bytes += scored.nbytes
        try:
            if self._num_rows == self._part.rows:
                return self._finish()
            if self._waiting_bytes >= ROW_GROUP_BYTES:
                self._write_row_group()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise InputError(
                f"Cannot write {str(self._folder / self._part.file)!r} ({reason}). Parts that are "
                "complete stay as they are; started again, the job does those that are missing."
            ) from error
        return None

    def discard(self) -> None:
        """Remove what was written of a part that was not completed."""
        with suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)

    def _count(self, scored: "pyarrow.RecordBatch") -> None:
        self._num_rows += scored.num_rows
        for sums, name in zip(self._sums, ("precision", "recall", "f1"), strict=True):
            sums.append(fsum(scored.column(name).drop_null().to_pylist()))
        self._num_failures += scored.column("f1").null_count

    def _write_row_group(self) -> None:
        import pyarrow
        from pyarrow import parquet

        rows = pyarrow.Table.from_batches(self._waiting)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._temporary, rows.schema, compression="zstd")
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._waiting, self._waiting_bytes = [], 0

    def _finish(self) -> PartScores:
        if self._waiting:
            self._write_row_group()
        sums = (fsum(self._sums[0]), fsum(self._sums[1]), fsum(self._sums[2]))
        scores = PartScores(self._part.file, self._num_rows, self._num_failures, sums)
        identity = {**_identity(self._part, self._job), **asdict(scores)}
        self._writer.add_key_value_metadata({_METADATA: json.dumps(identity)})
        self._writer.close()
        os.replace(self._temporary, self._folder / self._part.file)
        return scores


def complete_part(folder: str, part: Part, job: str) -> PartScores | None:
    """Return what the file of a part says at its end; None where it is missing or damaged.

    Args:
        folder: where it is.
        part: the part.
        job: what tells the scores from those made otherwise.

    Raises:
        InputError: it has scores of something else.
    """
    import pyarrow
    from pyarrow import parquet

    path = os.path.join(folder, part.file)
    if not os.path.exists(path):
        return None
    try:
        metadata = parquet.read_metadata(path).metadata or {}
    except (pyarrow.ArrowException, OSError):
        return None
    said = json.loads(metadata.get(_METADATA.encode(), b"{}"))
    if any(said.get(key) != value for key, value in _identity(part, job).items()):
        raise InputError(
            f"{path} has other scores than this job would write there. Write to another folder, or remove the file."
        )
    return PartScores(part.file, said["rows"], said["failures"], tuple(said["sums"]))


def _identity(part: Part, job: str) -> dict[str, object]:
    """Return what a part and the scores of it are told from others by."""
    return {"job": job, "input": part.digest, "start": part.start, "rows": part.rows}


# `_manifest.json`: what a job is of, and what came out; equal jobs give equal bytes.


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


# The folder of a job's output: whether it can be written to, and what of it is there already.


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
