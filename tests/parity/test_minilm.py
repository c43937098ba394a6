"""On pretrained weights, every score equals bert-score's within 1e-5."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from tests.support.bundles import exported
from tests.support.parity import EDGE_CASE_PAIRS, KNOWN_WARNINGS, ORDINARY_PAIRS, SEVERAL_REFERENCES, assert_same_scores

pytestmark = KNOWN_WARNINGS

LAYERS = [0, 4, 6]
"""The embeddings alone, one of the layers, and the last one; `test_all_layers.py` compares each of the seven."""

CANDIDATES, REFERENCES = map(list, zip(*EDGE_CASE_PAIRS, strict=True))
MULTI_CANDIDATES, MULTI_REFERENCES = map(list, zip(*SEVERAL_REFERENCES, strict=True))


@pytest.fixture(scope="module", params=LAYERS)
def layer(request):
    return request.param


@pytest.fixture(scope="module")
def bundle(layer, minilm):
    return exported(f"minilm-{layer}", minilm, num_layers=layer, name="all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def peer(layer, minilm, peer_of):
    return peer_of(minilm, layer)


def test_edge_case_pairs(bundle, peer):
    with BERTScorer(bundle) as scorer:
        assert_same_scores(scorer.score(CANDIDATES, REFERENCES), peer.score(CANDIDATES, REFERENCES, batch_size=1))


def test_several_references(bundle, peer):
    with BERTScorer(bundle) as scorer:
        assert_same_scores(
            scorer.score(MULTI_CANDIDATES, MULTI_REFERENCES),
            peer.score(MULTI_CANDIDATES, MULTI_REFERENCES, batch_size=1),
        )


def test_idf_and_a_baseline(bundle, layer, minilm, peer_of, baseline_path):
    peer = peer_of(
        minilm,
        layer,
        idf=True,
        idf_sents=REFERENCES,
        lang="en",
        rescale_with_baseline=True,
        baseline_path=str(baseline_path),
    )
    with BERTScorer(bundle, idf=True, rescale_with_baseline=True, baseline_path=baseline_path) as scorer:
        ours = scorer.score(CANDIDATES, REFERENCES)
    theirs = peer.score(CANDIDATES, REFERENCES, batch_size=1)
    assert_same_rescaled_scores(ours, theirs, peer.baseline_vals.numpy())


def assert_same_rescaled_scores(ours, theirs, baselines):
    """Undo the rescaling: near a baseline of 1 it magnifies the last digit of both alike."""
    raw = [array * (1 - baseline) + baseline for array, baseline in zip(ours, baselines, strict=True)]
    peer_raw = [array * (1 - float(b)) + float(b) for array, b in zip(theirs, baselines, strict=True)]
    assert_same_scores(raw, peer_raw)


def test_scores_depend_neither_on_the_batch_nor_on_the_order(minilm_bundle):
    candidates, references = map(list, zip(*EDGE_CASE_PAIRS, *ORDINARY_PAIRS, strict=True))
    order = np.random.default_rng(0).permutation(len(candidates))
    with BERTScorer(minilm_bundle) as scorer:
        together = np.stack(scorer.score(candidates, references))
        one_by_one = np.stack(scorer.score(candidates, references, batch_size=1))
        shuffled = np.stack(scorer.score([candidates[i] for i in order], [references[i] for i in order]))
    assert np.abs(one_by_one - together).max() <= 1e-5
    assert np.abs(shuffled - together[:, order]).max() <= 1e-5


def test_the_fast_tokenizer(minilm, minilm_scoring_bundle, peer_of):
    bundle = minilm_scoring_bundle
    peer = peer_of(minilm, 4, use_fast_tokenizer=True)
    with BERTScorer(bundle) as scorer:
        assert_same_scores(scorer.score(CANDIDATES, REFERENCES), peer.score(CANDIDATES, REFERENCES, batch_size=1))
    peer._tokenizer.model_max_length = 7
    with BERTScorer(bundle, max_length=7) as scorer:
        assert_same_scores(scorer.score(CANDIDATES, REFERENCES), peer.score(CANDIDATES, REFERENCES, batch_size=1))


@pytest.mark.parametrize("sentences", [["the cat"], ["", ""], ["the weather is cold"] * 3])
def test_idf_sentences_that_are_all_alike(minilm_bundle, minilm, peer_of, sentences):
    peer = peer_of(minilm, 4, idf=True, idf_sents=sentences)
    with BERTScorer(minilm_bundle, idf=True, idf_sents=sentences) as scorer:
        texts = (["It is freezing today.", "a dog ran"], ["It is very cold.", "the dog runs"])
        assert_same_scores(scorer.score(*texts), peer.score(*texts))
