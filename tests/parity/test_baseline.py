"""On pretrained weights, baselines equal those that bert-score computes of the same pairs within 1e-5."""

from pathlib import Path

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.evaluation.baselines import compute_baseline
from tests.support.parity import KNOWN_WARNINGS, ORDINARY_PAIRS

pytestmark = KNOWN_WARNINGS

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXTS = [
    *(text for pair in ORDINARY_PAIRS for text in pair),
    *(EXAMPLES / "references.txt").read_text(encoding="utf-8").splitlines(),
    *(EXAMPLES / "candidates.txt").read_text(encoding="utf-8").splitlines(),
    "a text that has far too many words " * 5,
    "  one in white space  ",
]


def bert_scores_way(peer, texts, seed):
    """Draw pairs as `get_rescale_baseline.py` does, and return the means of P, R and F, (layers, 3).

    One pair a batch: in a larger one padding wins where all similarities of a token are negative.
    """
    lines = [line.strip() for line in texts]
    lines = [line for line in lines if len(line.split(" ")) < 32]
    np.random.seed(seed)
    first, second = np.random.choice(range(len(lines)), size=(2, len(lines) // 2), replace=False)
    scores = peer.score([lines[i] for i in first], [lines[i] for i in second], batch_size=1)
    return np.stack([array.numpy().mean(axis=-1) for array in scores], axis=1)


@pytest.mark.parametrize("seed", [0, 12345])
def test_every_layer_has_bert_scores_baseline(minilm_all_layers_bundle, minilm, peer_of, seed):
    peer = peer_of(minilm, 6, all_layers=True)
    with BERTScorer(minilm_all_layers_bundle, all_layers=True) as scorer:
        measured = compute_baseline(scorer, TEXTS, seed=seed)
    ours = np.array([(layer.mean.precision, layer.mean.recall, layer.mean.f1) for layer in measured.layers])
    assert measured.num_pairs > 20
    assert np.abs(ours - bert_scores_way(peer, TEXTS, seed)).max() <= 1e-5
