"""Greedy matching of token embeddings.

The equations are of Zhang et al., "BERTScore", ICLR 2020, section 3. There is no padding, so that a
score does not depend on other pairs (in bert-score 0.3.13, `utils.py:greedy_cos_idf`, padding wins
over negative similarities).
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

BLOCK_TOKENS = 2048
"""Tokens of either side whose similarities are in memory at a time: 17 MB for one pair."""


def greedy_match(
    candidate: NDArray[np.float32],
    candidate_shares: NDArray[np.float32],
    reference: NDArray[np.float32],
    reference_shares: NDArray[np.float32],
) -> tuple[float, float]:
    """Match every token of a pair with the most similar one of the other side.

    The similarities are averaged by weight:
    P = Σ w(x̂ⱼ) maxᵢ xᵢ·x̂ⱼ / Σ w(x̂ⱼ) and R = Σ w(xᵢ) maxⱼ xᵢ·x̂ⱼ / Σ w(xᵢ), with x the reference:
    unit vectors, (tokens, hidden), and their normalised weights w / Σ w, (tokens,). A side whose
    weights are all 0 gives 0.
    """
    to_reference, to_candidate = _nearest(candidate, reference)
    return float(to_reference @ candidate_shares), float(to_candidate @ reference_shares)


def match_all(
    candidates: NDArray[np.float32],
    candidate_weights: NDArray[np.float32],
    candidate_starts: NDArray[np.int64],
    references: NDArray[np.float32],
    reference_weights: NDArray[np.float32],
    reference_starts: NDArray[np.int64],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match every candidate with every reference.

    Returns P and R, (cands, refs) each. The formulas are those of `greedy_match`. The tokens of all
    texts of a side follow each other: vectors, (tokens, hidden), weights that are not normalised,
    (tokens,), and the token at which each text begins, (texts,).
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
    precision: NDArray[np.float32],
    recall: NDArray[np.float32],
    is_scorable: NDArray[np.bool_],
    beta: float = 1.0,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Complete precision and recall with F = (1 + β²) P R / (β² P + R).

    F is 0 where the denominator is 0. P and R, (layers, …), are changed in place: clipped to
    [-1, 1], which rounding may exceed, and 0 for pairs of which a side has nothing to match, (…).
    """
    is_unscorable = ~is_scorable
    for values in (precision, recall):
        np.minimum(values, 1, out=values)
        np.maximum(values, -1, out=values)
        np.copyto(values, 0, where=is_unscorable)
    square = np.float32(beta * beta)
    return precision, recall, _ratio((1 + square) * precision * recall, square * precision + recall)


def _nearest(
    candidate: NDArray[np.float32], reference: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the similarity of each token to its nearest of the other side.

    For each side there is an array, (cand_tokens,) and (ref_tokens,). It is computed in blocks, so
    that memory does not grow with the square of the lengths.
    """
    to_reference = np.full(len(candidate), -np.inf, dtype=np.float32)  # (cand_tokens,)
    to_candidate = np.full(len(reference), -np.inf, dtype=np.float32)  # (ref_tokens,)
    for row, column in product(
        *(range(0, len(side), BLOCK_TOKENS) for side in (candidate, reference))
    ):
        rows = slice(row, row + BLOCK_TOKENS)
        columns = slice(column, column + BLOCK_TOKENS)
        similarity = candidate[rows] @ reference[columns].T
        np.maximum(to_reference[rows], similarity.max(axis=1), out=to_reference[rows])
        np.maximum(to_candidate[columns], similarity.max(axis=0), out=to_candidate[columns])
    return to_reference, to_candidate


def _ratio(numerator: NDArray[np.float32], denominator: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the quotients; 0 where the denominator is 0."""
    ratio = np.zeros_like(numerator)
    np.divide(numerator, denominator, out=ratio, where=denominator != 0)
    return ratio


# Inverse document frequency: Zhang et al., "BERTScore", ICLR 2020, section 3, with plus-one
# smoothing. A weight table is one float per vocabulary id, so that weighing a text is one indexing
# operation.


def document_frequency(
    documents: Sequence[NDArray[np.int64]], vocab_size: int
) -> NDArray[np.int64]:
    """Return the number of documents that each id occurs in, (vocab_size,).

    There is at least one document; its special tokens count too.
    """
    document = np.repeat(np.arange(len(documents)), [len(ids) for ids in documents])  # (tokens,)
    # one per document and id
    occurrences = np.unique(document * vocab_size + np.concatenate(documents))
    return np.bincount(occurrences % vocab_size, minlength=vocab_size)


def idf_weights(frequency: NDArray[np.int64], num_documents: int) -> NDArray[np.float32]:
    """Turn document frequencies into weights, log((N + 1) / (df + 1)).

    This is bert-score's formula (`utils.py:get_idf_dict`).
    """
    return np.log((num_documents + 1) / (frequency + 1)).astype(np.float32)
