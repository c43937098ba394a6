"""What Ray and Spark send to workers, and when results and counts return: memory and progress of jobs of many tasks."""

import gc
import os
import time
import tracemalloc
from functools import partial

import pytest

from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx_service.jobs.parts import Part
from bertscore_onnx_service.jobs.ray import RayEngine
from bertscore_onnx_service.jobs.rows import InputTable
from bertscore_onnx_service.jobs.spark import SparkEngine
from tests.service.jobs.conftest import ENGINES

NUM_PARTS, SIZE = 40, 2_000_000


@pytest.fixture
def parts():
    """Return parts of one row of a Parquet file, each of which becomes a task."""
    table = InputTable("a", "/a", "parquet", None, NUM_PARTS, ("candidate", "reference"), None)
    return [Part(f"part-00000-{number:05}.parquet", table, number, 1) for number in range(NUM_PARTS)]


@pytest.fixture
def run(engine):
    """Do work with parts on an engine."""
    return RayEngine(1, "cpu") if engine == "ray" else SparkEngine()


def length_of(content, parts, advance):
    """Yield the length of some content for each part."""
    for _ in parts:
        yield len(content)


def wait_at_last(file, parts, advance):
    """Yield whether a file is there; before the last part, wait for it, 20 seconds at most."""
    for part in parts:
        end = time.monotonic() + 20
        while part.start == NUM_PARTS - 1 and not file.exists() and time.monotonic() < end:
            time.sleep(0.01)
        yield file.exists()


def slow_but_one(folder, parts, advance):
    """Yield the parts of one task at once, whichever is first to make a folder, and wait a minute in all others."""
    try:
        folder.mkdir()
    except FileExistsError:
        time.sleep(60)
    yield from range(len(parts))


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_what_tasks_share_is_sent_once(run, parts):
    work = partial(length_of, os.urandom(SIZE))
    tracemalloc.start()
    lengths = list(run(work, parts, lambda rows: None))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lengths == [SIZE] * NUM_PARTS
    assert peak < 5 * SIZE


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_results_and_progress_come_before_the_end(run, parts, tmp_path):
    file, advanced = tmp_path / "go", []
    results = run(partial(wait_at_last, file), parts, advanced.append)
    exist = [next(results)]
    assert 0 < sum(advanced) < NUM_PARTS
    file.touch()
    exist += results
    assert (exist[0], len(exist), any(exist)) == (False, NUM_PARTS, True)
    assert sum(advanced) == NUM_PARTS


@pytest.mark.spark
def test_no_job_of_spark_outlives_its_caller(spark, parts, tmp_path):
    work = partial(slow_but_one, tmp_path / "first")
    results = SparkEngine()(work, parts, lambda rows: None)
    next(results)
    results.close()
    tracker, end = spark.sparkContext.statusTracker(), time.monotonic() + 10
    while tracker.getActiveJobsIds() and time.monotonic() < end:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()


def test_document_counts_are_added_up_as_they_come(score, write_pairs, monkeypatch):
    alive = []

    def one_by_one(work, parts, advance):
        for part in parts:
            yield from work([part], advance)
            alive.append(sum(type(one) is DocumentCounts for one in gc.get_objects()))

    before = sum(type(one) is DocumentCounts for one in gc.get_objects())
    monkeypatch.setattr("bertscore_onnx_service.jobs.ray.RayEngine", lambda *arguments: one_by_one)
    score(write_pairs("a.parquet", NUM_PARTS), engine="ray", idf=True, part_rows=1)
    assert max(alive) - before < 5
