from concurrent.futures import wait

import pytest

from bertscore_onnx_service import MicroBatcher
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
def score_together(fake, held):
    """Return a function that submits texts while the worker is busy, waits, and returns their
    futures.
    """

    def score(batcher, *texts):
        held(batcher)
        futures = [batcher.submit([text], ["x"]) for text in texts]
        fake.gate.set()
        assert not wait(futures, GUARD).not_done
        return futures

    return score
