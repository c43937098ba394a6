"""Scores in several chunks, streamed, from encoded texts and of every pair equal bert-score's within 1e-5."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.scoring.pipeline import Chunk
from tests.support.parity import EDGE_CASE_PAIRS, KNOWN_WARNINGS, ORDINARY_PAIRS, SEVERAL_REFERENCES, assert_same_scores

pytestmark = KNOWN_WARNINGS

PAIRS = [*EDGE_CASE_PAIRS, *ORDINARY_PAIRS]
CANDIDATES, REFERENCES = map(list, zip(*PAIRS, strict=True))
MULTI_CANDIDATES, MULTI_REFERENCES = map(list, zip(*SEVERAL_REFERENCES, strict=True))


@pytest.fixture
def chunks(monkeypatch):
    """Let chunks be small; return a list of the candidates that each of them has."""
    original, sizes = Chunk.match, []

    def match(chunk, *arguments):
        sizes.append(chunk.num_candidates)
        return original(chunk, *arguments)

    monkeypatch.setattr(Chunk, "match", match)
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", 9)
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", 3)
    return sizes


@pytest.fixture(scope="module")
def peer(minilm, peer_of):
    return peer_of(minilm, 4)


@pytest.fixture(scope="module")
def theirs(peer):
    return peer.score(CANDIDATES, REFERENCES, batch_size=1)


@pytest.fixture(scope="module")
def scorer(minilm_bundle):
    with BERTScorer(minilm_bundle) as scorer:
        yield scorer


def test_several_chunks(scorer, theirs, chunks):
    assert_same_scores(scorer.score(CANDIDATES, REFERENCES), theirs)
    assert sum(chunks) == len(PAIRS)
    assert len(chunks) >= 4


def test_several_chunks_with_idf(minilm_bundle, minilm, peer_of, chunks):
    peer = peer_of(minilm, 4, idf=True, idf_sents=REFERENCES)
    with BERTScorer(minilm_bundle, idf=True) as scorer:
        ours = scorer.score(CANDIDATES, REFERENCES)
    assert len(chunks) >= 4
    assert_same_scores(ours, peer.score(CANDIDATES, REFERENCES, batch_size=1))


def test_a_stream(scorer, theirs, chunks):
    assert_same_scores(np.transpose(list(scorer.stream(PAIRS))), theirs)
    assert len(chunks) >= 4


def test_encoded_texts(scorer, theirs, chunks):
    assert_same_scores(scorer.score(scorer.encode(CANDIDATES), scorer.encode(REFERENCES)), theirs)
    assert len(chunks) >= 4


def test_several_encoded_references(scorer, peer):
    ours = scorer.score(MULTI_CANDIDATES, scorer.encode(MULTI_REFERENCES))
    assert_same_scores(ours, peer.score(MULTI_CANDIDATES, MULTI_REFERENCES, batch_size=1))


def test_the_diagonal_of_every_pair(scorer, theirs):
    ours = scorer.pairwise(CANDIDATES, REFERENCES)
    assert_same_scores([np.diagonal(array) for array in ours], theirs)


def test_every_pair(scorer, peer):
    candidates, references = CANDIDATES[4:9], REFERENCES[10:16]
    ours = scorer.pairwise(candidates, references)
    for column, reference in enumerate(references):
        theirs = peer.score(candidates, [reference] * len(candidates), batch_size=1)
        assert_same_scores([array[:, column] for array in ours], theirs)
