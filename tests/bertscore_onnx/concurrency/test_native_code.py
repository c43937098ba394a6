"""What becomes of threads that score while Python exits."""

import pytest

from tests.support.processes import run_python

SCORING = """
import atexit, os, sys, threading
from bertscore_onnx import BERTScorer
from bertscore_onnx_service import MicroBatcher

scorers = [BERTScorer(sys.argv[1], device="cpu", nthreads=number) for number in (1, 2)]
main = threading.current_thread()
one, many = ["the cat sat on the mat"], ["a dog", "a cat sat", "the mat"] * 40
pairs = [(one, one), (many, many[::-1])]

def scores():
    return [scorer.score(*pair).F.tolist() for scorer in scorers for pair in pairs]

def tell():
    sys.stdout.write(f"{scores() == expected}\\n")

expected = scores()
begun = threading.Barrier(5)
"""

THREADS = """
def score_on():
    begun.wait()
    {}

for number in range(4):
    threading.Thread(target=score_on, daemon={}).start()
begun.wait()
"""

PLAIN = THREADS.format("main.join(); tell()", False)
DAEMONS = THREADS.format("while True: scores()", True)
FORK = """
child = os.fork()
if child:
    sys.exit(os.waitpid(child, 0)[1])
tell()
"""
BATCHER = """
batcher = MicroBatcher(scorers[1])

def submit():
    main.join()
    sys.stdout.write(f"{batcher.submit(*pairs[1]).result(60).F.tolist() == expected[3]}\\n")

threading.Thread(target=submit).start()
"""


@pytest.mark.slow  # it starts processes
@pytest.mark.parametrize(
    ("ending", "printed"),
    [
        pytest.param(PLAIN, ["True"] * 4, id="plain threads score on"),
        pytest.param(DAEMONS, [], id="daemon threads score"),
        pytest.param(DAEMONS + "atexit.register(tell)", ["True"], id="a function scores at exit"),
        pytest.param(DAEMONS + FORK, ["True"], id="a forked child scores"),
        pytest.param(BATCHER, ["True"], id="a plain thread submits to a batcher"),
    ],
)
def test_python_exits_with_the_right_scores(tiny_bundle, ending, printed):
    for _ in range(3):
        ended = run_python(SCORING + ending, tiny_bundle)
        assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, printed, "")
