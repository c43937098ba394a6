"""Rows of files are scored in one process; Ray and Spark are left out where they are not installed."""

import sys
from importlib import import_module

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.contest.many_rows import InOneProcess
from benchmarks.contest.scoring_processes import watch
from benchmarks.contest.workloads import score_files
from benchmarks.settings import Settings
from bertscore_onnx import BERTScorer

CANDIDATES = ["the cat sat", "a dog ran", "a red house", "it was not a tree", "is it", "the mat"]
REFERENCES = ["the cat sat on the mat", "dogs run", "the blue house", "it is a tree", "it is", "the mat"]


def test_the_rows_of_all_files_are_scored(tiny_bundle, tmp_path):
    files = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for number, file in enumerate(files):
        rows = slice(2 * number, 2 * number + 2)
        ids = range(6)[rows]
        pq.write_table(pa.table({"id": ids, "candidate": CANDIDATES[rows], "reference": REFERENCES[rows]}), file)
    seconds, f = score_files(InOneProcess(str(tiny_bundle)), files, 1, str(tmp_path / "output"))
    assert len(seconds) == 2
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        assert f == scorer.score(CANDIDATES, REFERENCES).F.tolist()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_scores_is_seen(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        threads, memory = watch(lambda: [scorer.score(CANDIDATES, REFERENCES) for _ in range(300)])
    assert min(threads) >= 1
    assert memory > 20


@pytest.mark.slow
def test_a_case_says_which_engines_are_not_installed(tiny_bundle, tmp_path, monkeypatch):
    case = import_module("benchmarks.cases.many_rows")
    monkeypatch.setattr(case, "find_spec", lambda name: name == "pyarrow" or None)
    bundles = {"all-MiniLM-L6-v2-first-layer-fp32": tiny_bundle}
    found = case.many_rows(Settings(rounds=2, pairs=400, bundles=bundles, output=tmp_path))
    assert [(one.label, one.reason) for one in found.skipped] == [
        ("Ray", "ray is not installed"),
        ("Spark", "pyspark is not installed"),
    ]
    [timing] = found.timings
    assert timing.label == "one process"
    assert len(timing.seconds) == 2
