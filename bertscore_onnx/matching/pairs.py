"""Token embeddings and weights to the precision and recall of pairs; a pair with nothing to match scores 0."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.concurrency.thread_pool import WorkerThreads
from bertscore_onnx.encoding.batching import plan_batches
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.matching.greedy import greedy_match, match_in_blocks
from bertscore_onnx.matching.weights import TokenWeights
from bertscore_onnx.scoring.text_warnings import Notices

MAX_MATCH_TOKENS = 4096
"""Padded tokens of either side in one batch of the matching; a pair with a longer side is a batch by itself."""

BLOCK_TOKENS = 2048
"""Tokens of either side in one block; its similarities take 17 MB."""


@dataclass(frozen=True, slots=True)
class TokenPairs:
    """Pairs of a candidate and a reference, as texts of two tables, which may be the same one."""

    candidates: TokenEmbeddings

    candidate: NDArray[np.int64]
    """Which text of `candidates` is the candidate of each pair, (pairs,)."""

    references: TokenEmbeddings

    reference: NDArray[np.int64]
    """Which text of `references` is the reference of each pair, (pairs,)."""


def match_pairs(
    pairs: TokenPairs, weights: TokenWeights, threads: WorkerThreads, notices: Notices
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match the two sides of each pair, in each layer.

    Args:
        pairs: what to match.
        weights: what the tokens weigh.
        threads: where to match, batch by batch.
        notices: counts the pairs that score 0.

    Returns:
        Precision and recall, (layers, pairs) each; 0 and 0 where a side is empty or weighs nothing.

    Raises:
        IdfError: the weights say nothing of a token that occurs.
    """
    matching = Matching(pairs, weights)
    batches = list(plan_batches(matching.lengths, MAX_MATCH_TOKENS))
    if len(batches) == 1:  # not worth the way to another thread
        matching.match(batches[0])
    else:
        deque(threads.map(matching.match, batches), maxlen=0)
    num_filled, scorable = int(matching.has_words.sum()), matching.has_words & matching.has_weight
    notices.empty += len(scorable) - num_filled
    notices.weightless += num_filled - int(scorable.sum())
    matching.precision[:, ~scorable] = matching.recall[:, ~scorable] = 0
    return matching.precision, matching.recall


class Matching:
    """The matching of some pairs, batch by batch; threads may do it side by side."""

    def __init__(self, pairs: TokenPairs, weights: TokenWeights) -> None:
        self._pairs, self._weights = pairs, weights
        candidate_lengths = pairs.candidates.lengths[pairs.candidate]  # (pairs,)
        self.lengths = np.maximum(candidate_lengths, pairs.references.lengths[pairs.reference])
        """Tokens of the longer side, (pairs,)."""
        layers, number = len(pairs.candidates.vectors), len(self.lengths)
        self.precision, self.recall = np.zeros((2, layers, number), dtype=np.float32)
        """Scores of the pairs matched so far, (layers, pairs) each."""
        self.has_words, self.has_weight = np.zeros((2, number), dtype=np.bool_)
        """Whether both sides have a token that is not special, and one that weighs something, (pairs,) each."""

    def match(self, batch: NDArray[np.int64]) -> None:
        """Match a few pairs, (batch,)."""
        candidates = _Side(self._pairs.candidates, self._pairs.candidate[batch], self._weights)
        references = _Side(self._pairs.references, self._pairs.reference[batch], self._weights)
        self.has_words[batch] = candidates.has_words & references.has_words
        self.has_weight[batch] = candidates.has_weight & references.has_weight
        with blas_gate:
            for layer in range(len(self.precision)):
                self.precision[layer, batch], self.recall[layer, batch] = _match(candidates, references, layer)


class _Side:
    """The candidates or the references of a batch: a single text, (tokens,), or padded ones, (batch, tokens)."""

    def __init__(self, table: TokenEmbeddings, texts: NDArray[np.int64], weights: TokenWeights) -> None:
        self._vectors = table.vectors
        self._rows: slice | NDArray[np.int64]
        self.mask: NDArray[np.bool_] | None = None
        """The real tokens; None for a single text, which has no others."""
        if len(texts) == 1:
            self._rows = table.rows_of(texts[0])
        else:
            self._rows, self.mask = table.padded_rows(texts)
        ids = table.ids[self._rows]  # padding has that of a token of its text
        self.weights = weights.of(ids)
        """What the tokens weigh, padding nothing."""
        self.has_words = weights.is_word[ids].any(axis=-1)
        """Whether a text has a token that is not special, (batch,)."""
        self.has_weight = self.weights.any(axis=-1)
        """Whether a text has a token that weighs something, (batch,)."""
        if self.mask is not None:
            self.weights *= self.mask

    def vectors(self, layer: int) -> NDArray[np.float32]:
        """Return the embeddings, (tokens, hidden) without a copy, or (batch, tokens, hidden)."""
        return self._vectors[layer, self._rows]


def _match(candidates: _Side, references: _Side, layer: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match the two sides of a batch; a pair with a long side in memory that does not grow with it."""
    left, right = candidates.vectors(layer), references.vectors(layer)
    if max(left.shape[-2], right.shape[-2]) > MAX_MATCH_TOKENS:
        return match_in_blocks(left, candidates.weights, right, references.weights, block=BLOCK_TOKENS)
    return greedy_match(left, candidates.weights, candidates.mask, right, references.weights, references.mask)
