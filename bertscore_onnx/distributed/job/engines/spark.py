"""Does the work of a job on Spark, task by task; Spark does a task again that is lost."""

import os
import pickle
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from bertscore_onnx import errors
from bertscore_onnx.distributed.job.engines.tasks import cut_tasks
from bertscore_onnx.distributed.job.parts import Part
from bertscore_onnx.distributed.job.work import Advance, Result, Work
from bertscore_onnx.errors import BertScoreOnnxError, check_installed


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
            done = context.parallelize(tasks, max(1, len(tasks))).map(_do).collect()
        except (Py4JJavaError, PySparkException) as error:
            raise _own_error(str(error)) or error from error
        advance(sum(part.rows for part in parts))
        for results in done:
            yield from pickle.loads(results)  # noqa: S301 -- written by _do


def _do(task: bytes) -> bytes:
    """Return the results of a task."""
    work, parts = pickle.loads(task)  # noqa: S301 -- written by SparkEngine
    return pickle.dumps(list(work(parts, lambda rows: None)))


def _own_error(trace: str) -> BertScoreOnnxError | None:
    """Return the error of ours that a task ended with, from the trace that Spark makes of it."""
    found: Any = re.search(r"^bertscore_onnx\.errors\.(\w+): (.*)$", trace, re.MULTILINE)
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2]) if kind else None
