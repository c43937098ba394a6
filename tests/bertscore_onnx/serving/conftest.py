"""Batchers of a fake scorer, closed at the end."""

import threading

import pytest

from bertscore_onnx.serving import MicroBatcher
from tests.support.fake_scorer import GUARD, FakeScorer


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
