"""`optimize_for` sets how CPU threads are used, and changes no score."""

import threading
import time

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError
from tests.support.scores import CANDIDATES, REFERENCES, largest_difference


@pytest.fixture(scope="module")
def quick(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", nthreads=3, optimize_for="latency") as quick:
        yield quick


@pytest.mark.parametrize("number", [1, len(CANDIDATES), 50 * len(CANDIDATES)])
def test_scores_are_those_of_throughput_without_another_thread_of_python(quick, scorer, number):
    candidates, references = ((texts * 50)[:number] for texts in (CANDIDATES, REFERENCES))
    expected = scorer.score(candidates, references)
    before = threading.active_count()
    found = quick.score(candidates, references)
    assert threading.active_count() == before
    assert largest_difference(found, expected) <= 1e-6
    assert quick.signature == scorer.signature


def test_threads_do_not_go_on_for_long_when_all_is_scored(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", nthreads=8, optimize_for="latency") as scorer:
        scorer.score(CANDIDATES, REFERENCES)
        before = time.process_time()
        time.sleep(0.4)  # eight times as long as they would by default
        assert time.process_time() - before < 0.1


def test_another_aim_is_refused(tiny_bundle):
    with pytest.raises(InputError, match='optimize_for is \'speed\'; expected "throughput" or "latency"'):
        BERTScorer(tiny_bundle, optimize_for="speed")
