"""What `examples/cluster/` needs an engine for: its program for Ray, and the settings that Spark is given.

The program for Spark is run with the commands of docs/at_scale.md.
"""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.examples.conftest import EXAMPLES
from tests.examples.test_cluster import words_of_spark_submit
from tests.support.programs import require_java

UNKNOWN_SETTINGS = """
import json, sys
from pyspark.java_gateway import launch_gateway

settings = dict(setting.split("=", 1) for setting in json.loads(sys.argv[1]))
jvm = launch_gateway().jvm
jvm.java.lang.Class.forName("org.apache.spark.deploy.k8s.Config$")
volumes = jvm.org.apache.spark.SparkConf(False)
for name, value in settings.items():
    if ".volumes." in name:
        volumes.set(name, value)
    elif jvm.org.apache.spark.internal.config.ConfigEntry.findEntry(name) is None:
        print(name)
for pods in "driver", "executor":
    parse = jvm.org.apache.spark.deploy.k8s.KubernetesVolumeUtils.parseVolumesWithPrefix
    print(parse(volumes, f"spark.kubernetes.{pods}.volumes.").length())
"""


def run(folder, *command):
    words = [*map(str, command)]
    environment = {**os.environ, "RAY_ADDRESS": "local"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.ray
def test_files_are_scored_on_ray(pairs, expected, minilm_bundle, tmp_path):
    (tmp_path / "pairs").mkdir()
    for number, pair in enumerate(pairs):
        table = pa.Table.from_pylist([{"id": number, **pair}])
        pa.parquet.write_table(table, tmp_path / "pairs" / f"{number}.parquet")
    program = EXAMPLES / "cluster" / "score_on_ray.py"
    run(tmp_path, sys.executable, program, minilm_bundle, tmp_path / "pairs", tmp_path / "scores")
    rows = sorted(pa.parquet.read_table(tmp_path / "scores").to_pylist(), key=lambda row: row["id"])
    assert [{name: row[name] for name in ("candidate", "reference")} for row in rows] == pairs
    assert [row["f1"] for row in rows] == expected.F.tolist()
    assert [row["best_reference"] for row in rows] == expected.best_reference.tolist()


@pytest.mark.spark
def test_spark_knows_every_setting(tmp_path):
    require_java()
    words = words_of_spark_submit(tmp_path)
    settings = [word for option, word in pairwise(words) if option == "--conf"]
    assert len(settings) > 10
    told = run(tmp_path, sys.executable, "-c", UNKNOWN_SETTINGS, json.dumps(settings)).split()
    assert told == ["1", "1"]  # a volume for the driver and one for the executors, and no unknown name
