"""The stages of a job in their order: look at the inputs, count documents, score what is missing, and tell."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

import msgspec

from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.distributed.job.manifest import InputRecord, Manifest, PartRecord, Settings
from bertscore_onnx.distributed.job.output_folder import DOCUMENT_COUNTS, check_free, held, remove_temporary
from bertscore_onnx.distributed.job.part_files import PartScores, complete_part
from bertscore_onnx.distributed.job.parts import Part, cut_parts
from bertscore_onnx.distributed.job.rows import InputTable, TableSettings, inspect_table
from bertscore_onnx.distributed.job.work import Counting, Describing, Engine, Scoring
from bertscore_onnx.distributed.score_batch import ScoreBatch
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.progress import progress_bar
from bertscore_onnx.settings import counts_first, of_tokenizer
from bertscore_onnx.tables.batches import Errors

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
