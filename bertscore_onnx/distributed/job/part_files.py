"""Files with the scores of a part: written under another name until they are whole, and what their end says."""

import json
import os
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertscore_onnx.distributed.job.parts import Part
from bertscore_onnx.errors import InputError

if TYPE_CHECKING:
    import pyarrow

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
