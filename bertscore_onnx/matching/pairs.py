"""Matches pairs of texts in batches: from token embeddings and weights to P, R and F."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.matching.greedy import greedy_match, with_f_measure
from bertscore_onnx.matching.weights import TokenWeights

BATCH_TOKENS = 4096
"""Tokens of both sides that one thread matches at a time."""


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

    Each is matched by itself, from where its vectors lie, so that its scores do not depend on other pairs.

    Args:
        pairs: what to match.
        weights: what the tokens weigh.
        threads: where to match, batch by batch.

    Raises:
        IdfError: the weights say nothing of a token that occurs.
    """
    matching = Matching(pairs, weights)
    batches = [*matching.batches()]
    if len(batches) == 1:  # not worth the way to another thread
        matching.match(batches[0])
    else:
        deque(threads.map(matching.match, batches), maxlen=0)
    is_filled, has_weight = matching.is_filled, matching.has_weight
    scores = with_f_measure(matching.precision, matching.recall, is_filled & has_weight)
    return PairScores(*scores, int((~is_filled).sum()), int((is_filled & ~has_weight).sum()))


class Matching:
    """The matching of some pairs, batch by batch; threads may do it side by side."""

    def __init__(self, pairs: TokenPairs, weights: TokenWeights) -> None:
        self._candidates = _Side(pairs.candidates, pairs.candidate, weights)
        self._references = _Side(pairs.references, pairs.reference, weights)
        self._layers = len(pairs.candidates.vectors)
        shape = (self._layers, len(pairs.candidate))
        self.precision: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)
        """Scores of the pairs matched so far, (layers, pairs), as `recall`."""
        self.recall: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)
        self.is_filled: NDArray[np.bool_] = self._candidates.has_words & self._references.has_words
        """Whether both sides have a token that is not special, (pairs,)."""
        self.has_weight: NDArray[np.bool_] = self._candidates.has_weight & self._references.has_weight
        """Whether both sides have one that weighs something, (pairs,)."""

    def batches(self) -> Iterator[range]:
        """Cut the pairs into batches of consecutive ones."""
        ends = np.cumsum(self._candidates.lengths + self._references.lengths)
        begin, number = 0, len(ends)
        while begin < number:
            before = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + BATCH_TOKENS, side="right")))
            yield range(begin, end)
            begin = end

    def match(self, batch: range) -> None:
        """Match a few pairs."""
        with blas_gate:
            for layer in range(self._layers):
                for pair in batch:
                    candidate, candidate_shares = self._candidates.text(layer, pair)
                    reference, reference_shares = self._references.text(layer, pair)
                    self.precision[layer, pair], self.recall[layer, pair] = greedy_match(
                        candidate, candidate_shares, reference, reference_shares
                    )


class _Side:
    """The candidates or the references of all pairs."""

    def __init__(self, table: TokenEmbeddings, texts: NDArray[np.int64], weights: TokenWeights) -> None:
        distinct, place = np.unique(texts, return_inverse=True)
        ids, begins = table.flat_ids(distinct)  # (tokens,) and (distinct texts,)
        token_weights = weights.of(ids)
        totals = np.add.reduceat(token_weights, begins)  # (distinct texts,)
        lengths = table.lengths[distinct]
        self._vectors = table.vectors
        self._shares = token_weights / np.repeat(np.where(totals > 0, totals, 1), lengths)
        self._starts: list[int] = table.starts[texts].tolist()
        self._share_starts: list[int] = begins[place].tolist()
        self.lengths: NDArray[np.int64] = lengths[place]
        """How many tokens each text has, (pairs,)."""
        self.has_words: NDArray[np.bool_] = np.logical_or.reduceat(weights.is_word[ids], begins)[place]
        """Whether a text has a token that is not special, (pairs,)."""
        self.has_weight: NDArray[np.bool_] = (totals > 0)[place]
        """Whether a text has a token that weighs something, (pairs,)."""

    def text(self, layer: int, pair: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the embeddings of a text, (tokens, hidden), and the shares of its tokens, (tokens,)."""
        length, start, share_start = self.lengths[pair], self._starts[pair], self._share_starts[pair]
        return self._vectors[layer, start : start + length], self._shares[share_start : share_start + length]
