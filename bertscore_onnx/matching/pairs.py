"""Matches pairs of texts in batches: from token embeddings and weights to P, R and F."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.embeddings import EncodedTexts, TokenEmbeddings, joined_ranges
from bertscore_onnx.encoding.encoder import plan_batches
from bertscore_onnx.errors import EncodingError
from bertscore_onnx.matching.greedy import BLOCK_TOKENS, greedy_match, match_all, with_f_measure
from bertscore_onnx.matching.weights import TokenWeights

BATCH_TOKENS = 2048
"""Padded tokens of either side that one thread matches at a time."""

UNDEFINED_VECTORS = (
    "The model gave infinite or undefined vectors. Its weights may be damaged: run `bertscore-onnx inspect` on the "
    "bundle."
)

LESS = np.float32(-2)
"""Less than any similarity of unit vectors, and times a share of 0 it is 0."""


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

    num_zero_weight: int
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
        EncodingError: the model gave something other than finite vectors.
    """
    matching = Matching(pairs, weights)
    batches = list(plan_batches(matching.widths, BATCH_TOKENS))
    if len(batches) == 1:  # not worth the way to another thread
        matching.match(batches[0])
    else:
        deque(threads.map(matching.match, batches), maxlen=0)
    is_filled, has_weight = matching.is_filled, matching.has_weight
    scores = finite_scores(matching.precision, matching.recall, is_filled & has_weight)
    return PairScores(*scores, int((~is_filled).sum()), int((is_filled & ~has_weight).sum()))


def finite_scores(
    precision: NDArray[np.float32], recall: NDArray[np.float32], is_scorable: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return P, R and F as `with_f_measure` does.

    Raises:
        EncodingError: a scorable pair has a vector that is not finite, which makes its scores NaN.
    """
    scores = with_f_measure(precision, recall, is_scorable)
    if np.isnan(scores[2].sum()):
        raise EncodingError(UNDEFINED_VECTORS)
    return scores


class Matching:
    """The matching of some pairs, batch by batch; threads may do it side by side."""

    def __init__(self, pairs: TokenPairs, weights: TokenWeights) -> None:
        tables, texts = (pairs.candidates, pairs.references), (pairs.candidate, pairs.reference)
        number = len(pairs.candidate)
        lengths = np.concatenate([table.lengths[of_side] for table, of_side in zip(tables, texts, strict=True)])
        begins = np.cumsum(lengths) - lengths  # (2 * pairs,), where the tokens of each text begin
        ids = np.concatenate([table.flat_ids(of_side)[0] for table, of_side in zip(tables, texts, strict=True)])
        token_weights = weights.of(ids)  # (tokens,)
        totals = np.add.reduceat(token_weights, begins)  # (2 * pairs,)
        has_words = np.logical_or.reduceat(weights.is_word[ids], begins)  # (2 * pairs,)
        shares = token_weights / np.repeat(np.where(totals > 0, totals, 1), lengths)  # (tokens,)
        self._candidates, self._references = (
            _Side(table, of_side, lengths[half], begins[half], shares)
            for table, of_side, half in zip(tables, texts, (slice(number), slice(number, None)), strict=True)
        )
        self.widths: NDArray[np.int64] = np.maximum(lengths[:number], lengths[number:])
        """The tokens of the longer side, (pairs,)."""
        self._layers = len(pairs.candidates.vectors)
        shape = (self._layers, number)
        self.precision: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)
        """Scores of the pairs matched so far, (layers, pairs), as `recall`."""
        self.recall: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)
        self.is_filled: NDArray[np.bool_] = has_words[:number] & has_words[number:]
        """Whether both sides have a token that is not special, (pairs,)."""
        self.has_weight: NDArray[np.bool_] = (totals[:number] > 0) & (totals[number:] > 0)
        """Whether both sides have one that weighs something, (pairs,)."""

    def match(self, batch: NDArray[np.int64]) -> None:
        """Match a few pairs, (batch,).

        Products of pairs follow each other in one array, which is then reduced at once: a step that numpy takes without
        Python's lock ends with waiting for it, and several threads match.
        """
        candidates, references = self._candidates.some(batch), self._references.some(batch)
        if self.widths[batch[0]] > BLOCK_TOKENS:
            self._match_long(int(batch[0]), candidates, references)
            return
        similarity = np.empty((len(batch), candidates.width, references.width), dtype=np.float32)
        with blas_gate:
            for layer in range(self._layers):
                similarity.fill(LESS)
                sides = candidates.vectors_in(layer), references.vectors_in(layer)
                for each, left, right in zip(similarity, *sides, strict=True):
                    np.matmul(left, right.T, out=each[: len(left), : len(right)])
                self.precision[layer, batch] = candidates.mean(similarity.max(axis=2))
                self.recall[layer, batch] = references.mean(similarity.max(axis=1))

    def _match_long(self, pair: int, candidate: "_Texts", reference: "_Texts") -> None:
        """Match a pair of which a side is long."""
        with blas_gate:
            for layer in range(self._layers):
                [left], [right] = candidate.vectors_in(layer), reference.vectors_in(layer)
                self.precision[layer, pair], self.recall[layer, pair] = greedy_match(
                    left, candidate.shares, right, reference.shares
                )


@dataclass(frozen=True, slots=True)
class _Side:
    """The candidates or the references of all pairs."""

    table: TokenEmbeddings

    texts: NDArray[np.int64]
    """Which texts of the table they are, (pairs,)."""

    lengths: NDArray[np.int64]
    """How many tokens each text has, (pairs,)."""

    begins: NDArray[np.int64]
    """Where the tokens of each text begin in `shares`, (pairs,)."""

    shares: NDArray[np.float32]
    """What each token weighs of its text, (tokens,)."""

    def some(self, batch: NDArray[np.int64]) -> "_Texts":
        """Return the texts of a few pairs, (batch,)."""
        lengths = self.lengths[batch]
        begins = np.cumsum(lengths) - lengths
        shares = self.shares[joined_ranges(self.begins[batch], lengths)]
        return _Texts(self.table, self.texts[batch].tolist(), lengths, begins, shares)


@dataclass(frozen=True, slots=True)
class _Texts:
    """One side of a few pairs."""

    table: TokenEmbeddings

    texts: list[int]
    """Which texts of the table they are, (batch,)."""

    lengths: NDArray[np.int64]
    """How many tokens each text has, (batch,)."""

    begins: NDArray[np.int64]
    """Where the tokens of each text begin in `shares`, (batch,)."""

    shares: NDArray[np.float32]
    """What each token weighs of its text, one text after the other, (tokens,)."""

    def vectors_in(self, layer: int) -> Iterator[NDArray[np.float32]]:
        """Yield the vectors of each text in a layer, (tokens, hidden)."""
        return (self.table.vectors_of(layer, text) for text in self.texts)

    @property
    def width(self) -> int:
        """The tokens of the longest."""
        return int(self.lengths.max())

    def mean(self, nearest: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the weighted means, (batch,), of what tokens have, (batch, width)."""
        is_token = np.arange(self.width) < self.lengths[:, None]  # (batch, width)
        means: NDArray[np.float32] = np.add.reduceat(nearest[is_token] * self.shares, self.begins)
        return means


# Every candidate against every reference: P, R and F as matrices.


Flat = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]
"""Some texts one after the other, as `TokenEmbeddings.flat` lays them out."""


def match_matrix(
    candidates: EncodedTexts, references: EncodedTexts, weights: TokenWeights
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Match every candidate with every reference, in each layer.

    Args:
        candidates, references: the texts.
        weights: what the tokens weigh.

    Returns:
        P, R and F, (layers, cands, refs) each; 0 where a side is empty or weighs nothing.

    Raises:
        IdfError: the weights say nothing of a token that occurs.
        EncodingError: the model gave something other than finite vectors.
    """
    rows, of_candidate = np.unique(candidates.rows, return_inverse=True)
    columns, of_reference = np.unique(references.rows, return_inverse=True)
    left_scorable = _is_scorable(candidates.embeddings, rows, weights)  # (rows,)
    is_scorable = left_scorable[:, None] & _is_scorable(references.embeddings, columns, weights)  # (rows, columns)
    layers = len(candidates.embeddings.vectors)
    precision, recall = np.zeros((2, layers, len(rows), len(columns)), dtype=np.float32)
    for layer in range(layers):
        for row, some_candidates in _blocks(candidates.embeddings, rows):
            left = candidates.embeddings.flat(layer, some_candidates, weights.table)
            for column, some_references in _blocks(references.embeddings, columns):
                right = references.embeddings.flat(layer, some_references, weights.table)
                with blas_gate:
                    precision[layer, row, column], recall[layer, row, column] = _match(left, right)
    everywhere = np.ix_(np.arange(layers), of_candidate, of_reference)
    precision, recall, f1 = finite_scores(precision, recall, is_scorable)
    return precision[everywhere], recall[everywhere], f1[everywhere]


def _is_scorable(table: TokenEmbeddings, texts: NDArray[np.int64], weights: TokenWeights) -> NDArray[np.bool_]:
    """Return which texts have a token that is not special, and one that weighs something, (texts,)."""
    ids, begins = table.flat_ids(texts)  # (tokens,) and (texts,)
    has_words = np.logical_or.reduceat(weights.is_word[ids], begins)
    has_weight = np.logical_or.reduceat(weights.of(ids) > 0, begins)
    is_scorable: NDArray[np.bool_] = has_words & has_weight
    return is_scorable


def _match(left: Flat, right: Flat) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match two blocks; where one is a single long text, text by text, so that memory does not grow with it."""
    if max(len(left[0]), len(right[0])) <= BLOCK_TOKENS:
        return match_all(*left, *right)
    scores = [[greedy_match(*one, *other) for other in _each(right)] for one in _each(left)]
    precision, recall = np.moveaxis(np.array(scores, dtype=np.float32), 2, 0)  # (cands, refs) each
    return precision, recall


def _each(block: Flat) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Yield each text of a block: embeddings (tokens, hidden), and the shares of its tokens, (tokens,)."""
    vectors, weights, starts = block
    for text, of_text in zip(np.split(vectors, starts[1:]), np.split(weights, starts[1:]), strict=True):
        total = of_text.sum()
        yield text, of_text / total if total else of_text


def _blocks(table: TokenEmbeddings, texts: NDArray[np.int64]) -> list[tuple[slice, NDArray[np.int64]]]:
    """Cut texts into blocks of at most `BLOCK_TOKENS`, or one text; return where each is, and its texts."""
    blocks, start = [], 0
    ends = np.cumsum(table.lengths[texts])  # (texts,)
    while start < len(texts):
        before = ends[start] - table.lengths[texts[start]]
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_TOKENS, side="right")))
        blocks.append((slice(start, stop), texts[start:stop]))
        start = stop
    return blocks
