"""On pretrained weights, every score and every baseline equals bert-score's within 1e-5."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.baselines import compute_baseline
from bertscore_onnx.scoring.pipeline import Pipeline
from tests.support.bundles import exported
from tests.support.parity import (
    EDGE_CASE_PAIRS,
    KNOWN_WARNINGS,
    ORDINARY_PAIRS,
    SEVERAL_REFERENCES,
    assert_same_scores,
)

pytestmark = KNOWN_WARNINGS

LAYERS = [pytest.param(0, marks=pytest.mark.full), 4, pytest.param(6, marks=pytest.mark.full)]
"""The embeddings alone, one of the layers, and the last one; of the bundle of all layers each is
compared.
"""

EDGE_CANDIDATES, EDGE_REFERENCES = map(list, zip(*EDGE_CASE_PAIRS, strict=True))
PAIRS = [*EDGE_CASE_PAIRS, *ORDINARY_PAIRS]
CANDIDATES, REFERENCES = map(list, zip(*PAIRS, strict=True))
MULTI_CANDIDATES, MULTI_REFERENCES = map(list, zip(*SEVERAL_REFERENCES, strict=True))
SOME_CANDIDATES, SOME_REFERENCES = map(
    list, zip(*EDGE_CASE_PAIRS[:12], *ORDINARY_PAIRS[:8], strict=True)
)


@pytest.fixture(scope="module", params=LAYERS)
def layer(request):
    return request.param


@pytest.fixture(scope="module")
def bundle(layer, minilm):
    return exported(f"minilm-{layer}", minilm, num_layers=layer, name="all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def peer(layer, minilm, peer_of):
    return peer_of(minilm, layer)


@pytest.fixture(scope="module")
def theirs(peer):
    return peer.score(CANDIDATES, REFERENCES, batch_size=1)


@pytest.fixture(scope="module")
def scorer(bundle):
    with BERTScorer(bundle) as scorer:
        yield scorer


@pytest.fixture
def chunks(monkeypatch):
    """Let chunks be small; return a list of the candidates that each of them has."""
    original, sizes = Pipeline.chunks, []

    def chunks_of(*arguments, **options):
        for chunk in original(*arguments, **options):
            sizes.append(chunk.num_candidates)
            yield chunk

    monkeypatch.setattr(Pipeline, "chunks", chunks_of)
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", 9)
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", 3)
    return sizes


def test_pairs(scorer, theirs):
    assert_same_scores(scorer.score(CANDIDATES, REFERENCES), theirs)


@pytest.mark.parametrize(
    "score",
    [
        lambda scorer: scorer.score(CANDIDATES, REFERENCES),
        lambda scorer: np.transpose(list(scorer.stream(PAIRS))),
        lambda scorer: scorer.score(scorer.encode(CANDIDATES), scorer.encode(REFERENCES)),
    ],
    ids=["texts", "stream", "encoded"],
)
def test_pairs_in_several_chunks(scorer, theirs, chunks, score):
    assert_same_scores(score(scorer), theirs)
    assert sum(chunks) == len(PAIRS)
    assert len(chunks) >= 4


def test_several_references(scorer, peer):
    theirs = peer.score(MULTI_CANDIDATES, MULTI_REFERENCES, batch_size=1)
    for references in (MULTI_REFERENCES, scorer.encode(MULTI_REFERENCES)):
        assert_same_scores(scorer.score(MULTI_CANDIDATES, references), theirs)


def test_idf_and_a_baseline_in_several_chunks(
    bundle, layer, minilm, peer_of, baseline_path, chunks
):
    rescaling = {"rescale_with_baseline": True, "baseline_path": str(baseline_path)}
    peer = peer_of(minilm, layer, idf=True, idf_sents=EDGE_REFERENCES, lang="en", **rescaling)
    with BERTScorer(bundle, idf=True, **rescaling) as scorer:
        ours = scorer.score(EDGE_CANDIDATES, EDGE_REFERENCES)
    assert len(chunks) >= 4
    theirs = peer.score(EDGE_CANDIDATES, EDGE_REFERENCES, batch_size=1)
    assert_same_rescaled_scores(ours, theirs, peer.baseline_vals.numpy())


def assert_same_rescaled_scores(ours, theirs, baselines):
    """Undo the rescaling: near a baseline of 1 it magnifies the last digit of both alike."""
    raw = [
        array * (1 - baseline) + baseline for array, baseline in zip(ours, baselines, strict=True)
    ]
    peer_raw = [
        array * (1 - float(b)) + float(b) for array, b in zip(theirs, baselines, strict=True)
    ]
    assert_same_scores(raw, peer_raw)


def test_the_fast_tokenizer(minilm, minilm_scoring_bundle, peer_of):
    peer = peer_of(minilm, 4, use_fast_tokenizer=True)
    for options in ({}, {"max_length": 7}):
        peer._tokenizer.model_max_length = options.get(
            "max_length", peer._tokenizer.model_max_length
        )
        with BERTScorer(minilm_scoring_bundle, **options) as scorer:
            ours = scorer.score(EDGE_CANDIDATES, EDGE_REFERENCES)
        assert_same_scores(ours, peer.score(EDGE_CANDIDATES, EDGE_REFERENCES, batch_size=1))


@pytest.fixture(scope="module")
def of_all_layers(minilm_all_layers_bundle):
    with BERTScorer(minilm_all_layers_bundle, all_layers=True) as scorer:
        yield scorer


def assert_same_layers(ours, theirs):
    theirs = np.stack([array.numpy() for array in theirs])  # (3, layers, pairs)
    defined = np.isfinite(theirs)
    assert defined.mean() > 0.9
    assert np.abs(np.stack(ours) - theirs)[defined].max() <= 1e-5


def test_every_layer_is_scored(of_all_layers, minilm, peer_of):
    peer = peer_of(minilm, 6, all_layers=True)
    scores = of_all_layers.score(SOME_CANDIDATES, SOME_REFERENCES)
    assert scores.F.shape == (7, 20)
    assert_same_layers(scores, peer.score(SOME_CANDIDATES, SOME_REFERENCES, batch_size=1))


def test_every_layer_is_rescaled_by_its_own_baseline(of_all_layers, minilm, peer_of, baseline_path):
    peer = peer_of(
        minilm,
        6,
        all_layers=True,
        lang="en",
        rescale_with_baseline=True,
        baseline_path=str(baseline_path),
    )
    with of_all_layers.with_rescaling(baseline_path=baseline_path) as scorer:
        ours = scorer.score(SOME_CANDIDATES[4:], SOME_REFERENCES[4:])
    assert_same_layers(ours, peer.score(SOME_CANDIDATES[4:], SOME_REFERENCES[4:], batch_size=1))


def bert_scores_baseline(peer, texts, seed):
    """Draw pairs as `get_rescale_baseline.py` does, and return the means of P, R and F, (layers,
    3).

    One pair a batch: in a larger one padding wins where all similarities of a token are negative.
    """
    lines = [line.strip() for line in texts]
    lines = [line for line in lines if len(line.split(" ")) < 32]
    np.random.seed(seed)
    first, second = np.random.choice(range(len(lines)), size=(2, len(lines) // 2), replace=False)
    scores = peer.score([lines[i] for i in first], [lines[i] for i in second], batch_size=1)
    return np.stack([array.numpy().mean(axis=-1) for array in scores], axis=1)


def test_every_layer_has_bert_scores_baseline(of_all_layers, minilm, peer_of):
    texts = [text for pair in ORDINARY_PAIRS for text in pair] * 2
    texts += ["a text that has far too many words " * 5, "  one in white space  "]
    with pytest.warns(UserWarning, match="rows repeat others"):
        measured = compute_baseline(of_all_layers, texts, seed=12345)
    ours = np.array(
        [(layer.mean.precision, layer.mean.recall, layer.mean.f1) for layer in measured.layers]
    )
    assert measured.num_pairs > 20
    theirs = bert_scores_baseline(peer_of(minilm, 6, all_layers=True), texts, 12345)
    assert np.abs(ours - theirs).max() <= 1e-5


@pytest.mark.parametrize("sentences", [["the cat"], ["", ""], ["the weather is cold"] * 3])
def test_idf_sentences_that_are_all_alike(minilm_bundle, minilm, peer_of, sentences):
    peer = peer_of(minilm, 4, idf=True, idf_sents=sentences)
    with BERTScorer(minilm_bundle, idf=True, idf_sents=sentences) as scorer:
        texts = (["It is freezing today.", "a dog ran"], ["It is very cold.", "the dog runs"])
        assert_same_scores(scorer.score(*texts), peer.score(*texts))
