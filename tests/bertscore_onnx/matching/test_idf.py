from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.matching.greedy import document_frequency, idf_weights, uniform_weights

DOCUMENTS = [np.array([2, 0, 0, 3]), np.array([2, 1, 3]), np.array([2, 1, 3])]


def test_a_token_counts_once_for_each_document():
    assert document_frequency(DOCUMENTS, 5).tolist() == [1, 2, 3, 3, 0]


def test_weights_are_the_smoothed_logarithm():
    weights = idf_weights(np.array([1, 2, 3, 0]), 3)
    assert weights.tolist() == pytest.approx([log(4 / 2), log(4 / 3), 0, log(4)])


def test_uniform_weights_spare_the_zero_ids():
    assert uniform_weights(4, [1, 3]).tolist() == [1, 0, 1, 0]


@given(st.lists(st.lists(st.integers(0, 20), min_size=1), min_size=1))
def test_frequencies_equal_a_count_of_sets(documents):
    expected = Counter(token for document in documents for token in set(document))
    counted = document_frequency([np.array(document, dtype=np.int64) for document in documents], 21)
    assert counted.tolist() == [expected[token] for token in range(21)]
