"""Which threads of a process compute while it scores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPUTING_THREADS = """
import os, sys
from pathlib import Path
from bertscore_onnx import BERTScorer

def nanoseconds():
    return {task.name: int((task / "schedstat").read_text().split()[0]) for task in Path("/proc/self/task").iterdir()}

texts = [f"the cat sat on {number} mats and {number + 7} dogs saw it" for number in range(3000)]
with BERTScorer(sys.argv[1], nthreads=int(sys.argv[2]) or None, device="cpu") as scorer:
    before = nanoseconds()
    scorer.score(texts, texts[::-1])
    used = {task: time - before.get(task, 0) for task, time in nanoseconds().items()}
own = used.pop(str(os.getpid()))
print(own, sum(used.values()))
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not tell the time of a thread")
@pytest.mark.parametrize("bundle", ["tiny_bundle", "fast_bundle"])
@pytest.mark.parametrize(
    ("openmp", "nthreads", "shared_out"), [("1", None, False), ("", 1, False), ("1", 2, True)], ids=str
)
def test_with_one_thread_the_callers_alone_computes(request, bundle, openmp, nthreads, shared_out):
    program = [sys.executable, "-c", COMPUTING_THREADS, str(request.getfixturevalue(bundle)), str(nthreads or 0)]
    environment = os.environ | {"OMP_NUM_THREADS": openmp}
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env=environment, check=True)
    own, others = map(int, done.stdout.split())
    assert (others > own / 10) is shared_out
