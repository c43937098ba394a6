"""A batcher with a real scorer; reliability case 1 compares the scores of many clients with those
of each alone.
"""

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import IdfError
from bertscore_onnx_service import MicroBatcher
from tests.support.fake_scorer import GUARD

pytestmark = pytest.mark.slow


def test_an_empty_text_scores_zero_without_a_warning(minilm_bundle, recwarn):
    with BERTScorer(minilm_bundle) as scorer, MicroBatcher(scorer) as batcher:
        assert batcher.submit([""], ["the cat"]).result(GUARD).F.tolist() == [0]
        assert batcher.stats().warnings == 1
    assert not recwarn.list


def test_a_table_that_lacks_a_word_fails_that_request_alone(minilm_bundle):
    cat = {101: 0.0, 102: 0.0, 4937: 2.0}  # [CLS], [SEP] and "cat" in BERT's vocabulary
    with BERTScorer(minilm_bundle, idf=cat) as scorer, MicroBatcher(scorer) as batcher:
        known, unknown = batcher.submit(["cat"], ["cat"]), batcher.submit(["dog"], ["cat"])
        assert pytest.approx([1], abs=1e-5) == known.result(GUARD).F
        assert isinstance(unknown.exception(GUARD), IdfError)
        assert batcher.live
