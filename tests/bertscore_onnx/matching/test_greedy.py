import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.matching.greedy import (
    BLOCK_TOKENS,
    greedy_match,
    with_f_measure,
)


def shares(weights):
    """Let weights add up to 1, where there are any."""
    weights = np.float32(weights)
    return weights / (weights.sum() or 1)


def one_pair(candidate, reference, candidate_weights=None, reference_weights=None):
    """Match one pair; tokens weigh the same unless it is said what."""
    sides = [(candidate, candidate_weights), (reference, reference_weights)]
    arrays = [
        (np.float32(side), shares([1] * len(side) if weights is None else weights))
        for side, weights in sides
    ]
    return greedy_match(*arrays[0], *arrays[1])


@pytest.mark.parametrize(
    ("candidate", "reference", "weights", "expected"),
    [
        pytest.param([[1, 0], [0, 1]], [[0, 1], [1, 0]], {}, (1, 1), id="identical vectors"),
        pytest.param([[1, 0]], [[1, 0], [0, 1]], {}, (1, 0.5), id="recall averages the reference"),
        pytest.param(
            [[1, 0]], [[1, 0], [0, 1]], {"reference_weights": [3, 1]}, (1, 0.75), id="weights"
        ),
        pytest.param(
            [[0, 1]],
            [[1, 0], [0, 1]],
            {"reference_weights": [1, 0]},
            (1, 0),
            id="match without weight",
        ),
        pytest.param([[1, 0]], [[-1, 0]], {}, (-1, -1), id="negative similarities"),
        pytest.param([[1, 0]], [[1, 0]], {"candidate_weights": [0]}, (0, 1), id="no weight at all"),
    ],
)
def test_the_score_of_a_pair(candidate, reference, weights, expected):
    assert one_pair(candidate, reference, **weights) == expected


def completed(precision, recall, is_scorable=True):
    """P, R and F of one pair, in one layer."""
    scores = with_f_measure(
        np.float32([[precision]]), np.float32([[recall]]), np.array([is_scorable])
    )
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


def in_float64(candidate, candidate_weights, reference, reference_weights):
    """The paper's equations, token by token."""
    similarity = candidate.astype(np.float64) @ reference.astype(np.float64).T
    precision = sum(
        w * max(row) for w, row in zip(candidate_weights, similarity, strict=True)
    ) / sum(candidate_weights)
    recall = sum(
        w * max(row) for w, row in zip(reference_weights, similarity.T, strict=True)
    ) / sum(reference_weights)
    return precision, recall


@given(
    seed=st.integers(0, 2**32 - 1),
    lengths=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    block=st.sampled_from([6, BLOCK_TOKENS]),
)
def test_a_pair_follows_the_equations_in_blocks_of_any_size(seed, lengths, block):
    random = np.random.default_rng(seed)
    sides = []
    for length in lengths:
        vectors = random.normal(size=(length, 8)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        sides.append((vectors, random.uniform(0.1, 3, size=length).astype(np.float32)))
    (candidate, weights), (reference, other_weights) = sides
    expected = in_float64(candidate, weights, reference, other_weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertscore_onnx.matching.greedy.BLOCK_TOKENS", block)
        assert one_pair(candidate, reference, weights, other_weights) == pytest.approx(
            expected, abs=1e-5
        )
