import numpy as np
import pytest

from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.errors import EncodingError, IdfError
from bertscore_onnx.matching.greedy import greedy_match
from bertscore_onnx.matching.pairs import match_pairs
from bertscore_onnx.matching.weights import TokenWeights

FRAME, UNKNOWN = 0, 9
"""The id of a special token, which weighs nothing, and one that the table of weights lacks."""

IS_WORD = np.arange(10) != FRAME
WEIGHTS = TokenWeights(np.float32([0, 1, 2, 0.5, 1, 3, 0, 0, 1, np.nan]), IS_WORD, "made up")


@pytest.fixture
def threads():
    threads = ThreadPool(2, "test")
    yield threads
    threads.close()


def table_of(*texts):
    """Embed texts, given as ids, at random, in two layers."""
    lengths = np.array([len(ids) for ids in texts])
    vectors = np.random.default_rng(0).normal(size=(2, lengths.sum(), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return TokenEmbeddings([*map(np.array, texts)], lengths, vectors, np.cumsum(lengths) - lengths)


def match(table, candidate, reference, threads):
    """Return precision and recall, (2, layers, pairs), and all that was found."""
    found = match_pairs((table, np.array(candidate)), (table, np.array(reference)), WEIGHTS, threads)
    return np.array([found.precision, found.recall]), found


TABLE = table_of([0, 1, 2, 0], [0, 3, 0], [0, 4, 5, 8, 1, 0], [0, 5, 2, 0], [0, 1, 1, 8, 8, 3, 0])
CANDIDATE, REFERENCE = [0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 0, 1]


@pytest.mark.parametrize("max_tokens", [1, 8, 4096])
def test_every_pair_scores_as_by_itself(threads, monkeypatch, max_tokens):
    monkeypatch.setattr("bertscore_onnx.matching.pairs.BATCH_TOKENS", max_tokens)
    together, _ = match(TABLE, CANDIDATE, REFERENCE, threads)
    for pair, texts in enumerate(zip(CANDIDATE, REFERENCE, strict=True)):
        for layer in range(2):
            sides = []
            for text in texts:
                weights = WEIGHTS.table[TABLE.sequences[text]]
                sides += [TABLE.vectors_of(layer, text), weights / weights.sum()]
            expected = greedy_match(*sides)
            assert together[:, layer, pair] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("layer", [0, 1])
def test_vectors_that_are_not_finite_are_told(threads, layer):
    table = table_of([0, 1, 2, 0], [0, 3, 0], [0, 4, 5, 0])
    table.vectors_of(layer, 1)[0, 3] = np.nan
    match(table, [0, 2], [2, 0], threads)
    with pytest.raises(EncodingError, match="infinite or undefined vectors"):
        match(table, [0, 2], [2, 1], threads)


@pytest.mark.parametrize("together", [False, True])
def test_a_side_with_nothing_to_match_gives_plain_zeros_and_is_counted(threads, together):
    table = table_of([0, 1, 2, 0], [0, 0], [0, 6, 7, 0], [0, 3, 4, 1, 0])
    table.vectors[:] = 1 / np.sqrt(8)
    for layer in range(2):
        table.vectors_of(layer, 0)[:] *= -1  # all similarities -1
    candidate, reference = [0, 0, 1, 2, 0], [1, 2, 0, 3, 3]
    if together:
        scores, found = match(table, candidate, reference, threads)
        assert (found.num_empty, found.num_zero_weight) == (2, 2)
    else:
        singly = [match(table, [one], [other], threads) for one, other in zip(candidate, reference, strict=True)]
        scores = np.concatenate([scores for scores, _ in singly], axis=2)
        assert [found.num_empty for _, found in singly] == [1, 0, 1, 0, 0]
        assert [found.num_zero_weight for _, found in singly] == [0, 1, 0, 1, 0]
    assert (scores[..., :4] == 0).all()
    assert not np.signbit(scores[..., :4]).any()
    assert scores[..., 4] == pytest.approx(-1)


def test_a_missing_weight_matters_only_where_its_token_occurs(threads):
    table = table_of([UNKNOWN, 1], [1, 2], [2, 3, 4])
    scores, _ = match(table, [1, 2], [2, 2], threads)
    assert np.isfinite(scores).all()
    for candidate in ([0], [1, 0]):
        with pytest.raises(IdfError, match="9"):
            match(table, candidate, [2] * len(candidate), threads)
