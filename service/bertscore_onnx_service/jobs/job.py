"""`score_files()`: scores the rows of many files, in parts, and resumes where an earlier run ended."""

import glob
import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import fsum
from operator import add
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, Unpack

import msgspec
from msgspec import UNSET

from bertscore_onnx.bundle.store import default_model, file_digest
from bertscore_onnx.errors import InputError, check_installed
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import check_positive
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.settings import ScorerSettings, counts_first, of_tokenizer
from bertscore_onnx.tables.columns import SCORE_NAMES, Errors
from bertscore_onnx.tables.sources import format_of
from bertscore_onnx_service.jobs.batches import CountBatch, ScoreBatch
from bertscore_onnx_service.jobs.manifest import (
    DOCUMENT_COUNTS,
    MANIFEST,
    InputRecord,
    Manifest,
    PartRecord,
    check_free,
    find_faults,
    in_threads,
    lock_folder,
    remove_temporary,
    verify_folder,
)
from bertscore_onnx_service.jobs.parts import (
    PART_ROWS,
    TRUNCATED,
    Advance,
    Engine,
    Part,
    Result,
    Work,
    complete_part,
    count,
    count_saved,
    cut_parts,
    describe,
    score,
)
from bertscore_onnx_service.jobs.rows import InputTable, Settings, check_unchanged, inspect_table

__all__ = ["JobResult", "score_files", "verify_files"]

EngineName = Literal["local", "ray", "spark"]

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
    engine: EngineName = "local",
    candidate: str | None = None,
    reference: str | Sequence[str] | None = None,
    context: str | None = None,
    columns: Sequence[str] | None = None,
    names: Sequence[str] = SCORE_NAMES,
    errors: Errors = "raise",
    part_rows: int = PART_ROWS,
    has_header: bool = True,
    has_quotes: bool = True,
    delimiter: str | None = None,
    verbose: bool | None = False,
    **settings: Unpack[ScorerSettings],
) -> JobResult:
    """Score the rows of files into Parquet files, and describe the job beside them, in `_manifest.json`.

    All inputs are inspected before anything is scored. Each part of the output, `part-FFFFF-PPPPP.parquet` for the file
    and the part of it, is complete or does not exist; the scores of an unfinished part are saved every 10 seconds.
    Called again after any interruption, the job scores only the remaining rows, and parts whose bytes have changed; in
    precisions other than bf16 the files are then the same bytes as those of one run. All rows are read from inputs
    whose digests are in the manifest: if one changes while the job runs, the job fails.

    Args:
        inputs: Parquet, JSON lines, CSV and TSV files, the last three also compressed with gzip; patterns, or folders.
        output: a folder, empty or new, or that of the same job. With an engine other than "local" all machines need to
            see it, and the inputs and the bundle, at the same path.
        bundle: as for `BERTScorer`.
        engine: what scores: this process, or the Ray or Spark that this process is connected to, or else starts.
        candidate: the column of candidates, a text per row; None for `candidate`.
        reference: the column of references, a text or a list of texts per row, or several; None for `reference` or
            `references`.
        context: a column of contexts, a text or a list of sentences per row, as `BERTScorer.score` takes them.
        columns: the columns of the inputs to keep beside the scores; None for all.
        names: the names of the columns of precision, recall and F1; with a fourth name, a further column marks rows
            with a truncated text.
        errors: how to handle a row that cannot be scored: "raise" for an InputError with its file and number, "null"
            for nulls as its scores and a further column `error` with the reason.
        part_rows: the rows of a part.
        has_header, has_quotes: whether CSV and TSV have names in the first line, and fields in double quotes.
        delimiter: the character between their fields; None for a tab in TSV, and in CSV for a comma, a semicolon or a
            tab, as the header shows.
        verbose: show progress on standard error; None to show it on a terminal only, if it takes long.
        settings: those of `BERTScorer`, for one layer. With `idf=True` all references are counted first, so that
            weights are those of the whole.

    Raises:
        InputError: an input is missing or damaged, lacks a column, or has changed since the job began; a row cannot be
            scored; the folder holds the scores of another job, or cannot be written to. Parts that were complete stay.
        MissingExtraError: pyarrow is not installed, or a package of the engine.
        BertScoreOnnxError: as for `BERTScorer`.
    """
    check_installed(["pyarrow"], "parquet,cpu", "Scoring files")
    check_positive("part_rows", part_rows)
    if settings.get("all_layers"):
        raise InputError("Files are scored at one layer; leave all_layers out, or use ScoreBatch.")
    job = _Job(
        _absolute(bundle),
        {**settings},
        Settings(
            candidate=candidate,
            reference=reference if isinstance(reference, str | None) else tuple(reference),
            columns=None if columns is None else tuple(columns),
            has_header=has_header,
            has_quotes=has_quotes,
            errors=errors,
            part_rows=part_rows,
            idf="inputs" if counts_first(settings) else "given" if settings.get("idf") else "no",
            delimiter=delimiter,
            context=context,
            names=None if tuple(names) == SCORE_NAMES else tuple(names),
        ),
        _engine(engine, settings.get("nthreads"), settings.get("device")),
        verbose,
    )
    files = find_inputs([fspath(inputs)] if isinstance(inputs, str | PathLike) else [fspath(name) for name in inputs])
    return job.run(files, Path(os.path.abspath(output)))


def verify_files(output: str | PathLike[str]) -> list[str]:
    """Compare the files of a complete job with the digests in its manifest; nothing is changed, and no model loaded.

    Args:
        output: the folder of the job.

    Returns:
        A sentence for each file that is missing, has changed, or is not of the job; none if the folder is as the job
        left it.

    Raises:
        InputError: the folder is not that of a job, or that of an earlier version, whose manifest has no digests.
    """
    return verify_folder(Path(os.path.abspath(output)))


def _absolute(bundle: str | PathLike[str] | None) -> str | None:
    """Return a bundle in a form that means the same in the working folder of another process."""
    name = default_model() if bundle is None else fspath(bundle)
    return os.path.abspath(name) if name is not None and os.path.isdir(name) else name


def _engine(name: EngineName, nthreads: int | None, device: object) -> Engine:
    if name == "local":
        return _run_here
    if name == "ray":
        from bertscore_onnx_service.jobs.ray import RayEngine

        return RayEngine(nthreads, device)
    if name == "spark":
        from bertscore_onnx_service.jobs.spark import SparkEngine

        return SparkEngine()
    raise InputError(f'engine is {name!r}; expected "local", "ray" or "spark".')


def _run_here(work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
    """Yield the results of all parts, as one task in this process; an `Engine`."""
    return work(parts, advance)


# The input files that names, patterns and folders stand for.


def find_inputs(names: Sequence[str]) -> list[str]:
    """Return the files in the order of the names; those of a pattern or a folder in the order of theirs.

    In patterns `**` stands for folders. Folders stand for the Parquet, JSON lines, CSV and TSV files in them whose
    names do not begin with `.` or `_`. InputError is raised for a name without files, and for a file that occurs twice.
    """
    if not names:
        raise InputError("There are no inputs; expected one file at least.")
    files = [file for name in names for file in _files_of(name)]
    first: dict[str, str] = {}
    for file in files:
        other = first.setdefault(os.path.realpath(file), file)
        if other is not file:
            raise InputError(f"{file} is given twice, the first time as {other}. Give each file once.")
    return files


def _files_of(name: str) -> list[str]:
    if "://" in name:
        raise InputError(
            f"{name} is not a path on this machine. Mount it; or use `score_dataset` of "
            "bertscore_onnx_service.jobs.ray or `score_dataframe` of bertscore_onnx_service.jobs.spark, whose engines "
            "read such URLs themselves."
        )
    if os.path.isdir(name):
        files = [str(file) for file in sorted(Path(name).iterdir()) if file.name[0] not in "._" and file.is_file()]
        files = [file for file in files if format_of(file) != "text"]
        if not files:
            raise InputError(f"The folder {name} has no file that ends in .parquet, .jsonl, .csv or .tsv.")
        return files
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    files = sorted(file for file in glob.glob(name, recursive=True) if not os.path.isdir(file))  # noqa: PTH207 -- absolute too
    if not files:
        raise InputError(f"No file matches the pattern {name}; expected at least one.")
    return files


# The stages of a job: inspect the inputs, count documents, score the missing parts, write the result.


class _Job:
    def __init__(
        self,
        bundle: str | None,
        scorer_settings: dict[str, Any],
        settings: Settings,
        engine: Engine,
        verbose: bool | None,
    ) -> None:
        """Check the settings."""
        self._bundle, self._settings, self._engine, self._verbose = bundle, settings, engine, verbose
        self._counts_inputs = settings.idf == "inputs"
        self._scorer_settings = {**scorer_settings, "idf": False} if self._counts_inputs else scorer_settings
        self._score_batch = self._scoring(self._scorer_settings)

    def run(self, names: Sequence[str], folder: Path) -> JobResult:
        """Score the missing parts of the inputs into a folder, an absolute path."""
        tables = self._inspect(names)
        parts = cut_parts(tables, self._settings.part_rows)
        signature, provider = self._describe(parts)
        manifest = Manifest(
            signature=None if self._counts_inputs else signature,
            provider=provider,
            settings=self._settings,
            rows=sum(table.rows for table in tables),
            inputs=tuple(
                InputRecord(table.name, table.content.size, table.rows, table.content.digest) for table in tables
            ),
            parts=tuple(PartRecord(part.file, part.rows) for part in parts),
        )
        with lock_folder(folder) as is_locked:
            earlier = check_free(folder, manifest, is_locked=is_locked)
            if self._counts_inputs:
                if not (folder / MANIFEST).exists():
                    manifest.write(folder)
                counts, digest = self._counts(parts, folder, None if earlier is None else earlier.document_counts)
                weighted = {**self._scorer_settings, "idf": counts}
                self._score_batch = self._scoring(weighted)
                signature, _ = self._describe(parts)
                manifest = msgspec.structs.replace(manifest, signature=signature, document_counts=digest)
                if earlier is not None:
                    manifest.check_same(earlier, folder)
            return self._score(parts, folder, manifest, earlier)

    def _scoring(self, scorer_settings: dict[str, Any]) -> ScoreBatch:
        settings = self._settings
        return ScoreBatch(
            self._bundle,
            context=settings.context,
            names=(*(settings.names or SCORE_NAMES), TRUNCATED)[:4],
            errors=settings.errors,
            **scorer_settings,
        )

    def _inspect(self, names: Sequence[str]) -> list[InputTable]:
        added = [name for name in self._score_batch.columns.names if name != TRUNCATED]
        tables = []
        with progress_bar(len(names), shown=self._verbose, stage="reading inputs", unit="files") as advance:
            for table in in_threads(lambda name: inspect_table(name, self._settings, added), names):
                tables.append(table)
                advance(1)
        return tables

    def _describe(self, parts: Sequence[Part]) -> tuple[str, str]:
        """Return the signature of the scorer and its execution provider in the processes that score."""
        [description] = self._engine(partial(describe, self._score_batch), parts[:1], lambda rows: None)
        return description

    def _counts(self, parts: Sequence[Part], folder: Path, earlier: str | None) -> tuple[DocumentCounts, str]:
        """Return the counts of all references, and the digest of their file, which an earlier run may have left."""
        file = folder / DOCUMENT_COUNTS
        if earlier is not None and file.exists():
            if file_digest(file) == earlier:
                return DocumentCounts.load(file), earlier
            _log.warning("%s has changed since the job wrote it; documents are counted again.", file)
        count_batch = CountBatch(self._bundle, **of_tokenizer(self._scorer_settings))
        rows = sum(part.rows for part in parts)
        with progress_bar(rows, shown=self._verbose, stage="counting documents", unit="rows") as advance:
            counts = reduce(add, self._engine(partial(count, count_batch, self._settings), parts, advance))
        counts.save(file)
        return counts, file_digest(file)

    def _score(self, parts: Sequence[Part], folder: Path, manifest: Manifest, earlier: Manifest | None) -> JobResult:
        """Score the missing and the damaged parts, and write the manifest before and after."""
        identity = (manifest.signature, manifest.provider, manifest.settings)
        job = hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:16]
        records = in_threads(lambda part: complete_part(str(folder), part, job), parts)
        done = {part.file: record for part, record in zip(parts, records, strict=True)}
        missing = [part for part in parts if done[part.file] is None]
        for part in missing:
            is_there = (folder / part.file).exists()
            if is_there or (earlier is not None and earlier.complete):
                fault = "has changed since the job wrote it" if is_there else "is missing"
                _log.warning("%s %s; it is scored again.", folder / part.file, fault)
        if missing:
            manifest.write(folder)
            described = manifest.signature, manifest.provider
            work = partial(score, self._score_batch, described, self._settings, str(folder), job)
            rows = sum(part.rows for part in missing)
            with progress_bar(rows, shown=self._verbose, unit="rows") as advance:
                try:
                    done.update((record.file, record) for record in self._engine(work, missing, advance))
                except KeyboardInterrupt as interruption:
                    interruption.add_note(_progress(folder, parts, job))
                    raise
        complete = _completed(manifest, [record for record in done.values() if record is not None])
        if missing:
            for table in {part.table.path: part.table for part in parts}.values():
                check_unchanged(table)
            faults = find_faults(folder, complete)
            if faults:
                raise InputError(f"{faults[0]}. Start the job again to resume it.")
        if missing or complete != earlier:
            complete.write(folder)
        remove_temporary(folder)
        return _result(complete, folder, len(parts) - len(missing))


def _progress(folder: Path, parts: Sequence[Part], job: str) -> str:
    """Return how much of a job is on the disk."""
    complete = [part for part in parts if (folder / part.file).exists()]
    rows = sum(part.rows if part in complete else count_saved(str(folder), part, job) for part in parts)
    return (
        f"{len(complete):,} of {len(parts):,} parts are complete, and the scores of {rows:,} of "
        f"{sum(part.rows for part in parts):,} rows are saved. Run the same command to resume."
    )


def _completed(manifest: Manifest, parts: Sequence[PartRecord]) -> Manifest:
    """Return the manifest of a job whose parts, in their order, are all complete."""
    failures = sum(part.failures or 0 for part in parts)
    num_scored = manifest.rows - failures
    sums = zip(*(part.sums for part in parts if part.sums is not UNSET), strict=True)
    means = [fsum(values) / num_scored for values in sums] if num_scored else []
    return msgspec.structs.replace(
        manifest,
        failures=failures,
        truncated=sum(part.truncated for part in parts if part.truncated is not UNSET),
        mean=dict(zip(SCORE_NAMES, means, strict=True)) if means else None,
        complete=True,
        parts=tuple(msgspec.structs.replace(part, truncated=UNSET, sums=UNSET) for part in parts),
    )


def _result(manifest: Manifest, folder: Path, parts_before: int) -> JobResult:
    mean = manifest.mean or {}
    return JobResult(
        output=str(folder),
        signature=manifest.signature or "",
        rows=manifest.rows,
        failures=manifest.failures or 0,
        truncated=manifest.truncated or 0,
        parts=len(manifest.parts),
        parts_before=parts_before,
        precision=mean.get("precision"),
        recall=mean.get("recall"),
        f1=mean.get("f1"),
    )
