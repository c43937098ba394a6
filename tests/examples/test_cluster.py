"""`examples/cluster/`: manifests and scripts use only fields, settings and options that exist.

The schemas of Kubernetes are those of the package kubernetes-validate. KubeRay's RayJob has none
there: the pods in it are checked as pods, and what holds them by name.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
import yaml

from bertscore_onnx.cli import app
from tests.examples.conftest import EXAMPLES
from tests.examples.test_index import pins
from tests.support.programs import require_java

CLUSTER = EXAMPLES / "cluster"
PINS = pins(EXAMPLES.parent / "constraints.txt")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
GIGABYTES = 1.5
"""More than a process with roberta-large takes, by benchmarks/figures.md."""

RAY_JOB = yaml.safe_load((CLUSTER / "rayjob.yaml").read_text(encoding="utf-8"))
INDEXED_JOB = yaml.safe_load((CLUSTER / "indexed_job.yaml").read_text(encoding="utf-8"))
RAY_CLUSTER = RAY_JOB["spec"]["rayClusterSpec"]
HEAD, [WORKERS] = RAY_CLUSTER["headGroupSpec"], RAY_CLUSTER["workerGroupSpecs"]
POD_TEMPLATES = {
    "job": INDEXED_JOB["spec"]["template"],
    "head": HEAD["template"],
    "worker": WORKERS["template"],
}
DOCKERFILE = (CLUSTER / "Dockerfile").read_text(encoding="utf-8")
each_pod = pytest.mark.parametrize("name", POD_TEMPLATES)
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


def options_of(words):
    """Parse a command as the command line does; return its options, or fail with its error."""
    program, command, *rest = words
    assert program == "bertscore-onnx"
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name=program)
    return group.get_command(context, command).make_context(command, rest, parent=context).params


def container(name):
    [only] = POD_TEMPLATES[name]["spec"]["containers"]
    return only


def test_the_kinds_are_those_of_the_engines():
    assert (INDEXED_JOB["apiVersion"], INDEXED_JOB["kind"]) == ("batch/v1", "Job")
    assert (RAY_JOB["apiVersion"], RAY_JOB["kind"]) == ("ray.io/v1", "RayJob")


def test_names_are_labels():
    names = [INDEXED_JOB["metadata"]["name"], RAY_JOB["metadata"]["name"], WORKERS["groupName"]]
    assert all(
        NAME.fullmatch(name) for name in names + [container(name)["name"] for name in POD_TEMPLATES]
    )


def test_a_ray_job_has_the_fields_of_its_type():
    assert RAY_JOB.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert RAY_JOB["spec"].keys() == {
        "entrypoint",
        "backoffLimit",
        "shutdownAfterJobFinishes",
        "rayClusterSpec",
    }
    assert RAY_CLUSTER.keys() == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    assert HEAD.keys() == {"rayStartParams", "template"}
    assert WORKERS.keys() == {
        "groupName",
        "replicas",
        "minReplicas",
        "maxReplicas",
        "rayStartParams",
        "template",
    }
    assert all(
        isinstance(value, str)
        for group in (HEAD, WORKERS)
        for value in group["rayStartParams"].values()
    )


def test_the_commands_are_ours():
    python, program, bundle, pairs, scores = shlex.split(RAY_JOB["spec"]["entrypoint"])
    assert (python, Path(pairs).parent, Path(scores).parent) == (
        "python",
        Path("/data"),
        Path("/data"),
    )
    assert (CLUSTER / program.removeprefix("/work/")).is_file()
    job = container("job")
    assert options_of([*job["command"], *job["args"]])["model_type"] == bundle


def test_each_pod_of_the_job_takes_other_files():
    arguments = " ".join(container("job")["args"])
    assert arguments.count("$(JOB_COMPLETION_INDEX)") == 2
    assert INDEXED_JOB["spec"]["completionMode"] == "Indexed"
    assert INDEXED_JOB["spec"]["completions"] == 10  # one for each last digit


@each_pod
def test_a_pod_has_what_its_processes_hold(name):
    resources = container(name)["resources"]
    assert resources["requests"] == resources["limits"]
    processes = max(1, int(resources["limits"]["cpu"]) // 4)
    assert int(resources["limits"]["memory"].removesuffix("Gi")) >= GIGABYTES * processes


@each_pod
def test_the_volume_that_commands_name_is_mounted(name):
    volumes = {volume["name"] for volume in POD_TEMPLATES[name]["spec"]["volumes"]}
    assert {mount["name"] for mount in container(name)["volumeMounts"]} == volumes
    assert [mount["mountPath"] for mount in container(name)["volumeMounts"]] == ["/data"]


def test_versions_are_those_that_tests_run_with():
    assert RAY_CLUSTER["rayVersion"] == PINS["ray"]
    assert f"rayproject/ray:{PINS['ray']}-" in DOCKERFILE
    assert f"apache/spark:{PINS['pyspark']}-" in DOCKERFILE


def test_images_are_those_of_the_dockerfile():
    script = (CLUSTER / "spark_submit.sh").read_text(encoding="utf-8")
    images = [container(name)["image"] for name in POD_TEMPLATES] + re.findall(
        r"^image=(.+)", script, re.MULTILINE
    )
    built = re.findall(r"-t (\S+) \.", DOCKERFILE)
    assert {image.removeprefix("registry.example.org/") for image in images} == {*built}


def words_of_spark_submit(folder):
    """Run the script for Spark with a `spark-submit` that prints its arguments."""
    program = folder / "spark-submit"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n", encoding="utf-8"
    )
    program.chmod(0o755)
    environment = {**os.environ, "PATH": os.pathsep.join([str(folder), os.environ["PATH"]])}
    command = ["bash", CLUSTER / "spark_submit.sh", "k8s://https://example.org"]
    return json.loads(
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    )


def test_spark_runs_the_program_of_the_image(tmp_path):
    *options, program, bundle, pairs, scores = words_of_spark_submit(tmp_path)
    assert options[:2] == ["--master", "k8s://https://example.org"]
    assert (CLUSTER / program.removeprefix("local:///work/")).is_file()
    assert "examples/cluster/*.py /work/" in DOCKERFILE
    assert f"bundle {bundle}\n" in DOCKERFILE
    assert {Path(folder).parent for folder in (pairs, scores)} == {Path("/data")}
    settings = dict(word.split("=", 1) for word in options if word.startswith("spark."))
    # one scorer in each executor
    assert settings["spark.executor.cores"] == settings["spark.task.cpus"]
    assert int(settings["spark.executor.memoryOverhead"].removesuffix("g")) >= GIGABYTES


@pytest.mark.integration
@pytest.mark.parametrize("name", ["indexed_job.yaml", *POD_TEMPLATES])
def test_kubernetes_knows_every_field(run, name, tmp_path):
    if name in POD_TEMPLATES:
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            **POD_TEMPLATES[name],
        }
    else:
        manifest = INDEXED_JOB
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    run("kubernetes-validate", "kubernetes-validate", "--strict", "manifest.json")


def run_here(folder, *command):
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
    run_here(
        tmp_path, sys.executable, program, minilm_bundle, tmp_path / "pairs", tmp_path / "scores"
    )
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
    printed = run_here(
        tmp_path, sys.executable, "-c", UNKNOWN_SETTINGS, json.dumps(settings)
    ).split()
    # a volume for the driver and one for the executors, and no unknown name
    assert printed == ["1", "1"]
