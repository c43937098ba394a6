"""The stages of a job in their order: look at the inputs, count documents, score what is missing, and tell."""

import glob
import hashlib
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import fsum
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Unpack

import msgspec

from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.distributed.batches import ScoreBatch
from bertscore_onnx.distributed.engines import Counting, Describing, Engine, EngineName, Scoring, engine_of
from bertscore_onnx.distributed.parts import (
    DOCUMENT_COUNTS,
    PART_ROWS,
    InputRecord,
    Manifest,
    Part,
    PartRecord,
    PartScores,
    Settings,
    check_free,
    complete_part,
    cut_parts,
    held,
    remove_temporary,
)
from bertscore_onnx.distributed.rows import InputTable, TableSettings, inspect_table
from bertscore_onnx.errors import InputError, check_installed
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import check_positive
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.settings import ScorerSettings, counts_first, of_tokenizer
from bertscore_onnx.tables.batches import Errors
from bertscore_onnx.tables.sources import format_of

__all__ = ["JobResult", "score_files"]

READERS = 8
"""How many input files are looked at side by side; where they are far away that is waiting for the most part."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What came out of a job."""

    output: str
    """The folder of the scores."""

    signature: str
    rows: int
    failures: int
    """How many of the rows have no scores."""

    parts: int
    parts_before: int
    """How many of the parts were complete before this run."""

    precision: float | None
    recall: float | None
    f1: float | None
    """The means over the rows that have scores; None where there are none."""


class Job:
    """Files to score, and how."""

    def __init__(
        self,
        bundle: str | None,
        settings: dict[str, Any],
        tables: TableSettings,
        errors: Errors,
        part_rows: int,
        engine: Engine,
        verbose: bool | None,
    ) -> None:
        """Take what `score_files` was given."""
        self._bundle, self._tables, self._errors, self._part_rows = bundle, tables, errors, part_rows
        self._engine, self._verbose = engine, verbose
        self._counts_inputs = counts_first(settings)
        self._settings = {**settings, "idf": False} if self._counts_inputs else settings
        self._columns = ScoreBatch(bundle, errors=errors, **self._settings).columns  # and checks the settings

    def run(self, names: Sequence[str], folder: Path) -> JobResult:
        """Do what is missing; raises what `score_files` raises.

        Args:
            names: the inputs.
            folder: the output, an absolute path.
        """
        files = self._inspect(names)
        parts = cut_parts([table for table, _ in files], [digest for _, digest in files], self._part_rows)
        manifest = self._manifest(files, parts)
        signature, provider = self._describe(self._settings, parts)
        with held(folder):
            manifest = msgspec.structs.replace(
                manifest, signature=None if self._counts_inputs else signature, provider=provider
            )
            earlier = check_free(folder, manifest)
            settings = self._settings
            if self._counts_inputs:
                if earlier is None:
                    manifest.write(folder)
                settings = {**settings, "idf": self._counts(parts, folder)}
                signature, _ = self._describe(settings, parts)
                manifest = msgspec.structs.replace(manifest, signature=signature)
                if earlier is not None:
                    manifest.check_same(earlier, folder)
            return self._score(parts, folder, manifest, settings)

    def _inspect(self, names: Sequence[str]) -> list[tuple[InputTable, str]]:
        """Return what is known of each input before it is scored, and its digest."""

        def inspect(name: str) -> tuple[InputTable, str]:
            return inspect_table(name, self._tables, self._columns.names), file_digest(Path(name))

        inspected = []
        readers = ThreadPoolExecutor(READERS)
        try:
            with progress_bar(len(names), shown=self._verbose, stage="reading inputs", unit="files") as advance:
                for one in readers.map(inspect, names):
                    inspected.append(one)
                    advance(1)
        finally:
            readers.shutdown(cancel_futures=True)
        return inspected

    def _manifest(self, files: Sequence[tuple[InputTable, str]], parts: Sequence[Part]) -> Manifest:
        tables = self._tables
        return Manifest(
            settings=Settings(
                candidate=tables.candidate,
                reference=tables.reference,
                columns=tables.columns,
                header=tables.has_header,
                quotes=tables.has_quotes,
                errors=self._errors,
                part_rows=self._part_rows,
                idf="inputs" if self._counts_inputs else "given" if self._settings.get("idf") else "no",
            ),
            rows=sum(table.rows for table, _ in files),
            inputs=tuple(InputRecord(table.name, table.size, table.rows, digest) for table, digest in files),
            parts=tuple(PartRecord(part.file, part.rows) for part in parts),
        )

    def _describe(self, settings: dict[str, Any], parts: Sequence[Part]) -> tuple[str, str]:
        """Return the signature of a scorer and its execution provider, as they are where parts are scored."""
        [found] = self._engine(Describing(self._bundle, settings), parts[:1], lambda rows: None)
        return found

    def _counts(self, parts: Sequence[Part], folder: Path) -> DocumentCounts:
        """Return the counts of all references, from the folder where an earlier run left them."""
        file = folder / DOCUMENT_COUNTS
        if file.exists():
            return DocumentCounts.load(file)
        counting = Counting(self._bundle, of_tokenizer(self._settings), self._tables, self._errors)
        rows = sum(part.rows for part in parts)
        with progress_bar(rows, shown=self._verbose, stage="counting documents", unit="rows") as advance:
            first, *others = self._engine(counting, parts, advance)
        counts = sum(others, start=first)
        counts.save(file)
        return counts

    def _score(self, parts: Sequence[Part], folder: Path, manifest: Manifest, settings: dict[str, Any]) -> JobResult:
        """Score the parts that are missing, and write the manifest, before and after."""
        how = (manifest.signature, manifest.provider, manifest.settings)
        job = hashlib.sha256(msgspec.json.encode(how)).hexdigest()[:16]
        done = {part.file: complete_part(str(folder), part, job) for part in parts}
        missing = [part for part in parts if done[part.file] is None]
        if missing:
            manifest.write(folder)
            scorer = ScoreBatch(self._bundle, errors=self._errors, **settings)
            scoring = Scoring(scorer, self._tables, str(folder), job)
            rows = sum(part.rows for part in missing)
            with progress_bar(rows, shown=self._verbose, unit="rows") as advance:
                done.update((scores.file, scores) for scores in self._engine(scoring, missing, advance))
        complete = _completed(manifest, [scores for scores in done.values() if scores is not None])
        complete.write(folder)
        remove_temporary(folder)
        return _result(complete, folder, len(parts) - len(missing))


def _completed(manifest: Manifest, parts: Sequence[PartScores]) -> Manifest:
    """Return the manifest of a job whose parts are all complete; they come in order."""
    failures = sum(part.failures for part in parts)
    num_scored = manifest.rows - failures
    sums = [fsum(values) for values in zip(*(part.sums for part in parts), strict=True)]
    means = [total / num_scored for total in sums] if num_scored else []
    return msgspec.structs.replace(
        manifest,
        failures=failures,
        mean=dict(zip(("precision", "recall", "f1"), means, strict=True)) if means else None,
        complete=True,
        parts=tuple(PartRecord(part.file, part.rows, part.failures) for part in parts),
    )


def _result(manifest: Manifest, folder: Path, parts_before: int) -> JobResult:
    mean = manifest.mean or {}
    return JobResult(
        output=str(folder),
        signature=manifest.signature or "",
        rows=manifest.rows,
        failures=manifest.failures or 0,
        parts=len(manifest.parts),
        parts_before=parts_before,
        precision=mean.get("precision"),
        recall=mean.get("recall"),
        f1=mean.get("f1"),
    )


# Finds the input files that names, patterns and folders mean.


def find_inputs(names: Sequence[str]) -> list[str]:
    """Return the files, in the order of the names; those of a pattern or a folder by name.

    Args:
        names: files; patterns such as `pairs/*.parquet`, in which `**` stands for folders; or folders, which stand for
            the Parquet, JSON lines, CSV and TSV files in them whose names do not begin with `.` or `_`.

    Raises:
        InputError: one of them means no file, or a file is meant twice.
    """
    if not names:
        raise InputError("There are no inputs; expected one file at least.")
    files = [file for name in names for file in _files_of(os.fspath(name))]
    places: dict[str, str] = {}
    for file in files:
        other = places.setdefault(os.path.realpath(file), file)
        if other is not file:
            raise InputError(f"{file} is given twice, the first time as {other}. Give each file once.")
    return files


def _files_of(name: str) -> list[str]:
    if "://" in name:
        raise InputError(
            f"{name} is not a path on this machine. Mount it; or use `score_dataset` of bertscore_onnx.distributed.ray "
            "or `score_dataframe` of bertscore_onnx.distributed.spark, whose engines read such places themselves."
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
        raise InputError(f"No file matches {name}. Check the pattern; `ls` shows what it matches.")
    return files


# `score_files()`: scores the rows of many files, in parts, and goes on where an earlier run was ended.


def score_files(
    inputs: str | PathLike[str] | Iterable[str | PathLike[str]],
    output: str | PathLike[str],
    bundle: str | PathLike[str] | None = None,
    *,
    engine: EngineName = "local",
    candidate: str | None = None,
    reference: str | None = None,
    columns: Sequence[str] | None = None,
    errors: Errors = "raise",
    part_rows: int = PART_ROWS,
    has_header: bool = True,
    has_quotes: bool = True,
    verbose: bool | None = False,
    **settings: Unpack[ScorerSettings],
) -> JobResult:
    """Score the rows of files into Parquet files, and write what was done beside them, into `_manifest.json`.

    All inputs are looked at before anything is scored. Each part of the output, `part-FFFFF-PPPPP.parquet` for the file
    and the part of it, is there whole or not at all. Called again after whatever ended it, the job does only the parts
    that are missing; in precisions other than bf16 the files are then the same bytes as of one run.

    Args:
        inputs: Parquet, JSON lines, CSV and TSV files, the last three also packed with gzip; patterns, or folders.
        output: a folder, empty or new, or that of the same job. With an engine other than "local" all machines need to
            see it, and the inputs and the bundle, at the same path.
        bundle: as for `BERTScorer`.
        engine: what scores: this process, or the Ray or Spark that this process is connected to, or else starts.
        candidate: the column of candidates, a text a row; None for `candidate`.
        reference: that of references, a text or a list of texts a row; None for `reference` or `references`.
        columns: those of the inputs to keep beside the scores; None for all.
        errors: what becomes of a row that cannot be scored: "raise" for an InputError with its file and number, "null"
            for nulls as its scores and a further column `error` with the reason.
        part_rows: the rows of a part.
        has_header, has_quotes: whether CSV and TSV have names in the first line, and fields in double quotes.
        verbose: show progress on standard error; None for doing so on a terminal, where it takes long.
        settings: those of `BERTScorer`, for one layer. With `idf=True` all references are counted first, so that
            weights are those of the whole.

    Raises:
        InputError: an input is missing or damaged, or lacks a column; a row cannot be scored; the folder holds the
            scores of another job, or cannot be written to. Parts that were complete stay.
        MissingExtraError: pyarrow is not installed, or a package of the engine.
        BertScoreOnnxError: what `BERTScorer` raises.
    """
    check_installed(["pyarrow"], "parquet,cpu", "Scoring files")
    check_positive("part_rows", part_rows)
    if settings.get("all_layers"):
        raise InputError("Files are scored at one layer; leave all_layers out, or use ScoreBatch.")
    kept = None if columns is None else tuple(columns)
    tables = TableSettings(candidate, reference, kept, has_header, has_quotes)
    run = engine_of(engine, settings.get("nthreads"), settings.get("device"))
    job = Job(_absolute(bundle), {**settings}, tables, errors, part_rows, run, verbose)
    names = find_inputs([fspath(inputs)] if isinstance(inputs, str | PathLike) else [fspath(name) for name in inputs])
    return job.run(names, Path(os.path.abspath(output)))


def _absolute(bundle: str | PathLike[str] | None) -> str | None:
    """Return a bundle in a form that means the same in the working folder of another process."""
    name = None if bundle is None else fspath(bundle)
    return os.path.abspath(name) if name is not None and os.path.isdir(name) else name
