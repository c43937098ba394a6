import itertools
import weakref

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.matching.pairs import match_pairs
from bertscore_onnx.scoring.inputs import collect_items, slices_of
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL, largest_difference

PAIRS = list(itertools.product(CANDIDATES, REFERENCES))
MANY_CANDIDATES, MANY_REFERENCES = map(list, zip(*PAIRS, strict=True))


@pytest.mark.parametrize("idf", [False, True])
def test_several_chunks_score_like_one(tiny_bundle, request, idf):
    with BERTScorer(tiny_bundle, idf=idf) as scorer:
        expected = scorer.score(MANY_CANDIDATES, MANY_REFERENCES)
        request.getfixturevalue("small_chunks")
        assert largest_difference(scorer.score(MANY_CANDIDATES, MANY_REFERENCES), expected) <= 1e-6


def test_several_chunks_name_the_same_references(scorer, request):
    expected = scorer.score(CANDIDATES * 4, SEVERAL * 4)
    request.getfixturevalue("small_chunks")
    found = scorer.score(CANDIDATES * 4, SEVERAL * 4)
    assert largest_difference(found, expected) <= 1e-6
    assert found.best_reference.tolist() == expected.best_reference.tolist()


def test_several_chunks_score_every_layer_like_one(all_layers_bundle, request):
    with BERTScorer(all_layers_bundle, all_layers=True) as scorer:
        expected = scorer.score(MANY_CANDIDATES, MANY_REFERENCES)
        request.getfixturevalue("small_chunks")
        assert largest_difference(scorer.score(MANY_CANDIDATES, MANY_REFERENCES), expected) <= 1e-6


def test_a_chunk_ends_where_its_embeddings_are_large_enough(tiny_bundle, monkeypatch):
    chunks = embeddings_of_chunks(monkeypatch)
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_BYTES", 4 * 32 * 20)  # 20 tokens of the hidden size 32
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", 1)
    with BERTScorer(tiny_bundle) as scorer:
        scorer.score([f"cat {'dog ' * number}" for number in range(10)], ["the cat"] * 10)
    tokens = [size // (4 * 32) for size, _ in chunks]
    assert len(tokens) > 1
    assert all(20 <= number <= 20 + 12 for number in tokens[:-1])


@pytest.mark.parametrize(("nthreads", "most"), [(1, 1), (2, 2)])
def test_few_chunks_are_in_memory(tiny_bundle, monkeypatch, small_chunks, nthreads, most):
    chunks = embeddings_of_chunks(monkeypatch)
    alive = []  # how many there are whenever one is matched

    def count_and_match(*arguments):
        alive.append(sum(vectors() is not None for _, vectors in chunks))
        return match_pairs(*arguments)

    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.match_pairs", count_and_match)
    with BERTScorer(tiny_bundle, nthreads=nthreads) as scorer:
        assert len(list(scorer.stream(PAIRS * 8))) == len(PAIRS) * 8
    assert len(chunks) == 18
    assert 1 <= max(alive) <= most


def test_equal_texts_of_a_chunk_are_encoded_once(scorer, monkeypatch):
    chunks = embeddings_of_chunks(monkeypatch)
    scorer.score(["a cat", " a  cat", "a cat"], [["the dog", "a cat"], ["the dog"], ["the dog "]])
    [(size, _)] = chunks
    assert size == 4 * 32 * (4 + 4)  # a cat, the dog, each with its two special tokens


def test_texts_that_came_encoded_are_counted_like_others(scorer, small_chunks):
    counts = [
        scorer._pipeline.count_documents(slices_of(side))
        for side in (scorer.encode(SEVERAL), collect_items(SEVERAL, "texts"))
    ]
    assert counts[0] == counts[1]
    assert counts[0].num_documents == sum(map(len, SEVERAL))


def embeddings_of_chunks(monkeypatch):
    """Return a list that grows by the size in bytes of each chunk's embeddings, and a weak reference to them."""
    from bertscore_onnx.encoding.encoder import Encoder

    original, chunks = Encoder.encode, []

    def encode(*arguments, **options):
        embeddings = original(*arguments, **options)
        assert isinstance(embeddings.vectors, np.ndarray)
        chunks.append((embeddings.vectors.nbytes, weakref.ref(embeddings.vectors)))
        return embeddings

    monkeypatch.setattr(Encoder, "encode", encode)
    return chunks
