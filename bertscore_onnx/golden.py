"""Recomputes the scores that a bundle was exported with."""

import numpy as np

from bertscore_onnx.scorer import BERTScorer

GOLDEN_TOLERANCE = 1e-5
"""The most a golden score may differ in fp32."""


def golden_difference(scorer: BERTScorer) -> float:
    """Score a bundle's golden pairs and return the largest absolute difference from the manifest's scores.

    Args:
        scorer: a scorer of the bundle without idf and rescaling.
    """
    golden = scorer.manifest.golden
    scores = scorer.score([pair.candidate for pair in golden], [pair.reference for pair in golden])
    expected = np.array([(pair.precision, pair.recall, pair.f1) for pair in golden])  # (pairs, 3)
    return float(np.abs(np.stack(scores, axis=1) - expected).max())
