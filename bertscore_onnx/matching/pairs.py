"""Matches pairs of texts in batches: from token embeddings and weights to P, R and F."""

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.encoding.encoder import plan_batches
from bertscore_onnx.encoding.vectors import DeviceVectors, joined_ranges
from bertscore_onnx.errors import EncodingError, OutOfMemoryError
from bertscore_onnx.matching.greedy import BLOCK_TOKENS, greedy_match, match_all, with_f_measure
from bertscore_onnx.matching.on_device import MatchingGraph
from bertscore_onnx.matching.tokens import EncodedTexts, TokensToMatch
from bertscore_onnx.matching.weights import TokenWeights
from bertscore_onnx.scores import PRF

_log = logging.getLogger(__name__)

BATCH_TOKENS = 2048
"""Padded tokens of either side that one thread matches at a time."""

DEVICE_BATCH_TOKENS = 32_768
"""Padded tokens of either side that a device matches at a time; their vectors are copied side by side before."""

MIN_WIDTH = 16
"""The least width of padded texts on a device. That of references is a power of two by their own length: a product of
matrices has the same bits beside any other pairs, but not with other numbers of columns."""

UNDEFINED_VECTORS = (
    "The model gave infinite or undefined vectors. Its weights may be damaged: run `bertscore-onnx inspect` on the "
    "bundle."
)

PADDING_SIMILARITY = np.float32(-2)
"""Below any similarity of unit vectors; times a weight of 0 it is 0."""


def match_pairs(
    candidates: EncodedTexts,
    references: EncodedTexts,
    weights: TokenWeights,
    threads: ThreadPool,
    beta: float = 1.0,
    graph: MatchingGraph | None = None,
) -> tuple[PRF[NDArray[np.float32]], dict[str, NDArray[np.bool_]]]:
    """Match the two sides of each pair, in each layer; the score of a pair does not depend on other pairs.

    Returns P, R and F, (layers, pairs), and which pairs have nothing to match, by the reasons that `TextStats` has.
    Vectors of both sides that are on a device are matched there by the graph, if there is enough memory. Raises an
    IdfError if the weights lack a token that occurs, and an EncodingError if a vector is not finite.
    """
    pairs = PairMatching(candidates, references, weights)
    if graph is None or not pairs.match_on_device(graph):
        pairs.match_on_host(threads)
    is_filled, has_weight, is_excluded = pairs.is_filled, pairs.has_weight, pairs.is_excluded
    scores = PRF(*finite_scores(pairs.precision, pairs.recall, is_filled & has_weight, beta))
    reasons = {"empty": ~is_filled & ~is_excluded, "zero_weight": is_filled & ~has_weight, "excluded": is_excluded}
    return scores, reasons


def count_unscored(reasons: Mapping[str, NDArray[np.bool_]], counts: NDArray[np.int64]) -> dict[str, int]:
    """Count the candidates that have nothing to match with any of their references, by the reason for the first."""
    if not len(counts):
        return {}
    starts = np.cumsum(counts) - counts  # (candidates,)
    is_unscored = np.logical_and.reduceat(np.logical_or.reduce([*reasons.values()]), starts)
    return {reason: int((has_it[starts] & is_unscored).sum()) for reason, has_it in reasons.items()}


def finite_scores(
    precision: NDArray[np.float32], recall: NDArray[np.float32], is_scorable: NDArray[np.bool_], beta: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return P, R and F as `with_f_measure` does; a vector that is not finite makes them NaN, which is an error."""
    scores = with_f_measure(precision, recall, is_scorable, beta)
    if np.isnan(scores[2].sum()):
        raise EncodingError(UNDEFINED_VECTORS)
    return scores


def _weigh(
    sides: Sequence[tuple[TokensToMatch, NDArray[np.int64]]], weights: TokenWeights
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Return the weight of each token of texts one after the other, and whether it makes its text non-empty, (tokens,).

    Also return the length of each text, and where it begins, (texts,).
    """
    lengths = np.concatenate([table.lengths[texts] for table, texts in sides])  # (texts,)
    begins = np.cumsum(lengths) - lengths
    nothing = np.zeros(0, dtype=np.int64)  # there may be no texts
    ids = np.concatenate([nothing, *(table.sequences[text] for table, texts in sides for text in texts)])  # (tokens,)
    token_weights, is_word = weights.of(ids), weights.is_word[ids]
    start = 0
    for table, texts in sides:
        if table.num_weightless is not None:
            tokens = joined_ranges(begins[start : start + len(texts)], table.num_weightless[texts])
            token_weights[tokens], is_word[tokens] = 0, False
        start += len(texts)
    return token_weights, is_word, lengths, begins


class PairMatching:
    """The greedy matching of some pairs, batch by batch; threads may share it.

    The candidates of all pairs and then their references are one list of texts, whose tokens follow each other.
    """

    def __init__(self, candidates: EncodedTexts, references: EncodedTexts, weights: TokenWeights) -> None:
        sides = [(side.embeddings, side.rows) for side in (candidates, references)]
        self._tables = candidates.embeddings.vectors, references.embeddings.vectors
        token_weights, is_word, lengths, begins = _weigh(sides, weights)
        totals = np.add.reduceat(token_weights, begins)  # (2 * pairs,)
        has_words = np.logical_or.reduceat(is_word, begins)  # (2 * pairs,)
        self._weights = token_weights / np.repeat(np.where(totals > 0, totals, 1), lengths)  # (tokens,), normalised
        self._lengths, self._begins = lengths.reshape(2, -1), begins.reshape(2, -1)
        self._rows = np.stack([table.starts[texts] for table, texts in sides])  # (2, pairs), in the tables
        self.widths: NDArray[np.int64] = self._lengths.max(axis=0)
        """The tokens of the longer side, (pairs,)."""
        shape = len(self._tables[0]), len(self.widths)
        self.precision: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)
        """Scores of the pairs matched so far, (layers, pairs), as `recall`."""
        self.recall: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)
        self.is_filled: NDArray[np.bool_] = np.logical_and.reduce(has_words.reshape(2, -1))
        """Whether both sides have a token that is not special, (pairs,)."""
        self.has_weight: NDArray[np.bool_] = np.logical_and.reduce(totals.reshape(2, -1) > 0)
        """Whether both sides have a token whose weight is not 0, (pairs,)."""
        self.is_excluded: NDArray[np.bool_] = np.zeros(len(self.widths), dtype=np.bool_)
        """Whether all tokens of a side are excluded by the matching, (pairs,)."""
        for table, texts in sides:
            if table.is_excluded is not None:
                self.is_excluded |= table.is_excluded[texts]

    def match_on_device(self, graph: MatchingGraph) -> bool:
        """Match all pairs where the vectors of both sides are; return False if these are not on a device."""
        tables = [table for table in self._tables if isinstance(table, DeviceVectors)]
        if len(tables) < len(self._tables):
            return False
        reference_widths = 1 << np.ceil(np.log2(np.maximum(self._lengths[1], MIN_WIDTH))).astype(np.int64)  # (pairs,)
        try:
            for width in np.unique(reference_widths).tolist():
                alike = np.flatnonzero(reference_widths == width)
                for batch in plan_batches(np.maximum(self.widths[alike], width), DEVICE_BATCH_TOKENS):
                    self._match_on_device(graph, tables, alike[batch], width)
        except OutOfMemoryError as error:
            _log.warning("Vectors are matched on the host, which takes longer: %s", error)
            return False
        return True

    def _match_on_device(
        self, graph: MatchingGraph, vectors: Sequence[DeviceVectors], batch: NDArray[np.int64], width: int
    ) -> None:
        """Match a few pairs whose references are padded to one width."""
        sides = []
        for side, least in enumerate((MIN_WIDTH, width)):
            begins, lengths = self._begins[side, batch], self._lengths[side, batch]
            weights = np.zeros((len(batch), max(int(lengths.max()), least)), dtype=np.float32)
            weights[np.arange(weights.shape[1]) < lengths[:, None]] = self._weights[joined_ranges(begins, lengths)]
            sides.append((vectors[side], self._rows[side, batch], lengths, weights))
        self.precision[:, batch], self.recall[:, batch] = graph.match(*sides)

    @cached_property
    def _vectors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The vectors of both sides on the host."""
        return np.asarray(self._tables[0]), np.asarray(self._tables[1])

    def match_on_host(self, threads: ThreadPool) -> None:
        """Match all pairs in threads."""
        batches = list(plan_batches(self.widths, BATCH_TOKENS))
        if len(batches) == 1:  # not worth a thread switch
            self.match(batches[0])
        else:
            deque(threads.map(self.match, batches), maxlen=0)

    def match(self, batch: NDArray[np.int64]) -> None:
        """Match a few pairs, (batch,).

        The similarities of all pairs lie in one array, which is then reduced at once: each numpy call that releases
        Python's lock ends with waiting for it, and several threads match.
        """
        lengths = self._lengths[:, batch]  # (2, batch)
        weights = self._weights[joined_ranges(self._begins[:, batch].ravel(), lengths.ravel())]  # (tokens,)
        candidate_weights, reference_weights = np.split(weights, [lengths[0].sum()])
        rows = self._rows[:, batch]
        ranges = np.stack([rows, rows + lengths], axis=2).tolist()  # (2, batch, 2)
        similarity = None
        if self.widths[batch[0]] <= BLOCK_TOKENS:  # else the batch is one long pair
            similarity = np.empty((len(batch), *lengths.max(axis=1)), dtype=np.float32)
        with blas_gate:
            for layer, (candidates, references) in enumerate(zip(*self._vectors, strict=True)):
                texts = [
                    (candidates[slice(*rows)], references[slice(*columns)])
                    for rows, columns in zip(*ranges, strict=True)
                ]
                if similarity is None:
                    [(left, right)] = texts
                    scores = greedy_match(left, candidate_weights, right, reference_weights)
                    self.precision[layer, batch], self.recall[layer, batch] = scores
                    continue
                similarity.fill(PADDING_SIMILARITY)
                for matrix, (left, right) in zip(similarity, texts, strict=True):
                    np.matmul(left, right.T, out=matrix[: len(left), : len(right)])
                self.precision[layer, batch] = _weighted_means(similarity.max(axis=2), lengths[0], candidate_weights)
                self.recall[layer, batch] = _weighted_means(similarity.max(axis=1), lengths[1], reference_weights)


def _weighted_means(
    nearest: NDArray[np.float32], lengths: NDArray[np.int64], weights: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the weighted means, (texts,), of the best similarity of each token, (texts, width)."""
    is_token = np.arange(nearest.shape[1]) < lengths[:, None]  # (texts, width)
    return np.add.reduceat(nearest[is_token] * weights, np.cumsum(lengths) - lengths)


Flat = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]
"""Some texts one after the other: vectors (tokens, hidden), weights (tokens,), and where each begins, (texts,)."""


def match_matrix(
    candidates: EncodedTexts, references: EncodedTexts, weights: TokenWeights, beta: float = 1.0
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Match every candidate with every reference, in each layer.

    Returns P, R and F, (layers, cands, refs) each; 0 if a side is empty or has weight 0. Errors: see `match_pairs`.
    """
    rows, row_of_candidate = np.unique(candidates.rows, return_inverse=True)
    columns, column_of_reference = np.unique(references.rows, return_inverse=True)
    left_scorable = _is_scorable(candidates.embeddings, rows, weights)  # (rows,)
    is_scorable = left_scorable[:, None] & _is_scorable(references.embeddings, columns, weights)  # (rows, columns)
    layers = len(candidates.embeddings.vectors)
    precision, recall = np.zeros((2, layers, len(rows), len(columns)), dtype=np.float32)
    for layer in range(layers):
        for row, candidate_block in _blocks(candidates.embeddings, rows):
            left = _flat(candidates.embeddings, layer, candidate_block, weights)
            for column, reference_block in _blocks(references.embeddings, columns):
                right = _flat(references.embeddings, layer, reference_block, weights)
                with blas_gate:
                    precision[layer, row, column], recall[layer, row, column] = _match(left, right)
    everywhere = np.ix_(np.arange(layers), row_of_candidate, column_of_reference)
    precision, recall, f1 = finite_scores(precision, recall, is_scorable, beta)
    return precision[everywhere], recall[everywhere], f1[everywhere]


def _is_scorable(table: TokensToMatch, texts: NDArray[np.int64], weights: TokenWeights) -> NDArray[np.bool_]:
    """Return which texts have a token that is not special, and one whose weight is not 0, (texts,)."""
    token_weights, is_word, _, begins = _weigh([(table, texts)], weights)
    is_scorable = np.logical_or.reduceat(is_word, begins)
    is_scorable &= np.logical_or.reduceat(token_weights > 0, begins)
    return is_scorable


def _flat(table: TokensToMatch, layer: int, texts: NDArray[np.int64], weights: TokenWeights) -> Flat:
    token_weights, _, _, begins = _weigh([(table, texts)], weights)
    rows = joined_ranges(table.starts[texts], table.lengths[texts])
    return table.vectors[layer, rows], token_weights, begins


def _match(left: Flat, right: Flat) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match two blocks; if one of them is a single long text, text by text, so that memory stays bounded."""
    if max(len(left[0]), len(right[0])) <= BLOCK_TOKENS:
        return match_all(*left, *right)
    scores = [[greedy_match(*candidate, *reference) for reference in _each(right)] for candidate in _each(left)]
    precision, recall = np.moveaxis(np.array(scores, dtype=np.float32), 2, 0)  # (cands, refs) each
    return precision, recall


def _each(block: Flat) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Yield each text of a block: embeddings (tokens, hidden), and its normalised token weights, (tokens,)."""
    vectors, weights, starts = block
    for text, text_weights in zip(np.split(vectors, starts[1:]), np.split(weights, starts[1:]), strict=True):
        total = text_weights.sum()
        yield text, text_weights / total if total else text_weights


def _blocks(table: TokensToMatch, texts: NDArray[np.int64]) -> list[tuple[slice, NDArray[np.int64]]]:
    """Cut texts into blocks of at most `BLOCK_TOKENS`, or one text; return the range and the texts of each."""
    blocks, start = [], 0
    ends = np.cumsum(table.lengths[texts])  # (texts,)
    while start < len(texts):
        before = ends[start] - table.lengths[texts[start]]
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_TOKENS, side="right")))
        blocks.append((slice(start, stop), texts[start:stop]))
        start = stop
    return blocks
