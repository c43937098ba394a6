"""A scorer of words whose faults are told by the text, and batchers that are closed at the end."""

import threading

import numpy as np
import pytest

from bertscore_onnx.errors import ClosedError
from bertscore_onnx.notices import Notices
from bertscore_onnx.scores import Scores
from bertscore_onnx.serving import MicroBatcher

GUARD = 10
"""Seconds after which a test is taken to hang."""


class FakeScorer:
    """Gives each candidate its length as its score, and does as its texts say."""

    def __init__(self, signature="fake|idf:no"):
        self.signature = signature
        self.calls = []
        self.faults = {}
        self.broken = None
        self.closed = False
        self.entered = threading.Event()
        self.gate = threading.Event()

    def score(self, cands, refs):
        self.calls.append(list(cands))
        if self.closed:
            raise ClosedError("closed")
        if self.broken is not None:
            raise self.broken
        for cand in cands:
            if cand in self.faults:
                raise self.faults[cand]
        if "hold" in cands:
            self.entered.set()
            assert self.gate.wait(GUARD)
        if "" in cands:
            Notices(empty=1).warn(stacklevel=2)
        values = np.array([np.nan if cand == "nan" else len(cand) for cand in cands], np.float32)
        return Scores(values, values / 2, values / 4, np.array([len(group) - 1 for group in refs]))

    def close(self):
        self.closed = True

    @property
    def batches(self):
        """The calls but for the probes."""
        return [call for call in self.calls if call != ["a probe"]]


@pytest.fixture
def fake():
    scorer = FakeScorer()
    yield scorer
    scorer.gate.set()


@pytest.fixture
def make_batcher(fake):
    """Return a function that makes a batcher of the fake scorer."""
    made = []

    def make(scorer=fake, **options):
        made.append(MicroBatcher(scorer, **options))
        return made[-1]

    yield make
    fake.gate.set()
    for batcher in made:
        batcher.close()


@pytest.fixture
def held(fake):
    """Return a function that keeps a batcher's worker busy until `fake.gate` is set."""

    def hold(batcher, **options):
        future = batcher.submit(["hold"], ["x"], **options)
        assert fake.entered.wait(GUARD)
        return future

    return hold


@pytest.fixture
def until():
    """Return a function that waits for what no event tells, looking again and again."""

    def wait(condition):
        pause = threading.Event()
        for _ in range(GUARD * 200):
            if condition():
                return
            pause.wait(0.005)
        raise AssertionError("This did not come about in time.")

    return wait
