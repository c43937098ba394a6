"""Greedy matching of token embeddings: Zhang et al., "BERTScore", ICLR 2020, section 3.

Works on one batch of padded pairs at a time. Padding never takes part, so a score does not depend on the
other pairs of its batch (bert-score 0.3.13, `utils.py:greedy_cos_idf`, lets padding win over negative similarities).
"""

import numpy as np
from numpy.typing import NDArray


def greedy_match(
    candidates: NDArray[np.float32],
    candidate_weights: NDArray[np.float32],
    candidate_mask: NDArray[np.bool_],
    references: NDArray[np.float32],
    reference_weights: NDArray[np.float32],
    reference_mask: NDArray[np.bool_],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match every token with the most similar one of the other side, and average by weight.

    P = Σ w(x̂ⱼ) maxᵢ xᵢ·x̂ⱼ / Σ w(x̂ⱼ) and R = Σ w(xᵢ) maxⱼ xᵢ·x̂ⱼ / Σ w(xᵢ), with x the reference.

    Args:
        candidates: unit token embeddings, (pairs, cand_tokens, hidden).
        candidate_weights: non-negative token weights, (pairs, cand_tokens); 0 on padding.
        candidate_mask: true on real tokens, special tokens included, (pairs, cand_tokens); at least one a row.
        references: unit token embeddings, (pairs, ref_tokens, hidden).
        reference_weights: like `candidate_weights`, (pairs, ref_tokens).
        reference_mask: like `candidate_mask`, (pairs, ref_tokens).

    Returns:
        Precision and recall, each (pairs,), in [-1, 1]; 0 for a side whose weights are all 0.
    """
    similarity = candidates @ references.transpose(0, 2, 1)  # (pairs, cand_tokens, ref_tokens)
    nearest_reference = np.where(reference_mask[:, None, :], similarity, -np.inf).max(axis=2)  # (pairs, cand_tokens)
    nearest_candidate = np.where(candidate_mask[:, :, None], similarity, -np.inf).max(axis=1)  # (pairs, ref_tokens)
    return (
        weighted_mean(nearest_reference, candidate_weights),
        weighted_mean(nearest_candidate, reference_weights),
    )


def weighted_mean(values: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average each row of `values` (rows, tokens) by its weights; (rows,), 0 where all weights are 0."""
    total = weights.sum(axis=1)  # (rows,)
    mean: NDArray[np.float32] = np.zeros_like(total)
    np.divide((values * weights).sum(axis=1), total, out=mean, where=total > 0)
    return mean


def f_measure(precision: NDArray[np.float32], recall: NDArray[np.float32]) -> NDArray[np.float32]:
    """Combine precision and recall, F = 2PR / (P + R); 0 where P + R is 0."""
    total = precision + recall
    combined = np.zeros_like(total)
    np.divide(2 * precision * recall, total, out=combined, where=total != 0)
    return combined
