"""The programs of `examples/cluster/` score Parquet files, on a Ray and a Spark of this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.examples.conftest import EXAMPLES
from tests.support.java import require_java

pytestmark = pytest.mark.distributed
CLUSTER = EXAMPLES / "cluster"
LOCAL_SPARK_SUBMIT = """#!{python}
import os, sys
words = [word.replace("cluster", "client") if last == "--deploy-mode" else word.replace("local:///work", "{cluster}")
         for last, word in zip(["", *sys.argv[1:]], sys.argv[1:])]
words = [word.replace("/data/", "{folder}/").replace("/bundle", "{bundle}") for word in words]
os.execv("{spark_submit}", ["spark-submit", *words])
"""
"""What stands in for `spark-submit` where there is no cluster: the same with the paths of this machine."""

UNKNOWN_CONFIGURATION = """
import re, sys
from pathlib import Path
from pyspark.java_gateway import launch_gateway

given = re.findall(r"--conf (\\S+?)=", Path(sys.argv[1]).read_text(encoding="utf-8"))
jvm = launch_gateway().jvm
jvm.java.lang.Class.forName("org.apache.spark.deploy.k8s.Config$")
volumes = jvm.org.apache.spark.SparkConf(False)
for name in given:
    if '"$volume"' in name:
        volumes.set(name.replace('"$volume"', "volumes.persistentVolumeClaim.data"), "/data")
    elif jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(name) is None:
        print(name)
for pods in "driver", "executor":
    found = jvm.org.apache.spark.deploy.k8s.KubernetesVolumeUtils.parseVolumesWithPrefix(
        volumes, f"spark.kubernetes.{pods}.volumes."
    )
    assert found.length() == 1, found
assert len(given) > 8
"""


@pytest.fixture(scope="session")
def java():
    require_java()


@pytest.fixture
def files(tmp_path, pairs):
    (tmp_path / "pairs").mkdir()
    for number, pair in enumerate(pairs):
        pa.parquet.write_table(pa.Table.from_pylist([{"id": number, **pair}]), tmp_path / "pairs" / f"{number}.parquet")
    return tmp_path


def run(folder, *command, **variables):
    environment = {**os.environ, "RAY_ADDRESS": "local", "PYSPARK_PYTHON": sys.executable}
    words = [*map(str, command)]
    done = subprocess.run(words, cwd=folder, env={**environment, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(folder, pairs, expected):
    rows = sorted(pa.parquet.read_table(folder / "scores").to_pylist(), key=lambda row: row["id"])
    assert [{name: row[name] for name in ("candidate", "reference")} for row in rows] == pairs
    assert [row["f1"] for row in rows] == expected.F.tolist()
    assert [row["best_reference"] for row in rows] == expected.best_reference.tolist()


@pytest.mark.xdist_group("ray")
def test_files_are_scored_on_ray(files, pairs, expected, minilm_bundle):
    run(files, sys.executable, CLUSTER / "score_on_ray.py", minilm_bundle, files / "pairs", files / "scores")
    check(files, pairs, expected)


@pytest.mark.xdist_group("spark")
def test_files_are_scored_on_spark(java, files, pairs, expected, minilm_bundle):
    (files / "bin").mkdir()
    submit = files / "bin" / "spark-submit"
    spark_submit = Path(sys.executable).with_name("spark-submit")
    places = {"cluster": CLUSTER, "folder": files, "bundle": minilm_bundle}
    submit.write_text(LOCAL_SPARK_SUBMIT.format(python=sys.executable, spark_submit=spark_submit, **places))
    submit.chmod(0o755)
    path = os.pathsep.join([str(submit.parent), os.environ["PATH"]])
    run(files, "bash", CLUSTER / "spark_submit.sh", "local[4]", PATH=path)
    check(files, pairs, expected)


@pytest.mark.xdist_group("spark")
def test_spark_knows_every_configuration(java, tmp_path):
    assert run(tmp_path, sys.executable, "-c", UNKNOWN_CONFIGURATION, CLUSTER / "spark_submit.sh") == ""
