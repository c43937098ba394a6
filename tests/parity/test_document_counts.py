from math import log

import pytest
from transformers import AutoTokenizer

from bertscore_onnx import count_documents
from tests.support.parity import EDGE_CASE_PAIRS, KNOWN_WARNINGS, ORDINARY_PAIRS

pytestmark = KNOWN_WARNINGS


def test_counts_are_those_of_bert_score(tiny_model, tiny_bundle):
    from bert_score.utils import get_idf_dict

    texts = [
        text for pair in [*EDGE_CASE_PAIRS, *ORDINARY_PAIRS, *ORDINARY_PAIRS[:3]] for text in pair
    ]
    expected = get_idf_dict(
        texts, AutoTokenizer.from_pretrained(tiny_model, use_fast=False), nthreads=0
    )
    counts = sum(count_documents(texts[start::7], tiny_bundle) for start in range(7))
    assert counts.tokens.tolist() == sorted(expected)
    smoothed = {
        token: log((counts.num_documents + 1) / (documents + 1))
        for token, documents in zip(counts.tokens.tolist(), counts.documents.tolist(), strict=True)
    }
    assert smoothed == pytest.approx(dict(expected), rel=1e-12)
