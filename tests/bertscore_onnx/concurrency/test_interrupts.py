"""Errors of signal handlers, which Python raises in the main thread between any two of its
steps.
"""

import time

import pytest

from tests.support.processes import run_python

INTERRUPTED = """
import random, signal, sys, threading, time
from contextlib import suppress
from queue import SimpleQueue
from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import QueueFullError
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx_service import MicroBatcher
from tests.support.scores import WORDS

class Late(Exception):
    pass

def ring(*_):
    raise Late

draw, words = random.Random(0), WORDS.split()
texts = [" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(200)]
scorers = [BERTScorer(sys.argv[1], device="cpu", nthreads=number, idf=number > 1) for number in (1, 2)]
batcher = MicroBatcher(scorers[0])
expected = [scorer.score(texts, texts[::-1]) for scorer in scorers]

def submit(scorer, some):
    with suppress(QueueFullError):  # on a busy machine an interrupt comes late
        return batcher.submit(some[:2], some[:2])

works = [
    lambda scorer, some: scorer.score(some, some[::-1]),
    lambda scorer, some: list(scorer.stream([*zip(some, some[::-1])])),
    lambda scorer, some: scorer.encode(some),
    lambda scorer, some: scorer.tokenise(collect_pairs(some, some)),
    submit,
]
signal.signal(signal.SIGALRM, ring)
signal.signal(signal.SIGINT, signal.default_int_handler)
main, pauses = threading.get_ident(), SimpleQueue()

def interrupt():
    while True:
        time.sleep(pauses.get())
        signal.pthread_kill(main, signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
caught = []
for number in range(2000):
    scorer, work, some = draw.choice(scorers), draw.choice(works), texts[: draw.choice([4, 8, 40])]
    pause, kind = draw.uniform(0.0001, 0.006), (Late, KeyboardInterrupt)[number % 2]
    try:
        signal.setitimer(signal.ITIMER_REAL, pause) if kind is Late else pauses.put(pause)
        while True:
            work(scorer, some)
    except (Late, KeyboardInterrupt) as error:
        caught.append(type(error) is kind)
results = []
for scorer in scorers:
    results.append(scorer.score(texts, texts[::-1]))
    other = threading.Thread(target=lambda: results.append(scorer.score(texts, texts[::-1])))
    other.start()
    other.join(60)
while not (last := submit(scorers[0], texts)):
    time.sleep(0.1)
assert last.result(60) == scorers[0].score(texts[:2], texts[:2])
print(sum(caught), results == [scores for scores in expected for _ in range(2)], time.time())
"""


@pytest.mark.slow  # it starts a process
def test_each_of_2000_interrupts_is_raised_as_itself_and_leaves_nothing_locked(tiny_bundle):
    done = run_python(INTERRUPTED, tiny_bundle)
    printed = done.stdout.split()
    assert (done.returncode, done.stderr, printed[:2]) == (0, "", ["2000", "True"])
    assert time.time() - float(printed[-1]) < 3


STARTING = """
import random, signal
from bertscore_onnx.concurrency.threads import Threads

class Late(Exception):
    pass

def ring(*_):
    raise Late

signal.signal(signal.SIGALRM, ring)
draw, caught = random.Random(0), 0
for _ in range(2000):
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 4e-4))
        while True:
            threads = Threads(2, "threads")
            assert list(threads.map(str, [1, 2])) == ["1", "2"]
            threads.close()
    except Late:
        caught += 1
print(caught)
"""


@pytest.mark.slow  # it starts a process
def test_each_of_2000_interrupts_while_threads_start_is_raised_as_itself():
    done = run_python(STARTING)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "2000\n")
