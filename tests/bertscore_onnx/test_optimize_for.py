"""`optimize_for` says how CPU threads are used, and changes no score."""

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
def test_scores_are_those_of_throughput(quick, scorer, number):
    candidates, references = ((texts * 50)[:number] for texts in (CANDIDATES, REFERENCES))
    assert largest_difference(quick.score(candidates, references), scorer.score(candidates, references)) <= 1e-6


def test_scoring_starts_no_thread_of_python(quick):
    before = threading.active_count()
    quick.score(CANDIDATES * 50, REFERENCES * 50)
    assert threading.active_count() == before


def test_threads_do_not_go_on_for_long_when_all_is_scored(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", nthreads=8, optimize_for="latency") as scorer:
        scorer.score(CANDIDATES, REFERENCES)
        before = time.process_time()
        time.sleep(0.4)  # eight times as long as they would by default
        assert time.process_time() - before < 0.1


def test_the_signature_does_not_tell(quick, scorer):
    assert quick.signature == scorer.signature


def test_another_aim_is_refused(tiny_bundle):
    with pytest.raises(InputError, match='optimize_for is \'speed\'; expected "throughput" or "latency"'):
        BERTScorer(tiny_bundle, optimize_for="speed")
