"""Matches pairs of texts in batches: from token embeddings and weights to P, R and F."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.batching import plan_batches
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.matching.greedy import greedy_match, with_f_measure
from bertscore_onnx.matching.weights import TokenWeights

MAX_MATCH_TOKENS = 4096
"""Padded tokens of either side in one batch of the matching; a pair with a longer side is a batch by itself."""

WIDTH_STEP = 8
"""Both sides of a pair are padded to the next multiple of this many tokens that holds the longer one. How a product or
a sum rounds depends on its shape, so that the shape must not depend on the other pairs of a batch."""


@dataclass(frozen=True, slots=True)
class TokenPairs:
    """Pairs of a candidate and a reference, as texts of two tables, which may be the same one."""

    candidates: TokenEmbeddings

    candidate: NDArray[np.int64]
    """Which text of `candidates` is the candidate of each pair, (pairs,)."""

    references: TokenEmbeddings

    reference: NDArray[np.int64]
    """Which text of `references` is the reference of each pair, (pairs,)."""


@dataclass(frozen=True, slots=True)
class PairScores:
    """The raw scores of pairs, and how many of them have nothing to match and so score 0."""

    precision: NDArray[np.float32]
    """(layers, pairs), as `recall` and `f1`."""

    recall: NDArray[np.float32]
    f1: NDArray[np.float32]

    num_empty: int
    """Pairs of which a side is empty."""

    num_weightless: int
    """Pairs of which a side has tokens, but none that weighs anything."""


def match_pairs(pairs: TokenPairs, weights: TokenWeights, threads: ThreadPool) -> PairScores:
    """Match the two sides of each pair, in each layer.

    Args:
        pairs: what to match.
        weights: what the tokens weigh.
        threads: where to match, batch by batch.

    Raises:
        IdfError: the weights say nothing of a token that occurs.
    """
    matching = Matching(pairs, weights)
    batches = list(plan_batches(matching.widths, MAX_MATCH_TOKENS, padding=False))
    if len(batches) == 1:  # not worth the way to another thread
        matching.match(batches[0])
    else:
        deque(threads.map(matching.match, batches), maxlen=0)
    num_filled, is_scorable = int(matching.has_words.sum()), matching.has_words & matching.has_weight
    scores = with_f_measure(matching.precision, matching.recall, is_scorable)
    return PairScores(*scores, len(is_scorable) - num_filled, num_filled - int(is_scorable.sum()))


class Matching:
    """The matching of some pairs, batch by batch; threads may do it side by side."""

    def __init__(self, pairs: TokenPairs, weights: TokenWeights) -> None:
        self._pairs, self._weights = pairs, weights
        candidate_lengths = pairs.candidates.lengths[pairs.candidate]  # (pairs,)
        longer = np.maximum(candidate_lengths, pairs.references.lengths[pairs.reference])  # (pairs,)
        self.widths: NDArray[np.int64] = -(-longer // WIDTH_STEP) * WIDTH_STEP
        """Padded tokens of either side, (pairs,)."""
        layers, number = len(pairs.candidates.vectors), len(self.widths)
        self.precision: NDArray[np.float32] = np.zeros((layers, number), dtype=np.float32)
        """Scores of the pairs matched so far, (layers, pairs), as `recall`."""
        self.recall: NDArray[np.float32] = np.zeros((layers, number), dtype=np.float32)
        self.has_words: NDArray[np.bool_] = np.zeros(number, dtype=np.bool_)
        """Whether both sides have a token that is not special, (pairs,)."""
        self.has_weight: NDArray[np.bool_] = np.zeros(number, dtype=np.bool_)
        """Whether both sides have one that weighs something, (pairs,)."""

    def match(self, batch: NDArray[np.int64]) -> None:
        """Match a few pairs of one width, (batch,)."""
        width = int(self.widths[batch[0]])
        candidates = _Side(self._pairs.candidates, self._pairs.candidate[batch], width, self._weights)
        references = _Side(self._pairs.references, self._pairs.reference[batch], width, self._weights)
        self.has_words[batch] = candidates.has_words & references.has_words
        self.has_weight[batch] = candidates.has_weight & references.has_weight
        with blas_gate:
            for layer in range(len(self.precision)):
                self.precision[layer, batch], self.recall[layer, batch] = greedy_match(
                    candidates.vectors(layer),
                    candidates.weights,
                    candidates.mask,
                    references.vectors(layer),
                    references.weights,
                    references.mask,
                )


class _Side:
    """The candidates or the references of a batch, padded: (batch, width)."""

    def __init__(self, table: TokenEmbeddings, texts: NDArray[np.int64], width: int, weights: TokenWeights) -> None:
        self._table = table
        self._rows, self.mask = table.padded_rows(texts, width)
        ids = table.ids[self._rows]  # padding has that of a token of its text
        token_weights = weights.of(ids)
        self.weights = token_weights * self.mask
        """What the tokens weigh, padding nothing, (batch, width)."""
        self.has_words = weights.is_word[ids].any(axis=1)
        """Whether a text has a token that is not special, (batch,)."""
        self.has_weight = token_weights.any(axis=1)
        """Whether a text has a token that weighs something, (batch,)."""

    def vectors(self, layer: int) -> NDArray[np.float32]:
        """Return the embeddings, (batch, width, hidden)."""
        vectors: NDArray[np.float32] = self._table.vectors[layer, self._rows]
        return vectors
