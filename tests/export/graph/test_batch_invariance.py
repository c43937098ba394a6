"""A pair has the same score to the bit, whatever is scored beside it, in every precision; on models
wide enough.
"""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from tests.support.bundles import exported, lower, saved
from tests.support.parity import EDGE_CASE_PAIRS, KNOWN_WARNINGS, ORDINARY_PAIRS
from tests.support.tiny_models import FAST, IN_TRANSFORMERS_5, ONLY_IN_5, TINY_MODELS

pytestmark = KNOWN_WARNINGS

PRECISIONS = ("fp32", "fp16", "int8")
QUICK = {
    ("bert", "int8"),
    ("deberta-v2", "fp32"),  # its convolution
    ("xlnet", "fp16"),  # its softmax, which is part of no fused attention
}

KNOWN_TO_DIFFER = {
    ("convbert-groups", "fp32"): 1e-6,
    ("convbert-groups", "fp16"): 3e-5,
    ("convbert-groups", "int8"): 3e-6,
    ("deberta-v2", "fp16"): 1.5e-4,
    ("deberta-v3", "fp16"): 1.5e-4,
}
"""Cases that docs/differences.md names, and a bound of their differences."""


def pairs(number):
    """Return texts of all lengths: edge cases, sentences, and random words of these."""
    draw = np.random.default_rng(0)
    words = [word for pair in ORDINARY_PAIRS for text in pair for word in text.split()]
    found = [*EDGE_CASE_PAIRS, *ORDINARY_PAIRS]
    while len(found) < 160:
        found.append(tuple(" ".join(draw.choice(words, draw.integers(1, 60))) for _ in range(2)))
    return found[:: 160 // number]


def scores(bundle, texts, size, **options):
    """Return the scores of pairs in calls of this many, (3, pairs)."""
    with BERTScorer(bundle, device="cpu", **options) as scorer:
        calls = [
            scorer.score(*zip(*texts[start : start + size], strict=True))
            for start in range(0, len(texts), size)
        ]
    return np.concatenate([np.stack(call) for call in calls], axis=1)


@pytest.mark.parametrize(
    ("name", "precision", "number"),
    [(*case, 40) for case in sorted(QUICK)]
    + [
        pytest.param(name, precision, number, marks=mark)
        for number, mark in ((40, pytest.mark.families), (160, pytest.mark.calibration))
        for name in TINY_MODELS
        for precision in PRECISIONS
        if (name, precision) != ("bort", "int8")  # nothing to compute in int8
        if number == 160 or (name, precision) not in QUICK
    ]
    + [
        pytest.param(name, one, 160, marks=IN_TRANSFORMERS_5)
        for name in ONLY_IN_5
        for one in PRECISIONS
    ],
)
def test_a_score_does_not_depend_on_what_is_beside_it(
    name, precision, number, tmp_path, record_property
):
    model = saved(name, is_wide=True)
    mode = "fast" if name in FAST else "slow"
    bundle = exported("wide", model, num_layers=0 if name == "bort" else 2, tokenizer_mode=mode)
    if precision != "fp32":
        bundle = lower(bundle, model, precision, tmp_path / "lowered")
    texts = pairs(number)
    order = np.random.default_rng(1).permutation(number)
    alone = scores(bundle, texts, 1, nthreads=1)
    together = scores(bundle, texts, number, nthreads=1)
    mixed = scores(bundle, [texts[place] for place in order], 7, nthreads=3)[:, np.argsort(order)]
    shared = scores(bundle, texts, number, nthreads=3, optimize_for="latency")
    difference = float(np.abs(np.stack([together, mixed, shared]) - alone).max())
    record_property("batch_difference", difference)
    assert difference <= KNOWN_TO_DIFFER.get((name, precision), 0)
