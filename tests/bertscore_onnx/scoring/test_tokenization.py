"""`count_documents`: what it reads, how it tokenises, and what it refuses."""

import pytest

from bertscore_onnx import count_documents
from bertscore_onnx.errors import BundleNotFoundError, InputError, UnknownModelError
from bertscore_onnx.scoring.inputs import PAIRS_AT_ONCE
from tests.support.scores import REFERENCES


def test_texts_are_read_a_few_at_a_time(tiny_bundle, many_texts):
    texts, read_before = many_texts
    count_documents(texts, tiny_bundle)
    assert read_before == [PAIRS_AT_ONCE, 2 * PAIRS_AT_ONCE, 3 * PAIRS_AT_ONCE]


def test_the_bundle_is_found_as_that_of_a_scorer(tiny_bundle, home):
    with pytest.raises(UnknownModelError):
        count_documents(REFERENCES, "no-such-model")
    with pytest.raises(BundleNotFoundError):
        count_documents(REFERENCES, "./no/such/folder")
    with pytest.raises(InputError, match="max_length is 33"):
        count_documents(REFERENCES, tiny_bundle, max_length=33)
