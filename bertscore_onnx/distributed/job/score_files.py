"""`score_files()`: scores the rows of many files, in parts, and goes on where an earlier run was ended."""

import os
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Unpack

from bertscore_onnx.distributed.job.engines import EngineName, engine_of
from bertscore_onnx.distributed.job.find_inputs import find_inputs
from bertscore_onnx.distributed.job.job import Job, JobResult
from bertscore_onnx.distributed.job.parts import PART_ROWS
from bertscore_onnx.distributed.job.rows import TableSettings
from bertscore_onnx.errors import InputError, check_installed
from bertscore_onnx.scoring.inputs import check_positive
from bertscore_onnx.settings import ScorerSettings
from bertscore_onnx.tables.batches import Errors


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
