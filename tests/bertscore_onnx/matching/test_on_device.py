"""The graph that matches vectors on a device, on the provider of the CPU: against numpy in fp32 and
fp64.
"""

import numpy as np
import pytest

from bertscore_onnx.concurrency.threads import Threads
from bertscore_onnx.encoding.device import DeviceVectors
from bertscore_onnx.encoding.encoder import TokenEmbeddings
from bertscore_onnx.encoding.providers import CPU
from bertscore_onnx.errors import EncodingError, OutOfMemoryError
from bertscore_onnx.matching.on_device import MatchingGraph
from bertscore_onnx.matching.pairs import match_pairs
from bertscore_onnx.matching.weights import TokenWeights
from tests.support.token_similarity import encoded_texts

VOCABULARY, SPECIAL = 500, 2
THREADS = Threads(0, "match")


class Texts:
    """Random texts, with the same vectors on the host and on a device."""

    def __init__(
        self, draw, lengths, hidden=48, layers=1, rows_of_runs=(7, 40, 3), dtype=np.float32
    ):
        self.lengths = np.array(lengths)
        runs = [*rows_of_runs, int(self.lengths.sum()) + 64]
        starts = sum(rows_of_runs) + np.cumsum(self.lengths) - self.lengths
        # so that all are alike, as in real models
        vectors = draw.standard_normal((layers, sum(runs), hidden)) + 1
        vectors = (
            (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
            .astype(dtype)
            .astype(np.float32)
        )
        ends = np.cumsum(runs)
        spans = [slice(end - size, end) for end, size in zip(ends.tolist(), runs, strict=True)]
        on_device = DeviceVectors(CPU, spans, hidden, layers, range(layers))
        blocks = [vectors[:, span].reshape(-1, hidden) for span in spans]  # as the runs write them
        on_device.buffer.update_inplace(np.concatenate(blocks))
        ids = [draw.integers(0, VOCABULARY, length) for length in lengths]
        self.host, self.device = (
            TokenEmbeddings(ids, self.lengths, table, starts, ids) for table in (vectors, on_device)
        )


@pytest.fixture
def draw():
    return np.random.default_rng(0)


@pytest.fixture
def graph():
    return MatchingGraph(CPU)


@pytest.fixture
def weights(draw):
    """Weights by idf, a third of them 0; the first ids are special."""
    table = np.where(draw.random(VOCABULARY) < 1 / 3, 0, draw.random(VOCABULARY) * 8).astype(
        np.float32
    )
    return TokenWeights(table, np.arange(VOCABULARY) >= SPECIAL, "random")


def match(texts, pairs, weights, graph=None, place="device"):
    table = getattr(texts, place)
    return match_pairs(
        *(encoded_texts(table, rows) for rows in pairs),
        weights,
        THREADS,
        on_device=graph and graph.match_pairs,
    )


def in_fp64(texts, candidate, reference, weights, layer):
    """Return P and R of a pair by the paper's equations."""
    sides = []
    for text in (candidate, reference):
        vectors = texts.host.vectors_of(layer, text).astype(np.float64)
        sides.append((vectors, weights.table[texts.host.sequences[text]].astype(np.float64)))
    similarity = sides[0][0] @ sides[1][0].T
    best = similarity.max(axis=1), similarity.max(axis=0)
    means = [
        values @ of_side / of_side.sum() for values, (_, of_side) in zip(best, sides, strict=True)
    ]
    return np.clip(means, -1, 1)  # vectors rounded to fp16 are no unit vectors


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("layers", [1, 3])
def test_scores_are_those_of_numpy(draw, graph, weights, layers, dtype):
    lengths = np.concatenate(
        [[1, 1, 2, 512, 511, 300], draw.integers(1, 60, 250), draw.integers(60, 200, 20)]
    )
    texts = Texts(draw, lengths, layers=layers, dtype=dtype)
    pairs = draw.integers(0, len(lengths), (2, 10_000))
    pairs[:, :6] = [[0, 3, 2, 4, 5, 0], [1, 4, 3, 0, 5, 3]]
    (found, nothing), (expected, expected_nothing) = (
        match(texts, pairs, weights, graph),
        match(texts, pairs, weights, place="host"),
    )
    for values, expected_values in zip(found, expected, strict=True):
        assert np.abs(values - expected_values).max() <= 1e-6
    np.testing.assert_equal(nothing, expected_nothing)
    assert nothing["zero_weight"].sum() > 10
    scorable = np.flatnonzero(expected.f1[0])[:300]
    for layer in range(layers):
        for pair in scorable:
            exact = in_fp64(texts, *pairs[:, pair], weights, layer)
            assert (
                np.abs(
                    np.array(exact) - [found.precision[layer, pair], found.recall[layer, pair]]
                ).max()
                <= 1e-6
            )


def test_a_pair_has_the_same_bits_beside_any_others(draw, graph, weights):
    texts = Texts(draw, draw.integers(1, 150, 80), hidden=384)
    pairs = draw.integers(0, 80, (2, 400))
    expected, _ = match(texts, pairs, weights, graph)
    order = draw.permutation(400)
    shuffled, _ = match(texts, pairs[:, order], weights, graph)
    assert np.array_equal(shuffled.f1, expected.f1[:, order])
    doubled, _ = match(texts, np.concatenate([pairs, pairs], axis=1), weights, graph)
    assert np.array_equal(doubled.f1, np.concatenate([expected.f1, expected.f1], axis=1))
    for pair in range(60):
        alone, _ = match(texts, pairs[:, pair : pair + 1], weights, graph)
        assert alone.precision == expected.precision[:, pair]
        assert alone.recall == expected.recall[:, pair]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_an_error(draw, graph, weights, value):
    texts = Texts(draw, [5, 6, 7])
    weights.table[:] = 1
    vectors = texts.host.vectors.copy()
    vectors[0, texts.host.starts[1] + 2, 3] = value
    texts.device.vectors.buffer.update_inplace(vectors[0])
    match(texts, np.array([[0], [2]]), weights, graph)
    with pytest.raises(EncodingError, match="infinite or undefined vectors"):
        match(texts, np.array([[0, 0], [2, 1]]), weights, graph)


def test_without_memory_on_the_device_pairs_are_matched_on_the_host(
    draw, weights, graph, monkeypatch, caplog
):
    texts, pairs = Texts(draw, draw.integers(1, 30, 20)), draw.integers(0, 20, (2, 50))
    expected, _ = match(texts, pairs, weights, place="host")

    def match_without_memory(self, *sides):
        raise OutOfMemoryError("Failed to allocate memory.")

    monkeypatch.setattr(MatchingGraph, "match", match_without_memory)
    scores, _ = match(texts, pairs, weights, graph)
    assert np.array_equal(scores.f1, expected.f1)
    assert "matched on the host" in caplog.text
