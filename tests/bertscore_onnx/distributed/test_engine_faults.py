"""Jobs on Ray and Spark whose workers die or have a full disk, and a Ray cluster that loses a node."""

import os
import resource
import signal
import sys
import threading
import time

import pytest

from bertscore_onnx.distributed import job
from bertscore_onnx.distributed.job import score_files, verify_files
from bertscore_onnx.errors import InputError
from tests.bertscore_onnx.distributed.conftest import ENGINES, processes_of
from tests.support.processes import run_python

ROWS, PART_ROWS = 20_000, 500
FILE_BYTES = 60_000


@pytest.fixture
def score(tiny_bundle, tmp_path):
    """Score files into a folder of the test's own."""

    def score(inputs, output, **options):
        options = {"part_rows": PART_ROWS, "device": "cpu", "nthreads": 1, **options}
        return score_files(inputs, tmp_path / output, tiny_bundle, **options)

    return score


@pytest.mark.spark
def test_python_workers_of_spark_that_are_killed_change_nothing(spark, score, write_pairs, contents, tmp_path):
    pairs = write_pairs("a.parquet", ROWS)
    score(pairs, "here")
    killed = []

    def kill():
        while not any((tmp_path / "there").glob("part-*")):
            time.sleep(0.001)
        _daemon, *workers = sorted(processes_of(os.fsencode(sys.executable) + b"\0-m\0pyspark.daemon"))
        killed.extend(workers)
        for process in workers:
            os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    score(pairs, "there", engine="spark")
    killer.join()
    assert killed
    whole = contents(tmp_path / "here")
    assert {name: content for name, content in contents(tmp_path / "there").items() if name[0] != "."} == whole


def with_small_files(work, parts, advance):
    """Do work of a job in a process whose files cannot grow, as on a full disk."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, hard))
    try:
        yield from work(parts, advance)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class FullDisk:
    """Picklable work of a job, done with `with_small_files`."""

    def __init__(self, work):
        self.work = work

    def __call__(self, parts, advance):
        return with_small_files(self.work, parts, advance)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_a_full_disk_of_a_worker_ends_the_job_which_is_resumed(
    score, write_pairs, contents, tmp_path, monkeypatch, engine
):
    large = [os.urandom(100).hex() if row >= 1_000 else "" for row in range(2_000)]
    pairs = write_pairs("a.parquet", 2_000, large=large)
    score(pairs, "here")
    make = job._engine

    def make_engine(*arguments):
        engine = make(*arguments)
        return lambda work, parts, advance: engine(FullDisk(work), parts, advance)

    monkeypatch.setattr(job, "_engine", make_engine)
    with pytest.raises(InputError, match=r"Cannot write .*part-00000-0000[23].parquet' \(File too large\)"):
        score(pairs, "there", engine=engine)
    monkeypatch.undo()
    whole, there = contents(tmp_path / "here"), contents(tmp_path / "there")
    assert {name: content for name, content in there.items() if name.startswith("part")}.items() <= whole.items()
    assert "part-00000-00002.parquet" not in there
    score(pairs, "there", engine=engine)
    assert contents(tmp_path / "there") == whole
    assert verify_files(tmp_path / "there") == []


LOSE_A_NODE = """
import sys, threading, time
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from bertscore_onnx.distributed.job import score_files

bundle, pairs, there = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
node = cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, log_to_driver=False)
assert ray.cluster_resources()["CPU"] == 2

def remove():
    while not any(Path(there).glob("part-*")):
        time.sleep(0.001)
    cluster.remove_node(node, allow_graceful=False)

remover = threading.Thread(target=remove)
remover.start()
score_files(pairs, there, bundle, engine="ray", nthreads=1, device="cpu", part_rows=PART_ROWS)
remover.join()
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.ray
def test_a_node_that_is_lost_in_the_middle_changes_nothing(score, write_pairs, contents, tiny_bundle, tmp_path):
    pairs = write_pairs("a.parquet", ROWS)
    score(pairs, "here")
    code = LOSE_A_NODE.replace("PART_ROWS", str(PART_ROWS))
    done = run_python(code, tiny_bundle, pairs, tmp_path / "there")
    assert done.returncode == 0, done.stderr[-2000:]
    whole = contents(tmp_path / "here")
    assert {name: content for name, content in contents(tmp_path / "there").items() if name[0] != "."} == whole
