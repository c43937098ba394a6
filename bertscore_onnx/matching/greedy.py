"""Greedy matching of token embeddings: Zhang et al., "BERTScore", ICLR 2020, section 3.

Padding never takes part, so a score does not depend on the other pairs of its batch (bert-score 0.3.13,
`utils.py:greedy_cos_idf`, lets padding win over negative similarities).
"""

import numpy as np
from numpy.typing import NDArray


def greedy_match(
    candidates: NDArray[np.float32],
    candidate_weights: NDArray[np.float32],
    candidate_mask: NDArray[np.bool_] | None,
    references: NDArray[np.float32],
    reference_weights: NDArray[np.float32],
    reference_mask: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match every token with the most similar one of the other side, and average by weight.

    P = Σ w(x̂ⱼ) maxᵢ xᵢ·x̂ⱼ / Σ w(x̂ⱼ) and R = Σ w(xᵢ) maxⱼ xᵢ·x̂ⱼ / Σ w(xᵢ), with x the reference.

    Args:
        candidates: unit token embeddings, (pairs, cand_tokens, hidden), or of a single pair, (cand_tokens, hidden).
        candidate_weights: non-negative token weights, (pairs, cand_tokens) or (cand_tokens,); 0 on padding.
        candidate_mask: true on real tokens, special tokens included, shaped like the weights, at least one a row; None
            where all are real.
        references: unit token embeddings, (pairs, ref_tokens, hidden) or (ref_tokens, hidden).
        reference_weights: like `candidate_weights`, (pairs, ref_tokens) or (ref_tokens,).
        reference_mask: like `candidate_mask`.

    Returns:
        Precision and recall, each (pairs,) or (), in [-1, 1]; 0 for a side whose weights are all 0.
    """
    similarity = candidates @ references.swapaxes(-1, -2)  # ([pairs,] cand_tokens, ref_tokens)
    to_references = similarity if reference_mask is None else np.where(reference_mask[:, None, :], similarity, -np.inf)
    to_candidates = similarity if candidate_mask is None else np.where(candidate_mask[:, :, None], similarity, -np.inf)
    return (
        weighted_mean(to_references.max(axis=-1), candidate_weights),
        weighted_mean(to_candidates.max(axis=-2), reference_weights),
    )


def match_in_blocks(
    candidate: NDArray[np.float32],
    candidate_weights: NDArray[np.float32],
    reference: NDArray[np.float32],
    reference_weights: NDArray[np.float32],
    block: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match one pair of long texts in memory that does not grow with them; the formulas are those of `greedy_match`.

    Args:
        candidate: unit token embeddings, (cand_tokens, hidden).
        candidate_weights: non-negative token weights, (cand_tokens,).
        reference, reference_weights: likewise, (ref_tokens, hidden) and (ref_tokens,).
        block: tokens of either side whose similarities are in memory at a time.

    Returns:
        Precision and recall, each (), in [-1, 1]; 0 for a side whose weights are all 0.
    """
    nearest_reference = np.full(len(candidate), -np.inf, dtype=np.float32)  # (cand_tokens,)
    nearest_candidate = np.full(len(reference), -np.inf, dtype=np.float32)  # (ref_tokens,)
    for row in range(0, len(candidate), block):
        rows = slice(row, row + block)
        for column in range(0, len(reference), block):
            columns = slice(column, column + block)
            similarity = candidate[rows] @ reference[columns].T  # (block, block)
            np.maximum(nearest_reference[rows], similarity.max(axis=1), out=nearest_reference[rows])
            np.maximum(nearest_candidate[columns], similarity.max(axis=0), out=nearest_candidate[columns])
    return (
        weighted_mean(nearest_reference, candidate_weights),
        weighted_mean(nearest_candidate, reference_weights),
    )


def match_all(
    candidates: NDArray[np.float32],
    candidate_weights: NDArray[np.float32],
    candidate_starts: NDArray[np.int64],
    references: NDArray[np.float32],
    reference_weights: NDArray[np.float32],
    reference_starts: NDArray[np.int64],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match every candidate with every reference; the formulas are those of `greedy_match`.

    Args:
        candidates: unit embeddings of the tokens of all candidates, one after the other, (cand_tokens, hidden).
        candidate_weights: non-negative token weights, (cand_tokens,).
        candidate_starts: the token at which each candidate begins, (cands,), increasing.
        references, reference_weights, reference_starts: likewise, (ref_tokens, hidden), (ref_tokens,) and (refs,).

    Returns:
        Precision and recall, each (cands, refs), in [-1, 1]; 0 for a side whose weights are all 0.
    """
    similarity = candidates @ references.T  # (cand_tokens, ref_tokens)
    nearest_reference = np.maximum.reduceat(similarity, reference_starts, axis=1)  # (cand_tokens, refs)
    nearest_candidate = np.maximum.reduceat(similarity, candidate_starts, axis=0)  # (cands, ref_tokens)
    precision = np.add.reduceat(nearest_reference * candidate_weights[:, None], candidate_starts, axis=0)
    recall = np.add.reduceat(nearest_candidate * reference_weights, reference_starts, axis=1)
    return (
        _ratio(precision, np.add.reduceat(candidate_weights, candidate_starts)[:, None]),
        _ratio(recall, np.add.reduceat(reference_weights, reference_starts)),
    )


def weighted_mean(values: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average `values` (…, tokens) by their weights; (…,), 0 where all weights are 0."""
    return _ratio((values * weights).sum(axis=-1), weights.sum(axis=-1))


def f_measure(precision: NDArray[np.float32], recall: NDArray[np.float32]) -> NDArray[np.float32]:
    """Combine precision and recall, F = 2PR / (P + R); 0 where P + R is 0."""
    return _ratio(2 * precision * recall, precision + recall)


def _ratio(numerator: NDArray[np.float32], denominator: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide; 0 where the denominator is 0."""
    ratio: NDArray[np.float32] = np.zeros_like(numerator)
    np.divide(numerator, denominator, out=ratio, where=denominator != 0)
    return ratio
