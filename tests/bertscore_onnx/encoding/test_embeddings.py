import numpy as np
import pytest

from bertscore_onnx.encoding.embeddings import TokenEmbeddings


@pytest.fixture
def embeddings():
    """Two texts in two layers: ids [7, 8] in the rows 2 and 3, id [9] in row 0, and padding in row 1."""
    return TokenEmbeddings(
        sequences=[np.array([7, 8]), np.array([9])],
        lengths=np.array([2, 1]),
        vectors=np.float32([[[9, 9], [1, 1], [7, 7], [8, 8]], [[0, 9], [1, 1], [0, 7], [0, 8]]]),
        starts=np.array([2, 0]),
    )


def test_the_vectors_of_one_text_are_found_in_each_layer(embeddings):
    found = [[embeddings.vectors_of(layer, text).tolist() for text in (0, 1)] for layer in (0, 1)]
    assert found == [[[[7, 7], [8, 8]], [[9, 9]]], [[[0, 7], [0, 8]], [[0, 9]]]]


def test_ids_are_laid_out_one_after_the_other(embeddings):
    ids, begins = embeddings.flat_ids(np.array([1, 0]))
    assert (ids.tolist(), begins.tolist()) == ([9, 7, 8], [0, 1])


def test_texts_are_laid_out_one_after_the_other(embeddings):
    vectors, weights, begins = embeddings.flat(0, np.array([1, 0, 1]), np.arange(10, dtype=np.float32))
    assert vectors.tolist() == [[9, 9], [7, 7], [8, 8], [9, 9]]
    assert weights.tolist() == [9, 7, 8, 9]
    assert begins.tolist() == [0, 1, 3]


def test_each_layer_is_laid_out_one_after_the_other_by_itself(embeddings):
    vectors, _, _ = embeddings.flat(1, np.array([0]), np.ones(10, dtype=np.float32))
    assert vectors.tolist() == [[0, 7], [0, 8]]
