"""What runs the work of a job: this process, Ray or Spark; each gives the same files."""

import os
import pickle
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from bertscore_onnx import errors
from bertscore_onnx.distributed.batches import ScoreBatch
from bertscore_onnx.distributed.parts import Part, PartScores, PartWriter, complete_part, read_parts
from bertscore_onnx.distributed.rows import TableSettings
from bertscore_onnx.errors import BertScoreOnnxError, InputError, check_installed
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scoring.tokenization import count_documents
from bertscore_onnx.tables.batches import Errors, RowReader, Rows, Table, table_of
from bertscore_onnx.tables.columns import Column

# What an engine does with parts: scores them, or counts the documents in their references.


Advance = Callable[[int], object]
"""Is called with numbers of rows that were done since the last call."""

Result = TypeVar("Result", covariant=True)


class Work(Protocol[Result]):
    """Something to do with parts, which can be pickled."""

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield results as they come."""
        ...


class Engine(Protocol):
    """Does work with parts, in this process or in others."""

    def __call__(self, work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield the results of all parts, in any order.

        Raises:
            BertScoreOnnxError: what the work raises.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores parts and writes their files; the rows of one part after the other, so that the model is never idle."""

    scorer: ScoreBatch
    tables: TableSettings
    folder: str
    """Where the files go; an absolute path, the same on all machines."""

    job: str
    """What tells the scores from those made otherwise."""

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[PartScores]:
        """Yield each part once its file is complete; those at once that are already, if a task is done again.

        Raises:
            InputError: a row cannot be scored, and that is an error; or a file cannot be read or written. Parts before
                are complete.
            BertScoreOnnxError: what `BERTScorer` raises.
        """
        missing = []
        for part in parts:
            scores = complete_part(self.folder, part, self.job)
            if scores is None:
                missing.append(part)
            else:
                yield scores
        owners: deque[Part] = deque()
        writer: PartWriter | None = None
        try:
            for scored in self.scorer.stream_rows(self._read(missing, owners)):
                writer = writer or PartWriter(self.folder, owners[0], self.job)
                owners.popleft()
                scores = writer.add(scored)
                advance(scored.num_rows)
                if scores is not None:
                    writer = None
                    yield scores
        finally:
            if writer is not None:
                writer.discard()

    def _read(self, parts: Sequence[Part], owners: "deque[Part]") -> Iterator[tuple[Table, Rows]]:
        """Yield the rows of parts, and note for each batch what part it is of."""
        for part, batch in read_parts(parts, self.tables):
            table = part.table
            reader = RowReader(table.candidate, table.reference, self.scorer.columns.errors, table.name, batch.first)
            rows = reader.read(batch.candidates, batch.references)
            owners.append(part)
            yield table_of(batch.kept), rows


@dataclass(frozen=True, slots=True)
class Describing:
    """Loads a scorer where parts are scored, to say how, and lets go of it."""

    bundle: str | None
    settings: dict[str, Any] = field(hash=False)

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[tuple[str, str]]:
        """Yield the signature and the execution provider.

        Raises:
            BertScoreOnnxError: what `BERTScorer` raises.
        """
        with BERTScorer(self.bundle, **self.settings) as scorer:
            yield str(scorer.signature), scorer.provider


@dataclass(frozen=True, slots=True)
class Counting:
    """Counts the documents in the references of parts."""

    bundle: str | None
    settings: dict[str, Any] = field(hash=False)
    """Those of the tokenizer."""

    tables: TableSettings
    errors: Errors

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[DocumentCounts]:
        """Yield the counts of all parts together.

        Raises:
            InputError: a reference is no text, and that is an error; or a file cannot be read.
        """
        yield count_documents(self._references(parts, advance), self.bundle, **self.settings)

    def _references(self, parts: Sequence[Part], advance: Advance) -> Iterator[list[str]]:
        for part, batch in read_parts(parts, self.tables):
            column = Column((part.table.reference,), "`reference`", may_hold_lists=True)
            for row, value in enumerate(batch.references, batch.first + 1):
                try:
                    yield column.texts_of(value, part.table.reference, f"{part.table.name}, row {row}")
                except InputError:
                    if self.errors == "raise":
                        raise
            advance(len(batch.references))


EngineName = Literal["local", "ray", "spark"]


def engine_of(name: EngineName, nthreads: int | None, device: object) -> Engine:
    """Return an engine.

    Args:
        name: which.
        nthreads, device: those of the scorer, which say what CPUs and GPUs a task on Ray takes.

    Raises:
        InputError: there is none of this name.
        MissingExtraError: a package for it is not installed.
    """
    if name == "local":
        return run_here
    if name == "ray":
        return RayEngine(nthreads, device)
    if name == "spark":
        return SparkEngine()
    raise InputError(f'engine is {name!r}; expected "local", "ray" or "spark".')


# Does the work of a job in this process, with all of its threads.


def run_here(work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
    """Yield the results of all parts, as one task; an `Engine`."""
    return work(parts, advance)


# Tasks for other processes: parts that are worth sending together.


MAX_ROWS = 65_536
"""About the most rows of a task, so that little is done again where a process is lost."""

MAX_PARTS = 1_024

TASKS_PER_WORKER = 4
"""At least as many, where there are parts enough, so that all workers end at about the same time."""


def cut_tasks(parts: Sequence[Part], num_workers: int) -> list[list[Part]]:
    """Return tasks of consecutive parts; all parts of a text file are of one task, since it is read from its start.

    Args:
        parts: what is to be done.
        num_workers: how many tasks can be done at a time.
    """
    max_rows = min(MAX_ROWS, sum(part.rows for part in parts) // (TASKS_PER_WORKER * num_workers))
    tasks: list[list[Part]] = []
    num_rows = 0
    for part in parts:
        is_continued = bool(tasks) and tasks[-1][-1].table is part.table and part.table.format != "parquet"
        is_full = not tasks or num_rows + part.rows > max_rows or len(tasks[-1]) == MAX_PARTS
        if is_full and not is_continued:
            tasks.append([])
            num_rows = 0
        tasks[-1].append(part)
        num_rows += part.rows
    return tasks


# Does the work of a job on Ray, task by task; a task whose process dies is done again.


NUM_CPUS = 4
"""The CPUs of a task, where nothing else is asked for: each process has the model's weights in memory once."""

MAX_RETRIES = 3
"""How often a task is done again whose process died."""


class RayEngine:
    """The Ray cluster that this process is connected to, or `RAY_ADDRESS` names; else one that starts here."""

    def __init__(self, nthreads: int | None, device: object) -> None:
        """Take what a task needs.

        Args:
            nthreads: its CPUs; None for `NUM_CPUS`, or all of a smaller machine.
            device: the scorer's; a task has a GPU of its own where that is one.

        Raises:
            MissingExtraError: Ray is not installed.
        """
        check_installed(["ray"], "ray,cpu", "Scoring on Ray")
        self._nthreads = nthreads
        self._num_gpus = int(str(device).startswith("cuda"))

    def __call__(self, work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield the results of all parts, in any order; an `Engine`.

        After an error the tasks under way go on, two for each worker at most, until they or this process end: where one
        is done at the moment when it is cancelled, Ray 2.60 aborts this process.
        """
        import ray

        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        cpus_of_nodes = [int(node["Resources"]["CPU"]) for node in ray.nodes() if "CPU" in node["Resources"]]
        num_cpus = self._nthreads or min([NUM_CPUS, *cpus_of_nodes])
        num_workers = max(1, int(ray.cluster_resources().get("CPU", 1)) // num_cpus)
        do = ray.remote(num_cpus=num_cpus, num_gpus=self._num_gpus, max_retries=MAX_RETRIES, max_calls=0)(_do_on_ray)
        shared = ray.put(work)
        unsent = deque(cut_tasks(parts, num_workers))
        sent: dict[object, int] = {}
        while unsent or sent:
            while unsent and len(sent) < 2 * num_workers:
                task = unsent.popleft()
                sent[do.remote(shared, task)] = sum(part.rows for part in task)
            [done], _ = ray.wait(list(sent), num_returns=1)
            outcome = ray.get(done)
            if isinstance(outcome, BertScoreOnnxError):
                raise outcome
            advance(sent.pop(done))
            yield from outcome


def _do_on_ray(work: Work[Result], parts: Sequence[Part]) -> list[Result] | BertScoreOnnxError:
    """Return the results of a task, or what went wrong: an error of ours is no reason to try again."""
    try:
        return list(work(parts, lambda rows: None))
    except BertScoreOnnxError as error:
        return error


# Does the work of a job on Spark, task by task; Spark does a task again that is lost.


class SparkEngine:
    """The Spark session of this process, or one that starts here, as `spark-submit` and its settings say."""

    def __init__(self) -> None:
        """Find Spark.

        Raises:
            MissingExtraError: PySpark is not installed.
        """
        check_installed(["pyspark"], "spark,cpu", "Scoring on Spark")

    def __call__(self, work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield the results of all parts, once all are done; an `Engine`."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        if SparkSession.getActiveSession() is None and "SPARK_ENV_LOADED" not in os.environ:  # not by spark-submit
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        context = SparkSession.builder.getOrCreate().sparkContext
        tasks = [pickle.dumps((work, task)) for task in cut_tasks(parts, context.defaultParallelism)]
        try:
            done = context.parallelize(tasks, max(1, len(tasks))).map(_do_on_spark).collect()
        except (Py4JJavaError, PySparkException) as error:
            raise _own_error(str(error)) or error from error
        advance(sum(part.rows for part in parts))
        for results in done:
            yield from pickle.loads(results)  # noqa: S301 -- written by _do


def _do_on_spark(task: bytes) -> bytes:
    """Return the results of a task."""
    work, parts = pickle.loads(task)  # noqa: S301 -- written by SparkEngine
    return pickle.dumps(list(work(parts, lambda rows: None)))


def _own_error(trace: str) -> BertScoreOnnxError | None:
    """Return the error of ours that a task ended with, from the trace that Spark makes of it."""
    found: Any = re.search(r"^bertscore_onnx\.errors\.(\w+): (.*)$", trace, re.MULTILINE)
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2]) if kind else None
