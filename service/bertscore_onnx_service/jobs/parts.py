"""Parts of the inputs: consecutive rows of one file, whose scores go into one Parquet file."""

import hashlib
import os
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from math import fsum
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeVar

import msgspec

from bertscore_onnx.errors import BertScoreOnnxError, InputError
from bertscore_onnx.files import read_regular, replace_whole, sync_folder
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.tables.batches import BatchAdapter, adapt
from bertscore_onnx.tables.columns import SCORE_NAMES, RowReader, Rows, read_references
from bertscore_onnx_service.jobs.batches import CountBatch, ScoreBatch, description_of
from bertscore_onnx_service.jobs.manifest import PartRecord
from bertscore_onnx_service.jobs.rows import (
    InputTable,
    RawBatch,
    Settings,
    kept_batch,
    read_rows,
    values_of,
)

if TYPE_CHECKING:
    import pyarrow

PART_ROWS = 16_384
"""The default number of rows of a part."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of a file."""

    file: str
    """The name of the file with its scores."""

    table: InputTable
    start: int
    """The number of the first row in the input file, from 0."""

    rows: int

    @property
    def stop(self) -> int:
        """The number after that of the last row."""
        return self.start + self.rows


def cut_parts(tables: Sequence[InputTable], part_rows: int) -> list[Part]:
    """Return the parts of all files, at least one for each, of `part_rows` rows except the last one of a file."""
    return [
        Part(f"part-{number:05}-{index:05}.parquet", table, start, min(part_rows, table.rows - start))
        for number, table in enumerate(tables)
        for index, start in enumerate(range(0, max(1, table.rows), part_rows))
    ]


# Tasks for other processes: parts that are worth sending together.

MAX_TASK_ROWS = 65_536
"""About the most rows of a task, so that little is done again if a process is lost."""

MAX_TASK_PARTS = 1_024

TASKS_PER_WORKER = 4
"""The least number, if there are enough parts, so that all workers end at about the same time."""


def cut_tasks(parts: Sequence[Part], num_workers: int) -> list[list[Part]]:
    """Return tasks of consecutive parts; all parts of a text file are one task, since it is read from its start."""
    max_rows = min(MAX_TASK_ROWS, sum(part.rows for part in parts) // (TASKS_PER_WORKER * num_workers))
    tasks: list[list[Part]] = []
    num_rows = 0
    for part in parts:
        is_continued = bool(tasks) and tasks[-1][-1].table is part.table and part.table.format != "parquet"
        is_full = not tasks or num_rows + part.rows > max_rows or len(tasks[-1]) == MAX_TASK_PARTS
        if is_full and not is_continued:
            tasks.append([])
            num_rows = 0
        tasks[-1].append(part)
        num_rows += part.rows
    return tasks


# Work with parts, which engines do in this process or in others.

Advance = Callable[[int], object]
"""Takes the number of rows that were done since the last call."""

Result = TypeVar("Result")
Work = Callable[[Sequence[Part], Advance], Iterator[Result]]
"""Yields the results of some parts; can be pickled."""


class Engine(Protocol):
    """Does work with parts, in this process or in others."""

    def __call__(self, work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield the results of all parts, in any order; raise the errors of the work."""
        ...


def describe(score_batch: ScoreBatch, parts: Sequence[Part], advance: Advance) -> Iterator[tuple[str, str]]:
    """Yield the signature and the execution provider of the scorer in the process that scores the parts."""
    yield description_of(score_batch)


def count(
    count_batch: CountBatch, settings: Settings, parts: Sequence[Part], advance: Advance
) -> Iterator[DocumentCounts]:
    """Yield the document counts of the references of all parts together."""

    def references() -> Iterator[list[str]]:
        for part, first, batch in _read(parts, settings):
            for name in part.table.references(settings):
                yield from read_references(values_of(batch, name), name, settings.errors, part.table.name, first + 1)
            advance(len(batch))

    yield count_batch.count_texts(references())


def score(
    score_batch: ScoreBatch,
    described: tuple[str | None, str | None],
    settings: Settings,
    folder: str,
    job: str,
    parts: Sequence[Part],
    advance: Advance,
) -> Iterator[PartRecord]:
    """Score parts, and yield each once its file is complete: at once if an earlier try of the task completed it.

    Parts are scored as one stream of rows, so the model is never idle. After an error the parts before are
    complete; the scores of an unfinished part are kept, unless a row of it cannot be scored. The folder is an absolute
    path, the same on all machines. InputError is raised if the scorer of this process is not `described` as that of
    the job.
    """
    missing = []
    for part in parts:
        record = complete_part(folder, part, job)
        if record is None:
            missing.append(part)
        else:
            yield record
    if missing and description_of(score_batch) != described:
        raise InputError(
            f"The scorer of a process is {' on '.join(description_of(score_batch))}, and that of the job is "
            f"{' on '.join(map(str, described))}. Give all machines the same bundle and device, and leave the bundle "
            "as it is while the job runs."
        )
    writers: dict[Part, PartWriter] = {}
    owners: deque[Part] = deque()

    def read() -> Iterator[tuple[BatchAdapter, Rows]]:
        for part, first, batch in _read(missing, settings):
            table = part.table
            kept = kept_batch(batch, table)
            if part not in writers:
                writers[part] = PartWriter(folder, part, job)
            if writers[part].restore(kept):
                advance(kept.num_rows)
                continue
            context = table.texts[-1] if settings.context is not None else None
            reader = RowReader(
                table.texts[0], table.references(settings), settings.errors, table.name, first + 1, context
            )
            owners.append(part)
            yield adapt(kept), reader.read(*(values_of(batch, name) for name in table.texts))

    try:
        with _saving_regularly(writers):
            for scored in score_batch.stream_rows(read()):
                part = owners.popleft()
                record = writers[part].add(scored)
                advance(scored.num_rows)
                if record is not None:
                    del writers[part]
                    yield record
    except BertScoreOnnxError:
        raise
    except BaseException:
        for writer in writers.values():
            writer.save()
        raise
    finally:
        for writer in writers.values():
            writer.discard()


@contextmanager
def _saving_regularly(writers: "Mapping[Part, PartWriter]") -> Iterator[None]:
    """Save the scores of unfinished parts regularly, in a thread, since a slow model yields none for a long time.

    Saving takes at most a twentieth of the time, however large parts are.
    """
    is_ended = Event()

    def save() -> None:
        seconds = SAVE_SECONDS
        while not is_ended.wait(seconds):
            began = monotonic()
            for writer in list(writers.values()):
                writer.save()
            seconds = max(SAVE_SECONDS, 20 * (monotonic() - began))

    thread = Thread(target=save, name="bertscore-onnx-saving", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_ended.set()
        thread.join()


def _read(parts: Sequence[Part], settings: Settings) -> Iterator[tuple[Part, int, RawBatch]]:
    """Yield batches in order with their part and the number of their first row, and one without rows of an empty part.

    Each file is read once for its consecutive parts, but batches of a part are cut by its rows alone.
    """
    for _, group in groupby(parts, key=lambda part: part.table.path):
        of_table = list(group)
        batches = read_rows(of_table[0].table, settings, of_table[0].start, of_table[-1].stop)
        yield from _cut(of_table, batches)


def _cut(parts: Sequence[Part], batches: Iterator[tuple[int, RawBatch]]) -> Iterator[tuple[Part, int, RawBatch]]:
    first = 0
    batch: RawBatch = []
    for part in parts:
        if not part.rows:
            yield part, part.start, []
        reached = part.start
        while reached < part.stop:
            while first + len(batch) <= reached:
                first, batch = next(batches)
            stop = min(first + len(batch), part.stop)
            yield part, reached, batch[reached - first : stop - first]
            reached = stop


# The file with the scores of a part: it has a temporary name until it is complete and on the disk. A summary in its
# footer begins with a seal, the SHA-256 of the file with zeros in place of the seal, so that an interrupted job, which
# has no digests in its manifest yet, finds parts whose bytes have changed.

ROW_GROUP_BYTES = 64_000_000
"""About how large a row group becomes in memory before it is written; most parts are smaller and have one."""

_METADATA = "bertscore_onnx.part"
_SEAL = b'{"seal":"'
_NO_SEAL = "0" * 64
_MAX_FOOTER = 1 << 26
_MAX_SCORES = 1 << 32


TRUNCATED = "bertscore_onnx.truncated"
"""The name of the column of whether a text was truncated where it is only counted, and not written."""


class _Summary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seal: str
    job: str
    input: str
    """The SHA-256 of the input file; all rows were read from a file of this content."""

    start: int
    rows: int
    failures: int
    truncated: int
    """The number of rows with a text that was truncated."""

    sums: tuple[float, float, float]
    """The sums of precision, recall and F1 over the rows that have scores."""


class PartWriter:
    """Writes the file of one part, which appears once the last row was added."""

    def __init__(self, folder: str, part: Part, job: str) -> None:
        """Begin a part; no file is made yet. Scores of another `job` are not mistaken for these."""
        self._folder = Path(folder)
        self._part = part
        self._job = job
        self._temporary = self._folder / f".{part.file}-{uuid.uuid4().hex[:12]}"
        self._writer: Any = None
        self._waiting: list[pyarrow.RecordBatch] = []
        self._waiting_bytes = 0
        self._num_rows = 0
        self._num_failures = self._num_truncated = 0
        self._sums: list[list[float]] = [[], [], []]
        self._saved = _saved_scores(folder, part, job)
        self._scores: list[pyarrow.RecordBatch] = []
        self._num_saved = 0 if self._saved is None else self._saved.num_rows
        self._lock = Lock()

    def restore(self, rows: "pyarrow.RecordBatch") -> bool:
        """Add the next rows with the scores that an earlier run saved; return False if it saved none of these."""
        import pyarrow

        saved = self._saved
        if saved is None or self._num_rows + rows.num_rows > saved.num_rows:
            self._saved = None
            return False
        scores = saved.slice(self._num_rows, rows.num_rows)
        schema = pyarrow.schema([*rows.schema, *saved.schema], saved.schema.metadata)
        self.add(pyarrow.RecordBatch.from_arrays([*rows.columns, *scores.columns], schema=schema))
        return True

    def add(self, scored: "pyarrow.RecordBatch") -> PartRecord | None:
        """Add rows with their scores; return the part once it is complete."""
        self._count(scored)
        if TRUNCATED in scored.schema.names:
            scored = scored.select([name for name in scored.schema.names if name != TRUNCATED])
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

    def save(self) -> None:
        """Save the scores so far for a later run, if there are new ones; a full disk is no error."""
        with self._lock, suppress(OSError):
            scores = self._scores[:]
            num_rows = sum(batch.num_rows for batch in scores)
            if self._num_saved < num_rows < self._part.rows:
                _save_scores(self._folder, self._part, self._job, scores)
                self._num_saved = num_rows

    def discard(self) -> None:
        """Remove the unfinished file of a part."""
        with suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)

    def _count(self, scored: "pyarrow.RecordBatch") -> None:
        self._num_rows += scored.num_rows
        number = len(self._part.table.schema)
        for sums, column in zip(self._sums, scored.columns[number:], strict=False):
            sums.append(fsum(column.drop_null().to_pylist()))
        self._num_failures += scored.column(number).null_count
        self._num_truncated += scored.column(number + len(SCORE_NAMES)).true_count
        self._scores.append(scored.select(range(number, scored.num_columns)))

    def _write_row_group(self) -> None:
        import pyarrow
        from pyarrow import parquet

        rows = pyarrow.Table.from_batches(self._waiting)
        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                self._temporary, rows.schema, compression="zstd", write_page_checksum=True
            )
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._waiting, self._waiting_bytes = [], 0

    def _finish(self) -> PartRecord:
        if self._waiting:
            self._write_row_group()
        precision, recall, f1 = map(fsum, self._sums)
        counts = self._num_failures, self._num_truncated
        summary = _Summary(_NO_SEAL, *_identity(self._part, self._job), *counts, (precision, recall, f1))
        self._writer.add_key_value_metadata({_METADATA: msgspec.json.encode(summary).decode()})
        self._writer.close()
        digest = _seal(self._temporary)
        os.replace(self._temporary, self._folder / self._part.file)
        sync_folder(self._folder)
        with self._lock:
            _path_of_scores(self._folder, self._part).unlink(missing_ok=True)
        return _record(self._part, summary, digest)


# The scores of an unfinished part, so that little is lost if the job is killed, however slow the model is: a SHA-256 of
# what follows, the rows and the job, and an Arrow stream. The rows are read again, so that the part gets the bytes that
# it has without an interruption.

SAVE_SECONDS = 10.0
"""The least time between two saves."""


def _path_of_scores(folder: str | Path, part: Part) -> Path:
    return Path(folder, f".{part.file}.scores")


def _save_scores(folder: Path, part: Part, job: str, scores: "Sequence[pyarrow.RecordBatch]") -> None:
    import pyarrow

    stream = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(stream, scores[0].schema) as writer:
        for batch in scores:
            writer.write_batch(batch)
    content = msgspec.json.encode(_identity(part, job)) + b"\n" + stream.getvalue().to_pybytes()
    digest = hashlib.sha256(content).hexdigest().encode()
    replace_whole(_path_of_scores(folder, part), digest + b"\n" + content)


def _saved_scores(folder: str, part: Part, job: str) -> "pyarrow.RecordBatch | None":
    """Return the scores of the first rows of a part, if this job saved any, and they are not damaged."""
    import pyarrow

    try:
        digest, content = read_regular(_path_of_scores(folder, part), _MAX_SCORES).split(b"\n", 1)
        identity, stream = content.split(b"\n", 1)
    except (OSError, ValueError):
        return None
    is_own = identity == msgspec.json.encode(_identity(part, job))
    if not is_own or hashlib.sha256(content).hexdigest().encode() != digest:
        return None
    scores = pyarrow.ipc.open_stream(stream).read_all().combine_chunks()
    return scores.to_batches()[0] if 0 < scores.num_rows < part.rows else None


def count_saved(folder: str, part: Part, job: str) -> int:
    """Return the number of rows of an unfinished part whose scores are saved."""
    scores = _saved_scores(folder, part, job)
    return 0 if scores is None else int(scores.num_rows)


def complete_part(folder: str, part: Part, job: str) -> PartRecord | None:
    """Return the record of a part's file; None if the file is missing or damaged.

    InputError is raised if it has the scores of other rows, or of another job.
    """
    path = Path(folder, part.file)
    try:
        with path.open("rb") as file:
            before, _, content = _scan(file)
    except OSError:
        return None
    try:
        summary = msgspec.json.decode(_SEAL + content[: content.find(b"}") + 1], type=_Summary)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if _digest(before, _NO_SEAL.encode() + content[64:]) != summary.seal:
        return None
    if (summary.job, summary.input, summary.start, summary.rows) != _identity(part, job):
        raise InputError(
            f"{path} has other scores than this job would write there. Write to another folder, or remove the file."
        )
    return _record(part, summary, _digest(before, content))


def _identity(part: Part, job: str) -> tuple[str, str, int, int]:
    """Return the fields of a summary that identify the scores of a part."""
    return job, part.table.content.digest, part.start, part.rows


def _record(part: Part, summary: _Summary, digest: str) -> PartRecord:
    return PartRecord(part.file, summary.rows, summary.failures, digest, summary.truncated, summary.sums)


def _seal(path: Path) -> str:
    """Put the seal into the file of a part, wait until it is on the disk, and return its SHA-256."""
    with path.open("r+b") as file:
        before, position, content = _scan(file)
        seal = _digest(before, content).encode()
        file.seek(position)
        file.write(seal)
        file.flush()
        os.fsync(file.fileno())
    return _digest(before, seal + content[64:])


def _scan(file: BinaryIO) -> "tuple[hashlib._Hash, int, bytes]":
    """Return the hash of the bytes before the seal of a part's file, the position of the seal, and the bytes from it.

    In a file without a seal the whole footer, or what seems to be one, takes its place.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    length = min(int.from_bytes(file.read(4), "little"), _MAX_FOOTER)
    start = file.seek(max(0, size - 8 - length))
    footer = file.read()
    head, mark, content = footer.rpartition(_SEAL)
    before = hashlib.sha256()
    file.seek(0)
    for offset in range(0, start, 1 << 20):
        before.update(file.read(min(1 << 20, start - offset)))
    before.update(head + mark)
    return before, size - len(content), content


def _digest(before: "hashlib._Hash", content: bytes) -> str:
    """Return the SHA-256 of all bytes, from the hash of those before some content."""
    whole = before.copy()
    whole.update(content)
    return whole.hexdigest()
