import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import IdfError
from bertscore_onnx_service import MicroBatcher
from tests.support.fake_scorer import GUARD

pytestmark = pytest.mark.slow

WORDS = ["cat", "sat", "on", "mat", "seven", "small", "dogs", "ran", "round", "two", "old", "houses", "by", "lake"]


def random_request(chance):
    def text():
        return " ".join(chance.choice(WORDS, size=chance.integers(1, 16)))

    count = chance.integers(1, 4)
    return [text() for _ in range(count)], [[text() for _ in range(chance.integers(1, 3))] for _ in range(count)]


@pytest.fixture(scope="module")
def scorer(minilm_bundle):
    with BERTScorer(minilm_bundle) as scorer:
        yield scorer


def test_sixteen_threads_get_the_scores_they_would_get_alone(scorer):
    chance = np.random.default_rng(7)
    requests = [random_request(chance) for _ in range(32)]
    start = threading.Barrier(16, timeout=GUARD)

    def score(share):
        start.wait()
        return [batcher.submit(*request).result(GUARD * 3) for request in share]

    with MicroBatcher(scorer) as batcher, ThreadPoolExecutor(16) as pool:
        shares = list(pool.map(score, [requests[thread::16] for thread in range(16)]))
        batches = batcher.stats().batches
    assert batches < len(requests) / 2
    for thread, share in enumerate(shares):
        for request, together in zip(requests[thread::16], share, strict=True):
            alone = scorer.score(*request)
            np.testing.assert_allclose(together, alone, atol=1e-5, rtol=0)
            np.testing.assert_array_equal(together.best_reference, alone.best_reference)


def test_an_empty_text_scores_zero_without_a_warning(scorer, recwarn):
    with MicroBatcher(scorer) as batcher:
        assert batcher.submit([""], ["the cat"]).result(GUARD).F.tolist() == [0]
        assert batcher.stats().warnings == 1
    assert not recwarn.list


def test_a_table_that_lacks_a_word_fails_that_request_alone(minilm_bundle):
    cat = {101: 0.0, 102: 0.0, 4937: 2.0}  # [CLS], [SEP] and "cat" in BERT's vocabulary
    with BERTScorer(minilm_bundle, idf=cat) as scorer, MicroBatcher(scorer) as batcher:
        known, unknown = batcher.submit(["cat"], ["cat"]), batcher.submit(["dog"], ["cat"])
        assert pytest.approx([1], abs=1e-5) == known.result(GUARD).F
        assert isinstance(unknown.exception(GUARD), IdfError)
        assert batcher.stats().restarts == 0
