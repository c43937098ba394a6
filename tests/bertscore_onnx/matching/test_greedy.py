from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.matching.greedy import (
    document_frequency,
    greedy_match,
    idf_weights,
    match_all,
    with_f_measure,
)


def shares(weights):
    """Let weights add up to 1, where there are any."""
    weights = np.float32(weights)
    return weights / (weights.sum() or 1)


def one_pair(candidate, reference, candidate_weights=None, reference_weights=None):
    """Match one pair; tokens weigh the same unless it is said what."""
    sides = [(candidate, candidate_weights), (reference, reference_weights)]
    arrays = [(np.float32(side), shares([1] * len(side) if weights is None else weights)) for side, weights in sides]
    return greedy_match(*arrays[0], *arrays[1])


@pytest.mark.parametrize(
    ("candidate", "reference", "weights", "expected"),
    [
        pytest.param([[1, 0], [0, 1]], [[0, 1], [1, 0]], {}, (1, 1), id="identical vectors"),
        pytest.param([[1, 0]], [[1, 0], [0, 1]], {}, (1, 0.5), id="recall averages the reference"),
        pytest.param([[1, 0]], [[1, 0], [0, 1]], {"reference_weights": [3, 1]}, (1, 0.75), id="weights"),
        pytest.param([[0, 1]], [[1, 0], [0, 1]], {"reference_weights": [1, 0]}, (1, 0), id="match without weight"),
        pytest.param([[1, 0]], [[-1, 0]], {}, (-1, -1), id="negative similarities"),
        pytest.param([[1, 0]], [[1, 0]], {"candidate_weights": [0]}, (0, 1), id="no weight at all"),
    ],
)
def test_the_score_of_a_pair(candidate, reference, weights, expected):
    assert one_pair(candidate, reference, **weights) == expected


def completed(precision, recall, is_scorable=True):
    """P, R and F of one pair, in one layer."""
    scores = with_f_measure(np.float32([[precision]]), np.float32([[recall]]), np.array([is_scorable]))
    return [float(values[0, 0]) for values in scores]


@pytest.mark.parametrize(
    ("precision", "recall", "expected"),
    [
        pytest.param(0.75, 0.25, [0.75, 0.25, 0.375], id="harmonic mean"),
        pytest.param(0, 0, [0, 0, 0], id="zeros"),
        pytest.param(0.5, -0.5, [0.5, -0.5, 0], id="precision and recall cancel out"),
        pytest.param(1.0000004, 1.0000001, [1, 1, 1], id="clipped at 1"),
        pytest.param(-1.0000004, -1, [-1, -1, -1], id="clipped at -1"),
    ],
)
def test_f_is_the_harmonic_mean_and_rounding_is_clipped(precision, recall, expected):
    assert completed(precision, recall) == expected


def test_a_pair_with_nothing_to_match_scores_plain_zeros():
    assert [str(score) for score in completed(-0.5, -0.5, is_scorable=False)] == ["0.0"] * 3


@given(st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_f_lies_between_precision_and_recall(precision, recall):
    low, high = sorted((precision, recall))
    assert low - 1e-6 <= completed(precision, recall)[2] <= min(high + 1e-6, 1)


def in_float64(candidate, candidate_weights, reference, reference_weights):
    """The paper's equations, token by token."""
    similarity = candidate.astype(np.float64) @ reference.astype(np.float64).T
    precision = sum(w * max(row) for w, row in zip(candidate_weights, similarity, strict=True)) / sum(candidate_weights)
    recall = sum(w * max(row) for w, row in zip(reference_weights, similarity.T, strict=True)) / sum(reference_weights)
    return precision, recall


@given(seed=st.integers(0, 2**32 - 1), lengths=st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_a_pair_follows_the_equations(seed, lengths):
    random = np.random.default_rng(seed)
    sides = []
    for length in lengths:
        vectors = random.normal(size=(length, 8)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        sides.append((vectors, random.uniform(0.1, 3, size=length).astype(np.float32)))
    (candidate, weights), (reference, other_weights) = sides
    expected = in_float64(candidate, weights, reference, other_weights)
    assert one_pair(candidate, reference, weights, other_weights) == pytest.approx(expected, abs=1e-5)


def random_texts(random, lengths):
    """Unit vectors and weights of texts, some of which weigh nothing."""
    vectors = [random.normal(size=(length, 8)).astype(np.float32) for length in lengths]
    vectors = [array / np.linalg.norm(array, axis=1, keepdims=True) for array in vectors]
    weights = [(random.uniform(0, 3, size=length) * random.integers(0, 2)).astype(np.float32) for length in lengths]
    return vectors, weights, np.cumsum([0, *lengths[:-1]])


@given(
    seed=st.integers(0, 2**32 - 1),
    cand_lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    ref_lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_all_against_all_equals_pair_by_pair(seed, cand_lengths, ref_lengths):
    random = np.random.default_rng(seed)
    candidates, cand_weights, cand_starts = random_texts(random, cand_lengths)
    references, ref_weights, ref_starts = random_texts(random, ref_lengths)
    precision, recall = match_all(
        np.concatenate(candidates), np.concatenate(cand_weights), cand_starts,
        np.concatenate(references), np.concatenate(ref_weights), ref_starts,
    )  # fmt: skip
    assert precision.shape == recall.shape == (len(cand_lengths), len(ref_lengths))
    for i, j in np.ndindex(precision.shape):
        expected = one_pair(candidates[i], references[j], cand_weights[i], ref_weights[j])
        assert (precision[i, j], recall[i, j]) == pytest.approx(expected, abs=1e-6)


def test_long_texts_are_matched_block_by_block(monkeypatch):
    monkeypatch.setattr("bertscore_onnx.matching.greedy.BLOCK_TOKENS", 6)
    random = np.random.default_rng(0)
    for lengths in ((20, 13), (6, 7), (1, 12), (5, 1)):
        candidate, reference = (random.normal(size=(length, 8)).astype(np.float32) for length in lengths)
        weights, other_weights = (random.uniform(0.1, 3, size=length).astype(np.float32) for length in lengths)
        expected = in_float64(candidate, weights, reference, other_weights)
        found = one_pair(candidate, reference, [*weights], [*other_weights])
        assert found == pytest.approx(expected, abs=1e-5)


def test_weights_are_the_smoothed_logarithm():
    weights = idf_weights(np.array([1, 2, 3, 0]), 3)
    assert weights.tolist() == pytest.approx([log(4 / 2), log(4 / 3), 0, log(4)])


@given(st.lists(st.lists(st.integers(0, 20), min_size=1), min_size=1))
def test_frequencies_equal_a_count_of_sets(documents):
    expected = Counter(token for document in documents for token in set(document))
    counted = document_frequency([np.array(document, dtype=np.int64) for document in documents], 21)
    assert counted.tolist() == [expected[token] for token in range(21)]
