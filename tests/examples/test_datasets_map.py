"""`examples/datasets_map.py`: scores become columns of a dataset, and are found in its cache."""

import json

import pytest

pytestmark = pytest.mark.integration
PROCESSES = """
import json, os, sys
from datasets import Dataset
import datasets_map

def add_process(batch, bundle):
    scores = datasets_map.add_scores(batch, bundle)
    return {**scores, "process": [os.getpid()] * len(batch["candidate"])}

scored = Dataset.from_json(sys.argv[2]).map(add_process, batched=True, num_proc=2, fn_kwargs={"bundle": sys.argv[1]})
print(json.dumps([scored["F"][:], len({*scored["process"]} - {os.getpid()})]))
"""


@pytest.fixture
def table(pairs, tmp_path):
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    return tmp_path / "table.jsonl"


def test_a_table_is_scored_once(run, table, expected, minilm_bundle, tmp_path):
    for _ in range(2):
        run("datasets", "python", "-m", "datasets_map", minilm_bundle, table, "scored.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [row["F"] for row in rows] == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert len([*tmp_path.glob("hf/datasets/**/cache-*.arrow")]) == 1


def test_several_processes_score(run, table, expected, minilm_bundle):
    f1, processes = json.loads(run("datasets", "python", "-c", PROCESSES, minilm_bundle, table))
    assert f1 == pytest.approx(expected.F.tolist(), abs=1e-5)
    assert processes == 2
