"""On pretrained weights, the scores of every layer equal bert-score's within 1e-5."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from tests.support.bundles import exported, saved
from tests.support.parity import EDGE_CASE_PAIRS, KNOWN_WARNINGS, ORDINARY_PAIRS, SEVERAL_REFERENCES

pytestmark = KNOWN_WARNINGS

LAYERS = range(7)
TEXTS = [list(side) for side in zip(*ORDINARY_PAIRS[:8], strict=True)]
CANDIDATES, REFERENCES = map(list, zip(*EDGE_CASE_PAIRS[:12], *ORDINARY_PAIRS[:8], strict=True))


def assert_same(ours, theirs):
    theirs = np.stack([array.numpy() for array in theirs])  # (3, layers, pairs)
    defined = np.isfinite(theirs)
    assert defined.mean() > 0.9
    assert np.abs(np.stack(ours) - theirs)[defined].max() <= 1e-5


def test_every_layer_is_scored(minilm_all_layers_bundle, minilm, peer_of):
    peer = peer_of(minilm, len(LAYERS) - 1, all_layers=True)
    with BERTScorer(minilm_all_layers_bundle, all_layers=True) as scorer:
        scores = scorer.score(CANDIDATES, REFERENCES)
    assert scores.F.shape == (7, 20)
    assert_same(scores, peer.score(CANDIDATES, REFERENCES, batch_size=1))


def test_every_layer_is_rescaled_by_its_own_baseline(minilm_all_layers_bundle, minilm, peer_of, baseline_path):
    options = {"rescale_with_baseline": True, "baseline_path": str(baseline_path)}
    peer = peer_of(minilm, len(LAYERS) - 1, all_layers=True, lang="en", **options)
    with BERTScorer(minilm_all_layers_bundle, all_layers=True, **options) as scorer:
        ours = scorer.score(CANDIDATES[4:], REFERENCES[4:])
    assert_same(ours, peer.score(CANDIDATES[4:], REFERENCES[4:], batch_size=1))


def test_several_references_are_the_best_of_the_pairs_in_every_layer(minilm_all_layers_bundle):
    """bert-score takes the maximum along the wrong axis here, so the oracle is one reference at a time."""
    with BERTScorer(minilm_all_layers_bundle, all_layers=True) as scorer:
        for candidate, references in SEVERAL_REFERENCES:
            scores = scorer.score([candidate], [references])
            singly = np.stack([np.stack(scorer.score([candidate], [reference])) for reference in references])
            assert np.abs(np.stack(scores) - singly.max(axis=0)).max() <= 1e-5
            assert (scores.best_reference[:, 0] == singly[:, 2, :, 0].argmax(axis=0)).all()


@pytest.mark.parametrize("name", ["t5", pytest.param("mbart", marks=pytest.mark.full)])
def test_each_layer_of_a_model_with_a_final_norm_is_that_of_bert_score_cut_there(name, peer_of):
    """bert-score itself, with all layers, applies the norm to the last one alone."""
    model = saved(name)
    bundle = exported("all-layers", model, all_layers=True)
    assert open_bundle(bundle).manifest.final_norm
    with BERTScorer(bundle, all_layers=True) as scorer:
        scores = np.stack(scorer.score(*TEXTS))  # (3, layers, pairs)
    for num_layers in range(1, 4):
        theirs = peer_of(model, num_layers).score(*TEXTS, batch_size=1)
        assert np.abs(scores[:, num_layers] - np.stack(theirs)).max() <= 1e-5
