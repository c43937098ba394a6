"""Tables to score, and the engines, each of which all tests of one process share."""

import logging
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertscore_onnx_service.jobs.job import score_files
from tests.support.programs import require_java
from tests.support.scores import WORDS

QUIET_RAY = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("DeprecationWarning", "FutureWarning", "ResourceWarning")
]
"""For warnings of Ray about itself."""

QUIET_SPARK = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A Spark session of two tasks at a time, each of which may be tried four times."""
    require_java()
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": folder / "local",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in settings.items():
        builder = builder.config(
            name, str(value).lower() if isinstance(value, bool) else str(value)
        )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster():
    """A cluster of two CPUs in this machine, whose processes find the package where this one does.

    It claims to have two GPUs, of which Ray gives actors the numbers.
    """
    import ray

    ray.init(
        num_cpus=2,
        num_gpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=200_000_000,
        runtime_env={
            "env_vars": {
                "PYTHONPATH": os.pathsep.join(
                    ["export", "models", os.environ.get("PYTHONPATH", "")]
                )
            }
        },
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    yield
    ray.shutdown()


def processes_of(name):
    """Return the processes with this name of the cluster that this process started."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
        if command.startswith(name):
            found.append(int(folder.name))
    return [process for process in found if is_descendant(process, parents)]


def is_descendant(process, parents):
    while process in parents and process != os.getpid():
        process = parents[process]
    return process == os.getpid()


WORD = WORDS.split()


def texts(number, seed):
    return [
        " ".join(WORD[(seed + row * step) % len(WORD)] for step in range(1, 3 + row % 5))
        for row in range(number)
    ]


@pytest.fixture
def write_pairs(tmp_path):
    """Write a Parquet file of pairs, with other columns if need be, and return its path."""

    def write(name, number, **others):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        table = {
            "id": range(number),
            "candidate": texts(number, 1),
            "reference": texts(number, 2),
            **others,
        }
        pq.write_table(pa.table({key: pa.array(values) for key, values in table.items()}), path)
        return path

    return write


@pytest.fixture
def score(tiny_bundle, tmp_path):
    """Score files into a folder of the test's own, by default on a CPU, in parts of ten rows."""

    def score(inputs, output="scores", **options):
        options = {"part_rows": 10, "device": "cpu", "nthreads": 1, **options}
        return score_files(inputs, tmp_path / output, tiny_bundle, **options)

    return score


@pytest.fixture
def read_scores():
    def read(folder):
        return pa.concat_tables(
            pq.read_table(part) for part in sorted(folder.glob("part-*.parquet"))
        )

    return read


@pytest.fixture
def contents():
    return lambda folder: {file.name: file.read_bytes() for file in folder.iterdir()}


ENGINES = [
    pytest.param("ray", marks=[pytest.mark.ray, *QUIET_RAY]),
    pytest.param("spark", marks=[pytest.mark.spark, QUIET_SPARK]),
]
"""For `engine`."""


@pytest.fixture
def engine(request):
    """The name of an engine, which is started."""
    request.getfixturevalue({"ray": "cluster", "spark": "spark"}[request.param])
    return request.param
