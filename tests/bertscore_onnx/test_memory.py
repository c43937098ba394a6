"""What large texts needed goes back to the system."""

import sys

import pytest

from tests.support.processes import run_python

MEASURE = """
import sys
from pathlib import Path
from bertscore_onnx import BERTScorer

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

with BERTScorer(sys.argv[1], device="cpu", nthreads=2) as scorer:
    scorer.score(["a cat"], ["the cat"])
    before = resident()
    scorer.score([f"{n} " + "the cat sat . " * 200 for n in range(16)], ["the dog ran , " * 200] * 16)
    needed = resident() - before
    scorer.release_memory()
    kept = resident() - before
    print(needed, kept, *scorer.score(["a cat"], ["the cat"]).F)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_memory_of_large_texts_is_given_back(minilm_bundle):
    done = run_python(MEASURE, minilm_bundle)
    assert done.returncode == 0, done.stderr
    needed, kept, _ = map(float, done.stdout.split())
    assert needed > 30e6
    assert kept < needed / 2
