"""The ways to score the rows of Parquet files: in one process, on Ray and on Spark, on this machine alone.

Each has `score_files(files, output)`, which writes the rows with their scores into a folder.
"""

import os
import sys
from pathlib import Path

from bertscore_onnx.concurrency.cpus import usable_cpus


class InOneProcess:
    """Scores with all threads of one process."""

    def __init__(self, path: str) -> None:
        from bertscore_onnx.distributed import ScoreBatch

        self._score_batch = ScoreBatch(path, device="cpu")

    def score_files(self, files: list[str], output: str) -> None:
        """Score rows as they are read."""
        import pyarrow
        from pyarrow import dataset, parquet

        scored = self._score_batch.stream(dataset.dataset(files).to_batches())
        Path(output).mkdir()
        parquet.write_table(pyarrow.Table.from_batches(scored), Path(output, "scores.parquet"))


class OnRay:
    """Scores on a cluster of this machine's CPUs, by as many actors as are the default."""

    def __init__(self, path: str) -> None:
        import ray

        self._path = path
        variables = {"env_vars": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}}
        ray.init(num_cpus=usable_cpus(), include_dashboard=False, log_to_driver=False, runtime_env=variables)
        ray.data.DataContext.get_current().enable_progress_bars = False

    def score_files(self, files: list[str], output: str) -> None:
        """Score a dataset, and let its tasks write it."""
        import ray

        from bertscore_onnx.distributed.ray import score_dataset

        score_dataset(ray.data.read_parquet(files), self._path).write_parquet(output)


class OnSpark:
    """Scores by a task for each of this machine's CPUs."""

    def __init__(self, path: str) -> None:
        from pyspark.sql import SparkSession

        self._path = path
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master(f"local[{usable_cpus()}]").config("spark.ui.enabled", "false")
        for name in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(name, "127.0.0.1")
        self._session = builder.getOrCreate()

    def score_files(self, files: list[str], output: str) -> None:
        """Score a frame, and let its tasks write it."""
        from bertscore_onnx.distributed.spark import score_dataframe

        score_dataframe(self._session.read.parquet(*files), self._path).write.parquet(output)
