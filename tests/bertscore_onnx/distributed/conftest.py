"""The engines that all tests of one process share; each is started by the first test that asks for it."""

import logging
import os
import sys

import pytest

from tests.support.programs import require_java


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
        builder = builder.config(name, str(value).lower() if isinstance(value, bool) else str(value))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster():
    """A cluster of two CPUs in this machine, whose processes find the package where this one does."""
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=200_000_000,
        runtime_env={
            "env_vars": {"PYTHONPATH": os.pathsep.join(["export", "models", os.environ.get("PYTHONPATH", "")])}
        },
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    yield
    ray.shutdown()
