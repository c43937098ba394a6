"""Greedy matching of token embeddings: Zhang et al., "BERTScore", ICLR 2020, section 3.

Padding is masked, so that a score does not depend on the other pairs of its batch (bert-score 0.3.13,
`utils.py:greedy_cos_idf`, lets padding win over negative similarities).
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

BLOCK_TOKENS = 2048
"""Tokens of either side whose similarities are in memory at a time: 17 MB for one pair."""


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
        candidate_mask: true on real tokens, special tokens included, (pairs, cand_tokens), at least one a row.
        references, reference_weights, reference_mask: likewise, with ref_tokens.

    Returns:
        Precision and recall, each (pairs,), in [-1, 1] but for rounding; 0 for a side whose weights are all 0.
    """
    if max(candidate_mask.shape[1], reference_mask.shape[1]) <= BLOCK_TOKENS:
        nearest = _nearest(candidates, candidate_mask, references, reference_mask)
    else:
        nearest = _nearest_in_blocks(candidates, candidate_mask, references, reference_mask)
    return _weighted_mean(nearest[0], candidate_weights), _weighted_mean(nearest[1], reference_weights)


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
        Precision and recall, each (cands, refs), in [-1, 1] but for rounding; 0 for a side whose weights are all 0.
    """
    similarity = candidates @ references.T  # (cand_tokens, ref_tokens)
    to_reference = np.maximum.reduceat(similarity, reference_starts, axis=1)  # (cand_tokens, refs)
    to_candidate = np.maximum.reduceat(similarity, candidate_starts, axis=0)  # (cands, ref_tokens)
    precision = np.add.reduceat(to_reference * candidate_weights[:, None], candidate_starts, axis=0)
    recall = np.add.reduceat(to_candidate * reference_weights, reference_starts, axis=1)
    return (
        _ratio(precision, np.add.reduceat(candidate_weights, candidate_starts)[:, None]),
        _ratio(recall, np.add.reduceat(reference_weights, reference_starts)),
    )


def with_f_measure(
    precision: NDArray[np.float32], recall: NDArray[np.float32], is_scorable: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Complete precision and recall with F = 2PR / (P + R), which is 0 where P + R is 0.

    Args:
        precision, recall: as matched, (layers, …); changed in place.
        is_scorable: whether both sides of a pair have something to match, (…); other pairs score 0.

    Returns:
        P, R and F, each (layers, …); P and R are clipped to [-1, 1], which rounding may exceed.
    """
    is_unscorable = ~is_scorable
    for values in (precision, recall):
        np.minimum(values, 1, out=values)
        np.maximum(values, -1, out=values)
        np.copyto(values, 0, where=is_unscorable)
    return precision, recall, _ratio(2 * precision * recall, precision + recall)


def _nearest(
    candidates: NDArray[np.float32],
    candidate_mask: NDArray[np.bool_],
    references: NDArray[np.float32],
    reference_mask: NDArray[np.bool_],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how similar each token's nearest of the other side is, (pairs, cand_tokens) and (pairs, ref_tokens)."""
    similarity = candidates @ references.swapaxes(1, 2)  # (pairs, cand_tokens, ref_tokens)
    return (
        np.where(reference_mask[:, None, :], similarity, -np.inf).max(axis=2),
        np.where(candidate_mask[:, :, None], similarity, -np.inf).max(axis=1),
    )


def _nearest_in_blocks(
    candidates: NDArray[np.float32],
    candidate_mask: NDArray[np.bool_],
    references: NDArray[np.float32],
    reference_mask: NDArray[np.bool_],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Do the same for long texts, in memory that does not grow with the square of their lengths."""
    to_reference = np.full(candidate_mask.shape, -np.inf, dtype=np.float32)  # (pairs, cand_tokens)
    to_candidate = np.full(reference_mask.shape, -np.inf, dtype=np.float32)  # (pairs, ref_tokens)
    for row, column in product(*(range(0, mask.shape[1], BLOCK_TOKENS) for mask in (candidate_mask, reference_mask))):
        rows, columns = np.s_[:, row : row + BLOCK_TOKENS], np.s_[:, column : column + BLOCK_TOKENS]
        nearest = _nearest(candidates[rows], candidate_mask[rows], references[columns], reference_mask[columns])
        np.maximum(to_reference[rows], nearest[0], out=to_reference[rows])
        np.maximum(to_candidate[columns], nearest[1], out=to_candidate[columns])
    return to_reference, to_candidate


def _weighted_mean(values: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Average `values` (…, tokens) by their weights; (…,), 0 where all weights are 0."""
    return _ratio((values * weights).sum(axis=-1), weights.sum(axis=-1))


def _ratio(numerator: NDArray[np.float32], denominator: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide; 0 where the denominator is 0."""
    ratio: NDArray[np.float32] = np.zeros_like(numerator)
    np.divide(numerator, denominator, out=ratio, where=denominator != 0)
    return ratio
