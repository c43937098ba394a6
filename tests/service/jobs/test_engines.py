"""Ray and Spark: the scores and files of one machine, whatever dies on the way, and errors in our words."""

import os
import random
import resource
import signal
import sys
from functools import partial

import pyarrow as pa
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_service import CountBatch, ScoreBatch
from bertscore_onnx_service.jobs.job import verify_files
from bertscore_onnx_service.jobs.ray import RayEngine, score_dataset
from bertscore_onnx_service.jobs.spark import SparkEngine, score_dataframe
from tests.service.jobs.conftest import ENGINES, at_part, processes_of, texts
from tests.support.processes import run_python

on_each_engine = pytest.mark.parametrize("engine", ENGINES, indirect=True)

# The rows of a dataset or a frame, in this process and on an engine.

CANDIDATES, REFERENCES = texts(40, 1), [[one, other] for one, other in zip(texts(40, 2), texts(40, 3), strict=True)]
WRONG_REFERENCES = [*REFERENCES[:3], [], REFERENCES[4], [None], REFERENCES[6], None, *REFERENCES[8:]]
SETTINGS_AND_COLUMNS = {
    "contexts": (
        {"context": "before", "matching": "doc-bert-score"},
        {"before": [[f"it is {number % 3}", "red"] for number in range(40)]},
    ),
    "idf of all rows": ({"idf": True}, {}),
    "idf of sentences": ({"idf": True, "idf_sents": ["the cat sat", "a dog ran", "a red house"]}, {}),
    "truncated texts": ({"names": ("p", "r", "f", "cut"), "max_length": 5}, {}),
    "wrong rows": (
        {"names": ("p", "r", "f", "cut"), "max_length": 5, "errors": "null"},
        {"candidate": [*CANDIDATES[:-1], None], "reference": WRONG_REFERENCES},
    ),
}


@pytest.fixture
def scored_rows(request, engine):
    """Score a table on an engine; return its rows in the order of their ids."""

    def on_ray(table, bundle, **settings):
        import ray

        return score_dataset(ray.data.from_arrow([table.slice(0, 7), table.slice(7)]), bundle, **settings).take_all()

    def on_spark(table, bundle, **settings):
        frame = request.getfixturevalue("spark").createDataFrame(table)
        return score_dataframe(frame, bundle, **settings).toArrow().sort_by("id").to_pylist()

    return {"ray": on_ray, "spark": on_spark}[engine]


@pytest.mark.filterwarnings("ignore:.* longer than .* truncated:UserWarning")
@on_each_engine
@pytest.mark.parametrize("case", SETTINGS_AND_COLUMNS)
def test_rows_are_those_of_a_batch_of_one_machine(scored_rows, tiny_bundle, case):
    settings, columns = SETTINGS_AND_COLUMNS[case]
    table = pa.table({"id": range(40), "candidate": CANDIDATES, "reference": REFERENCES} | columns)
    counts = {"idf": CountBatch(tiny_bundle).count(table)} if settings == {"idf": True} else {}
    expected = ScoreBatch(tiny_bundle, nthreads=1, **settings | counts)(table)
    if "cut" in expected.column_names:
        assert {False, True} <= set(expected["cut"].to_pylist())
    if "error" in expected.column_names:
        assert [row for row, reason in enumerate(expected["error"].to_pylist()) if reason] == [3, 5, 7, 39]
    rows = scored_rows(table, tiny_bundle, **settings)
    assert [list(row) for row in rows] == [expected.column_names] * 40
    assert rows == expected.to_pylist()


# Jobs.


def files(contents):
    """Leave out the temporary files, which a worker that was killed may leave behind."""
    return {name: content for name, content in contents.items() if name[0] != "."}


@on_each_engine
def test_the_files_are_those_of_one_machine(score, write_pairs, write, contents, tmp_path, engine):
    pairs = write_pairs("a.parquet", 730)
    table = write("b.csv", "candidate,reference\n" + "the cat sat,a cat sat\n" * 120)
    options = {"idf": True, "errors": "null", "part_rows": 50}
    here, there = score([pairs, table], "here", **options), score([pairs, table], "there", engine=engine, **options)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert (there.rows, there.parts, there.f1) == (here.rows, here.parts, here.f1)


@on_each_engine
def test_a_row_that_cannot_be_scored_is_named_by_its_file(score, write_pairs, engine):
    pairs = write_pairs("a.parquet", 200, candidate=["it"] * 199 + [None])
    with pytest.raises(InputError, match=r"^\S+a.parquet, row 200: .*'candidate'"):
        score(pairs, "there", engine=engine, part_rows=50)


@pytest.mark.parametrize("engine", ENGINES[:1], indirect=True)
def test_a_job_that_was_begun_here_is_completed_there(score, write_pairs, contents, tmp_path, engine):
    pairs = write_pairs("a.parquet", 300)
    score(pairs, "here", part_rows=50)
    score(pairs, "there", part_rows=50)
    for part in ("part-00000-00001.parquet", "part-00000-00004.parquet"):
        (tmp_path / "there" / part).unlink()
    assert score(pairs, "there", engine=engine, part_rows=50).parts_before == 4
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@on_each_engine
def test_a_job_whose_input_changes_continues_with_what_holds(score, write_pairs, contents, tmp_path, engine):
    pairs, there = write_pairs("a.parquet", 20_000), tmp_path / "there"
    score(pairs, "here", part_rows=500)
    here, original = contents(tmp_path / "here"), pairs.read_bytes()
    other = write_pairs("other.parquet", 20_000, candidate=["it"] * 20_000)
    moment = random.Random(engine).randrange(1, 36)  # noqa: S311 -- of 40 parts; the last ones may come together
    changing = at_part(there, moment, lambda: other.replace(pairs))
    with changing, pytest.raises(InputError, match=r"a.parquet has changed"):
        score(pairs, "there", part_rows=500, engine=engine)
    parts = {name: content for name, content in contents(there).items() if name.startswith("part")}
    assert parts.items() <= here.items()
    damaged = bytearray(parts[min(parts)])
    damaged[len(damaged) // 3] ^= 1
    (there / min(parts)).write_bytes(damaged)
    pairs.write_bytes(original)
    assert 0 < score(pairs, "there", part_rows=500, engine=engine).parts_before < 40
    assert files(contents(there)) == here
    assert verify_files(there) == []


WORKERS = {
    "ray": lambda: processes_of(b"ray::_do")[:1],
    "spark": lambda: sorted(processes_of(os.fsencode(sys.executable) + b"\0-m\0pyspark.daemon"))[1:],
}


@on_each_engine
def test_workers_that_are_killed_change_nothing(score, write_pairs, contents, tmp_path, engine):
    pairs = write_pairs("a.parquet", 20_000)
    score(pairs, "here", part_rows=500)
    killed = []

    def kill():
        killed.extend(WORKERS[engine]())
        for process in killed:
            os.kill(process, signal.SIGKILL)

    with at_part(tmp_path / "there", 1, kill):
        score(pairs, "there", part_rows=500, engine=engine)
    assert killed
    assert files(contents(tmp_path / "there")) == contents(tmp_path / "here")


def with_small_files(work, parts, advance):
    """Do work of a job in a process whose files cannot grow, as on a full disk."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        yield from work(parts, advance)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@on_each_engine
def test_a_job_continues_after_a_worker_had_a_full_disk(score, write_pairs, contents, tmp_path, monkeypatch, engine):
    large = [os.urandom(100).hex() if row >= 1_000 else "" for row in range(2_000)]
    pairs = write_pairs("a.parquet", 2_000, large=large)
    score(pairs, "here", part_rows=500)
    kind = {"ray": RayEngine, "spark": SparkEngine}[engine]
    do = kind.__call__
    with monkeypatch.context() as patched:
        patched.setattr(kind, "__call__", lambda self, work, *rest: do(self, partial(with_small_files, work), *rest))
        with pytest.raises(InputError, match=r"part-00000-0000[23].parquet' \(File too large\)"):
            score(pairs, "there", part_rows=500, engine=engine)
    whole, there = contents(tmp_path / "here"), contents(tmp_path / "there")
    assert {name: content for name, content in there.items() if name.startswith("part")}.items() <= whole.items()
    assert "part-00000-00002.parquet" not in there
    score(pairs, "there", part_rows=500, engine=engine)
    assert contents(tmp_path / "there") == whole
    assert verify_files(tmp_path / "there") == []


LOSE_A_NODE = """
import sys
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from bertscore_onnx_service.jobs.job import score_files
from tests.service.jobs.conftest import at_part

bundle, pairs, there = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
node = cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, log_to_driver=False)
assert ray.cluster_resources()["CPU"] == 2
with at_part(Path(there), 1, lambda: cluster.remove_node(node, allow_graceful=False)):
    score_files(pairs, there, bundle, engine="ray", nthreads=1, device="cpu", part_rows=500)
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.ray
def test_a_node_that_is_lost_in_the_middle_changes_nothing(score, write_pairs, contents, tiny_bundle, tmp_path):
    pairs = write_pairs("a.parquet", 20_000)
    score(pairs, "here", part_rows=500)
    done = run_python(LOSE_A_NODE, tiny_bundle, pairs, tmp_path / "there")
    assert done.returncode == 0, done.stderr[-2000:]
    assert files(contents(tmp_path / "there")) == contents(tmp_path / "here")
