"""`examples/datasets_map.py`: scores become columns of a dataset, and are found in its cache."""

import json
import os
import subprocess
import sys

import pytest

from tests.examples.conftest import EXAMPLES, OFFLINE

pytestmark = pytest.mark.full
FROM_THE_CACHE = """
import sys
from datasets import Dataset
from bertscore_onnx_service import ScoreBatch

bundle, table = sys.argv[1:]
score_batch = ScoreBatch(bundle)
dataset = Dataset.from_json(table)
unloaded = dataset.map(score_batch, batched=True)
loaded = dataset.map(score_batch, batched=True)
equal = dataset.map(ScoreBatch(bundle), batched=True)
other = dataset.map(ScoreBatch(bundle, batch_size=2), batched=True)
assert unloaded.cache_files == loaded.cache_files == equal.cache_files != other.cache_files
"""
IN_PROCESSES = """
import json, os, sys
from datasets import Dataset
from bertscore_onnx_service import ScoreBatch

score_batch = ScoreBatch(sys.argv[1], nthreads=1)

def add_process(batch):
    return {**score_batch(batch), "process": [os.getpid()] * len(batch["candidate"])}

if __name__ == "__main__":
    dataset = Dataset.from_json(sys.argv[2])
    before = dataset.map(add_process, batched=True, num_proc=2)
    score_batch({"candidate": ["a"], "reference": ["a"]})  # now this process has loaded it too
    after = dataset.map(add_process, batched=True, num_proc=2, load_from_cache_file=False)
    for scored in before, after:
        print(json.dumps([scored["f1"][:], len({*scored["process"]} - {os.getpid()})]))
"""


@pytest.fixture
def table(pairs, tmp_path):
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    return tmp_path / "table.jsonl"


@pytest.fixture
def run_python(tmp_path):
    """Run this Python in an empty folder with its own cache; return its output."""

    def run(*arguments):
        variables = {**os.environ, **OFFLINE, "HF_HOME": str(tmp_path / "hf")}
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def caches(folder):
    return len([*folder.glob("hf/datasets/**/cache-*.arrow")])


def test_a_table_is_scored_once(run_python, table, expected, minilm_bundle, tmp_path):
    for _ in range(2):
        run_python(EXAMPLES / "datasets_map.py", minilm_bundle, table, "scored.jsonl")
        rows = [
            json.loads(line)
            for line in (tmp_path / "scored.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        assert [row["f1"] for row in rows] == pytest.approx(expected.F.tolist(), abs=1e-6)
        assert [row["best_reference"] for row in rows] == expected.best_reference.tolist()
    assert caches(tmp_path) == 1


def test_the_cache_tells_settings_and_not_what_is_loaded(
    run_python, table, minilm_bundle, tmp_path
):
    run_python("-c", FROM_THE_CACHE, minilm_bundle, table)
    assert caches(tmp_path) == 2


def test_several_processes_score(run_python, table, expected, minilm_bundle, tmp_path):
    (tmp_path / "program.py").write_text(IN_PROCESSES, encoding="utf-8")
    for line in run_python("program.py", minilm_bundle, table).splitlines():
        f1, processes = json.loads(line)
        assert f1 == pytest.approx(expected.F.tolist(), abs=1e-6)
        assert processes == 2
