"""Which threads of a process compute while it scores."""

import os
import subprocess
import sys

import pytest

COMPUTING_THREADS = """
import sys, time
from bertscore_onnx import BERTScorer

texts = [f"the cat sat on {number} mats and {number + 7} dogs saw it" for number in range(3000)]
with BERTScorer(sys.argv[1], nthreads=int(sys.argv[2]) or None, device="cpu") as scorer:
    own, all_threads = time.thread_time(), time.process_time()
    scorer.score(texts, texts[::-1])
    own, all_threads = time.thread_time() - own, time.process_time() - all_threads
print(own, all_threads - own)
"""


@pytest.mark.slow  # it starts processes
@pytest.mark.parametrize("bundle", ["tiny_bundle", "fast_bundle"])
@pytest.mark.parametrize(
    ("openmp", "nthreads", "shared_out"), [("1", None, False), ("", 1, False), ("1", 2, True)], ids=str
)
def test_with_one_thread_the_callers_alone_computes(request, bundle, openmp, nthreads, shared_out):
    program = [sys.executable, "-c", COMPUTING_THREADS, str(request.getfixturevalue(bundle)), str(nthreads or 0)]
    environment = os.environ | {"OMP_NUM_THREADS": openmp}
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env=environment, check=True)
    own, others = map(float, done.stdout.split())
    assert (others > own / 10) is shared_out
