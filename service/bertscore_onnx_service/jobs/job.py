"""Scores of many files, computed in parts and resumed.

`score_files` scores the rows of files, and resumes where an earlier run ended.

A folder has the manifest of the job, which is written before the first part, and a Parquet file for
each part: consecutive rows of one input with their scores. A part has a temporary name until it is
complete and on the disk; the digest in its footer covers every byte of it, and the names of the
part and of the job.
"""

import hashlib
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import ceil, fsum
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Unpack

import msgspec

from bertscore_onnx.bundle.store import default_model
from bertscore_onnx.errors import InputError, check_installed, json_fault
from bertscore_onnx.files import (
    open_new,
    open_regular,
    put_in_place,
    read_regular,
    replace_whole,
    write_errors,
)
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import check_positive
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.settings import ScorerSettings, counts_first, of_tokenizer
from bertscore_onnx.tables.batches import BatchAdapter, adapt
from bertscore_onnx.tables.readers import Records
from bertscore_onnx.tables.row_reader import RowReader, TextsOfRow, TextsOfRows
from bertscore_onnx.tables.score_columns import SCORE_NAMES, Errors
from bertscore_onnx.text.texts import are_in_context
from bertscore_onnx_service.jobs.batches import (
    CountBatch,
    ScoreBatch,
    description_of,
    rows_per_second,
)
from bertscore_onnx_service.jobs.inputs import (
    InputTable,
    Settings,
    check_unchanged,
    find_inputs,
    inspect_table,
    kept_batch,
    read_rows,
)

if TYPE_CHECKING:
    import pyarrow

__all__ = ["JobResult", "score_files"]

PART_SECONDS = 45
"""About how long a part takes, unless its number of rows is given; a job that is killed loses one
at most.
"""

BATCH_ROWS = 32
"""The most rows between two steps of the progress bar."""

CHUNK_ROWS = 128
"""How many rows are scored at a time on a CPU, if this takes about `CHUNK_SECONDS`."""

CHUNK_SECONDS = (2.0, 8.0)
"""The least and the most seconds that rows are scored at a time: fewer rows of a slow model cost
padding."""

ROW_GROUP_BYTES = 64_000_000
"""About how large a row group becomes in memory before it is written; most parts are smaller and
have one.
"""

READERS = 8
"""How many files are read at a time; if they are on remote storage, that is mostly waiting."""

TRUNCATED = "bertscore_onnx.truncated"
"""The name of the column of whether a text was truncated where it is only counted, and not
written.
"""

NOT_WRITTEN = slice(len(SCORE_NAMES), len(SCORE_NAMES) + 2)
"""The positions of this column, and of the column of unknown tokens behind it, among the columns of
scores.
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job."""

    output: str
    """The folder of the scores."""

    signature: str
    rows: int
    failures: int
    """The number of rows without scores."""

    truncated: int
    """The number of rows with a text that was truncated."""

    parts: int
    parts_before: int
    """The number of parts that were complete before this run."""

    precision: float | None
    recall: float | None
    f1: float | None
    """The means over the rows that have scores; None if there are none."""


def score_files(
    inputs: str | PathLike[str] | Iterable[str | PathLike[str]],
    output: str | PathLike[str],
    bundle: str | PathLike[str] | None = None,
    *,
    candidate: str | None = None,
    reference: str | Sequence[str] | None = None,
    context: str | None = None,
    columns: Sequence[str] | None = None,
    names: Sequence[str] = SCORE_NAMES,
    errors: Errors = "raise",
    part_rows: int | None = None,
    has_header: bool = True,
    has_quotes: bool = True,
    delimiter: str | None = None,
    verbose: bool | None = False,
    **settings: Unpack[ScorerSettings],
) -> JobResult:
    """Score the rows of files into Parquet files.

    `_manifest.json` beside them describes the job.

    All inputs are inspected before anything is scored. Each part of the output,
    `part-FFFFF-PPPPP.parquet` for the file and the part of it, is complete or does not exist.
    Called again after any interruption, the job scores only the missing parts, and those with any
    byte that has changed; in precisions other than bf16 they become the same bytes as without an
    interruption. If an input changes while the job runs, the job fails.

    Args:
        inputs: Parquet, JSON lines, CSV and TSV files, the last three also compressed with gzip;
            patterns, or folders.
        output: a folder, empty or new, or of the same job.
        bundle: as for `BERTScorer`.
        candidate: the column of candidates, a text per row; None for the one with a usual name,
            such as `candidate`.
        reference: the column of references, a text or a list of texts per row, or several; None for
            the one with a usual name, such as `references`.
        context: a column of contexts, a text or a list of sentences per row, as `BERTScorer.score`
            takes them.
        columns: the columns of the inputs to keep beside the scores; None for all.
        names: the names of the columns of precision, recall and F1; with a fourth name, a further
            column marks rows with a truncated text, and another, `unknown`, has the share of
            unknown tokens as in `Scores`.
        errors: how to handle a row that cannot be scored: "raise" for an InputError with its file
            and number, "null" for nulls as its scores and a further column `error` with the reason.
        part_rows: the rows of a part; None for the number that the manifest of an earlier run has,
            or else as many as take about a minute, by the time that the first rows take.
        has_header, has_quotes: whether CSV and TSV have names in the first line, and fields in
            double quotes.
        delimiter: the character between their fields; None for a tab in TSV, and in CSV for a
            comma, a semicolon or a tab, as the header shows.
        verbose: show progress on standard error; None to show it on a terminal only, if it takes
            long.
        settings: those of `BERTScorer`, for one layer. With `idf=True` all references are counted
            first, so that weights are those of the whole.

    Raises:
        InputError: an input is missing or damaged, lacks a column, or has changed since the job
            began; a row cannot be scored; the folder holds the scores of another job, or cannot be
            written to. Parts that were complete stay.
        MissingExtraError: pyarrow is not installed.
        BertScoreOnnxError: as for `BERTScorer`.
    """
    check_installed(["pyarrow"], "parquet,cpu", "Scoring files")
    if part_rows is not None:
        check_positive("part_rows", part_rows)
    if settings.get("all_layers"):
        raise InputError("Files are scored at one layer; leave all_layers out, or use ScoreBatch.")
    if isinstance(inputs, str | PathLike):
        inputs = [inputs]

    # The manifest holds the settings: equal jobs have equal ones, whatever sequences are given.
    if not isinstance(reference, str | None):
        reference = tuple(reference)
    if columns is not None:
        columns = tuple(columns)
    job_settings = Settings(
        candidate=candidate,
        reference=reference,
        context=context,
        columns=columns,
        names=tuple(names),
        errors=errors,
        part_rows=part_rows,
        has_header=has_header,
        has_quotes=has_quotes,
        delimiter=delimiter,
    )
    files = find_inputs([fspath(name) for name in inputs])
    model = default_model() if bundle is None else fspath(bundle)
    folder = Path(os.path.abspath(output))
    return _score_files(files, folder, model, job_settings, {**settings}, verbose)


def _score_files(
    files: Sequence[str],
    folder: Path,
    bundle: str | None,
    settings: Settings,
    scorer_settings: dict[str, Any],
    verbose: bool | None,
) -> JobResult:
    """Score the missing parts, and sum up.

    First inspect the inputs, and count documents if need be.
    """
    names = (*settings.names, TRUNCATED)[:4]
    make_batch = partial(ScoreBatch, bundle, names=names, errors=settings.errors)
    counts_inputs = counts_first(scorer_settings)
    settings_before_counts = dict(scorer_settings)
    if counts_inputs:
        settings_before_counts["idf"] = False
    added = make_batch(**settings_before_counts).columns.names
    if TRUNCATED in added:
        del added[NOT_WRITTEN]
    tables = _inspect(files, settings, added, verbose)
    whole = cut_parts(tables, sys.maxsize)
    num_rows = sum(table.rows for table in tables)
    if counts_inputs:
        count_batch = CountBatch(bundle, **of_tokenizer(scorer_settings))
        with progress_bar(
            num_rows, shown=verbose, stage="counting documents", unit="rows"
        ) as advance:
            scorer_settings["idf"] = _count(count_batch, settings, whole, advance)

    # If all contexts are blank, the scores and the signature are those without contexts.
    context = settings.context
    if context is not None and not are_in_context(
        candidate for candidate, _ in _read_pairs(whole, settings)
    ):
        context = None
    score_batch = make_batch(context=context, **scorer_settings)
    num_columns = [len(table.texts.references) for table in tables]
    signature, provider = description_of(score_batch, num_columns)
    entries = tuple(InputEntry(table.name, table.rows, table.sha256) for table in tables)
    with lock_folder(folder):
        earlier = _earlier_manifest(folder)
        part_rows = settings.part_rows
        if part_rows is None and earlier is not None:
            part_rows = earlier.settings.part_rows
        if part_rows is None:
            speed = rows_per_second(score_batch, _read_pairs(whole, settings))
            part_rows = ceil(PART_SECONDS * speed) or num_rows or 1
        settings = msgspec.structs.replace(settings, part_rows=part_rows)
        manifest = Manifest(
            signature=signature, provider=provider, settings=settings, inputs=entries
        )
        parts = cut_parts(tables, part_rows)
        manifest.claim(folder, earlier, {job_part.file for job_part in parts})
        totals = _totals_of_complete(parts, manifest, folder, verbose)
        parts_before = len(totals)
        _score_missing(score_batch, manifest, folder, parts, totals, verbose)
    for table in tables:
        check_unchanged(table)
    return _result(str(folder), manifest, list(totals.values()), parts_before)


def _inspect(
    files: Sequence[str], settings: Settings, added: Sequence[str], verbose: bool | None
) -> list[InputTable]:
    """Inspect all inputs before anything is scored."""
    tables = []
    with (
        progress_bar(len(files), shown=verbose, stage="reading inputs", unit="files") as advance,
        ThreadPoolExecutor(READERS) as readers,
    ):
        for table in readers.map(lambda name: inspect_table(name, settings, added), files):
            tables.append(table)
            advance(1)
    return tables


def _totals_of_complete(
    parts: "Sequence[Part]", manifest: "Manifest", folder: Path, verbose: bool | None
) -> "dict[Part, _Totals]":
    """Return the totals of the parts that earlier runs completed."""
    totals = {}
    with (
        progress_bar(len(parts), shown=verbose, stage="checking parts", unit="parts") as advance,
        ThreadPoolExecutor(READERS) as readers,
    ):
        found = readers.map(partial(_totals_of, folder, manifest), parts)
        for job_part, totals_of_part in zip(parts, found, strict=True):
            if totals_of_part is not None:
                totals[job_part] = totals_of_part
            advance(1)
    return totals


def _score_missing(
    score_batch: ScoreBatch,
    manifest: "Manifest",
    folder: Path,
    parts: "Sequence[Part]",
    totals: "dict[Part, _Totals]",
    verbose: bool | None,
) -> None:
    """Score the parts that have no totals yet, and add their totals."""
    missing = [job_part for job_part in parts if job_part not in totals]
    num_rows = sum(job_part.rows for job_part in parts)
    num_missing = sum(job_part.rows for job_part in missing)
    num_unsaved = 0
    with progress_bar(num_missing, shown=verbose, unit="rows") as advance:
        try:
            for job_part, rows, written in _score(score_batch, manifest, folder, missing):
                advance(rows)
                num_unsaved += rows
                if written is not None:
                    totals[job_part] = written
                    num_unsaved = 0
        except KeyboardInterrupt as interruption:
            interruption.add_note(
                f"{sum(job_part.rows for job_part in totals):,} of {num_rows:,} rows are kept, in "
                f"{len(totals):,} of {len(parts):,} parts; {num_unsaved:,} rows of an "
                "unfinished part are lost. Run the same command to resume."
            )
            raise


def _result(
    folder: str, manifest: "Manifest", totals: "Sequence[_Totals]", parts_before: int
) -> JobResult:
    num_rows = sum(entry.rows for entry in manifest.inputs)
    failures = sum(totals_of_part.failures for totals_of_part in totals)
    truncated = sum(totals_of_part.truncated for totals_of_part in totals)
    num_scored = num_rows - failures
    means: list[float | None] = [None, None, None]
    if num_scored:
        sums = zip(*(totals_of_part.sums for totals_of_part in totals), strict=True)
        means = [fsum(sums_of_parts) / num_scored for sums_of_parts in sums]
    return JobResult(
        folder, manifest.signature, num_rows, failures, truncated, len(totals), parts_before, *means
    )


# The folder of a job: only one job may write there, and the manifest says which.

MANIFEST = "_manifest.json"
_MAX_MANIFEST = 1 << 28


class InputEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An input file."""

    file: str
    rows: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that determines the scores of a job.

    Equal jobs have equal manifests.
    """

    format: Literal["bertscore-onnx job 1"] = "bertscore-onnx job 1"
    signature: str
    provider: str
    """The ONNX Runtime execution provider that runs the model."""

    settings: Settings
    inputs: tuple[InputEntry, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of all this, by which parts name their job."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def claim(self, folder: Path, earlier: "Manifest | None", part_files: Set[str]) -> None:
        """Write it into a folder that no other job has.

        An InputError is raised unless the folder is free, or has the manifest of an earlier run of
        this job. It may hold no other files than parts with one of these names.
        """
        kept: Set[str] = set()
        if earlier is not None:
            differences = list(self._differences(earlier))
            if differences:
                raise InputError(
                    f"{folder} has the scores of another job: {'; '.join(differences)}. Write to "
                    "another folder, or give the inputs and options of that job to resume it."
                )
            kept = part_files
        names = [file.name for file in folder.iterdir() if file.name[0] not in "._"]
        extra = sorted(name for name in names if name not in kept)
        if extra:
            raise InputError(
                f"{folder} holds {extra[0]}, which is not of this job. Write to an empty folder "
                "or a new one, so that it holds nothing but these scores."
            )
        if earlier != self:
            content = msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
            with write_errors(folder / MANIFEST):
                replace_whole(folder / MANIFEST, content)

    def _differences(self, earlier: "Manifest") -> Iterator[str]:
        values = []
        for name in Settings.__struct_fields__:
            values.append((name, getattr(earlier.settings, name), getattr(self.settings, name)))
        values += [
            ("the signature", earlier.signature, self.signature),
            ("the provider", earlier.provider, self.provider),
            ("the number of inputs", len(earlier.inputs), len(self.inputs)),
        ]
        for name, before, now in values:
            if before != now:
                yield f"{name} was {_shown(before)} and is {_shown(now)}"
        for old, new in zip(earlier.inputs, self.inputs, strict=False):
            if old.file != new.file:
                yield f"an input was {old.file} and is {new.file}"
            elif old != new:
                yield f"{new.file} has changed"


def _shown(value: object) -> str:
    return "not given" if value is None else str(value)


def _earlier_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a job that left parts in a folder.

    Raise an InputError for a file that is no manifest.
    """
    file = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(read_regular(file, _MAX_MANIFEST), type=Manifest)
        has_parts = any(folder.glob("part-*.parquet"))
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else json_fault(error)
        raise InputError(
            f"{file} is not the manifest of a job ({reason}). Write to another folder."
        ) from error
    return manifest if has_parts else None


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and lock it inside the block.

    No other job of this machine writes into it then, where folders can be locked. InputError is
    raised if it cannot be made, or if another job writes into it.
    """
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
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
            raise InputError(
                f"Another job writes to {folder} now. Wait for it, or write to another folder."
            ) from error
        except OSError:  # some network file systems lock no folders
            pass
        yield
    finally:
        os.close(descriptor)  # which unlocks it, as the end of the process does


# The parts: which rows they have, the work on these, and the file of each.

Advance = Callable[[int], object]
"""Takes the number of rows that were done since the last call."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Consecutive rows of a file."""

    file: str
    """The name of the file with its scores."""

    table: InputTable
    start: int
    """The number of the first row in the input file, from 0."""

    rows: int


def cut_parts(tables: Sequence[InputTable], part_rows: int) -> list[Part]:
    """Cut files into parts, at least one for each.

    Parts have `part_rows` rows, except the last one of a file.
    """
    parts = []
    for number, table in enumerate(tables):
        starts = range(0, max(1, table.rows), part_rows)  # an empty file has a part too
        for index, start in enumerate(starts):
            file = f"part-{number:05}-{index:05}.parquet"
            rows = min(part_rows, table.rows - start)
            parts.append(Part(file, table, start, rows))
    return parts


def _read(parts: Sequence[Part], settings: Settings) -> Iterator[tuple[Part, int, Records]]:
    """Yield batches in order, with their part and first row's number.

    An empty part has one batch without rows. Each file is read once for its consecutive parts.
    """
    for _, group in groupby(parts, key=lambda job_part: job_part.table.path):
        parts_of_table = list(group)
        last = parts_of_table[-1]
        batches = read_rows(last.table, settings, parts_of_table[0].start, last.start + last.rows)
        first = 0
        batch: Records = Records([])
        for job_part in parts_of_table:
            row = job_part.start
            stop = row + job_part.rows
            if row == stop:
                yield job_part, row, Records([])
            while row < stop:
                while first + len(batch) <= row:
                    first, batch = next(batches)
                end = min(first + len(batch), stop, row + BATCH_ROWS)
                yield job_part, row, batch[row - first : end - first]
                row = end


def _read_texts(
    parts: Sequence[Part], settings: Settings, errors: Errors
) -> Iterator[tuple[Part, Records, TextsOfRows]]:
    """Yield the batches as `_read` does, each with the texts in its rows."""
    for job_part, first, batch in _read(parts, settings):
        table = job_part.table
        reader = RowReader(errors, table.name, first + 1)
        yield job_part, batch, reader.read(table.texts, batch.values)


def _read_pairs(parts: Sequence[Part], settings: Settings) -> Iterator[TextsOfRow]:
    """Yield the texts of rows, without those that cannot be scored."""
    for _, _, rows in _read_texts(parts, settings, "null"):
        yield from rows.pairs


def _count(
    count_batch: CountBatch, settings: Settings, parts: Sequence[Part], advance: Advance
) -> DocumentCounts:
    """Count the documents of all references."""

    def references() -> Iterator[list[str]]:
        for job_part, first, batch in _read(parts, settings):
            table = job_part.table
            reader = RowReader(settings.errors, table.name, first + 1)
            yield from reader.references(table.texts.references, batch.values)
            advance(len(batch))

    return count_batch.count_texts(references())


def _score(
    score_batch: ScoreBatch, manifest: Manifest, folder: Path, parts: Sequence[Part]
) -> "Iterator[tuple[Part, int, _Totals | None]]":
    """Score parts.

    Yield the part and the number of the rows just scored, and its totals if its file is complete.

    After an error the parts before are complete. Parts are scored as one stream of rows, so the
    model is never idle.
    """
    owners: deque[Part] = deque()
    settings = manifest.settings

    def read() -> Iterator[tuple[BatchAdapter, TextsOfRows]]:
        for job_part, batch, rows in _read_texts(parts, settings, settings.errors):
            owners.append(job_part)
            yield adapt(kept_batch(batch, job_part.table)), rows

    writer = None
    try:
        seconds = CHUNK_ROWS * PART_SECONDS / (settings.part_rows or 1)
        max_seconds = sorted((*CHUNK_SECONDS, seconds))[1]  # within these times
        for scored in score_batch.stream_rows(read(), max_seconds):
            job_part = owners.popleft()
            writer = writer or PartWriter(folder, manifest, job_part)
            totals = writer.add(scored)
            if totals is not None:
                writer = None
            yield job_part, scored.num_rows, totals
    finally:
        if writer is not None:
            writer.discard()


class _Totals(msgspec.Struct, frozen=True):
    """What a part adds to the result of the job.

    Stands in the metadata of its file.
    """

    job: str
    """The digest of the manifest."""

    part: str
    """The name of the file."""

    failures: int
    truncated: int
    sums: tuple[float, float, float]
    """The sums of precision, recall and F1 over the rows that have scores."""

    sha256: str = "0" * 64
    """The SHA-256 of the file with zeros in the place of these characters."""


_METADATA = "bertscore_onnx.part"
_DIGEST = b'"sha256":"'
_BLOCK = 1 << 20


def _totals_of(folder: Path, manifest: Manifest, job_part: Part) -> _Totals | None:
    """Return the totals of a part whose file is as this job wrote it, or else None."""
    # Checksums of Parquet's pages would leave out the footer: schema, statistics, places of pages.
    import pyarrow
    from pyarrow import parquet

    path = folder / job_part.file
    try:
        with open_regular(path) as file:
            digest = _digest_of(file)[1]
            metadata = parquet.read_metadata(file).metadata
            totals = msgspec.json.decode(metadata[_METADATA.encode()], type=_Totals)
    except FileNotFoundError:
        return None
    except (OSError, KeyError, TypeError, ValueError, pyarrow.ArrowException):
        pass
    else:
        if (totals.sha256, totals.job, totals.part) == (digest, manifest.digest, job_part.file):
            return totals
    _log.warning("%s is damaged; it is scored again.", path)
    return None


def _digest_of(file: BinaryIO) -> tuple[int, str]:
    """Return a digest's position in a part, and what it should be.

    OSError or ValueError is raised if there is no place for one.
    """
    end = file.seek(-8, os.SEEK_END)  # of the footer
    start = file.seek(max(0, end - int.from_bytes(file.read(4), "little")))
    footer = bytearray(file.read())
    position = footer.rindex(_DIGEST) + len(_DIGEST)
    footer[position : position + 64] = b"0" * 64
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(min(_BLOCK, start - file.tell())):
        digest.update(block)
    digest.update(footer)
    return start + position, digest.hexdigest()


class PartWriter:
    """Writes the file of one part, which appears once the last row was added."""

    def __init__(self, folder: Path, manifest: Manifest, job_part: Part) -> None:
        """Begin a part of a job; no file is made yet."""
        self._path = folder / job_part.file
        self._temporary = folder / f".{job_part.file}"
        self._manifest = manifest
        self._part = job_part
        self._file: Any = None
        self._writer: Any = None
        self._waiting: list[pyarrow.RecordBatch] = []
        self._waiting_bytes = 0
        self._num_rows = self._num_failures = self._num_truncated = 0
        self._sums: list[list[float]] = [[], [], []]

    def add(self, scored: "pyarrow.RecordBatch") -> _Totals | None:
        """Add rows with their scores.

        Return the totals of the part once it is complete.
        """
        self._count(scored)
        if TRUNCATED in scored.schema.names:
            written = list(range(scored.num_columns))
            first = len(self._part.table.schema)
            del written[first + NOT_WRITTEN.start : first + NOT_WRITTEN.stop]
            scored = scored.select(written)
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
                f"Cannot write {str(self._path)!r} ({reason}). Parts that are complete stay as "
                "they are; started again, the job does those that are missing."
            ) from error
        return None

    def discard(self) -> None:
        """Remove the unfinished file of the part."""
        with suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)

    def _count(self, scored: "pyarrow.RecordBatch") -> None:
        self._num_rows += scored.num_rows
        first = len(self._part.table.schema)
        for sums, column in zip(self._sums, scored.columns[first:], strict=False):
            sums.append(fsum(column.drop_null().to_pylist()))
        self._num_failures += scored.column(first).null_count
        self._num_truncated += scored.column(first + len(SCORE_NAMES)).true_count

    def _write_row_group(self) -> None:
        import pyarrow
        from pyarrow import parquet

        rows = pyarrow.Table.from_batches(self._waiting)
        if self._writer is None:
            options = {"compression": "zstd", "write_page_checksum": True}
            self._file = open_new(self._temporary)
            self._writer = parquet.ParquetWriter(self._file, rows.schema, **options)
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._waiting = []
        self._waiting_bytes = 0

    def _finish(self) -> _Totals:
        if self._waiting:
            self._write_row_group()
        precision, recall, f1 = map(fsum, self._sums)
        totals = _Totals(
            job=self._manifest.digest,
            part=self._part.file,
            failures=self._num_failures,
            truncated=self._num_truncated,
            sums=(precision, recall, f1),
        )
        self._writer.add_key_value_metadata({_METADATA: msgspec.json.encode(totals).decode()})
        self._writer.close()
        check_unchanged(self._part.table)  # all its rows were read by now
        with self._file as file:
            position, digest = _digest_of(file)
            file.seek(position)
            file.write(digest.encode())
            file.flush()
            os.fsync(file.fileno())
        put_in_place(self._temporary, self._path)
        return totals
