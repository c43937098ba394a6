"""Encoded texts, and the matching of their pairs in batches.

It turns token embeddings and weights into P, R and F.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bertscore_onnx.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int64Array,
    joined,
    joined_ranges,
    starts_of,
)
from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.concurrency.threads import Threads
from bertscore_onnx.encoding.encoder import TokenEmbeddings, plan_batches
from bertscore_onnx.errors import EncodingError
from bertscore_onnx.matching.greedy import BLOCK_TOKENS, greedy_match, with_f_measure
from bertscore_onnx.matching.weights import TokenWeights
from bertscore_onnx.scores import PRF

BATCH_TOKENS = 2048
"""Padded tokens of either side that one thread matches at a time."""

UNDEFINED_VECTORS = (
    "The model gave infinite or undefined vectors. Its weights may be damaged: run "
    "`bertscore-onnx inspect` on the bundle."
)

PADDING_SIMILARITY = np.float32(-2)
"""Below any similarity of unit vectors; times a weight of 0 it is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTexts:
    """Texts that `BERTScorer.encode` encoded once, to be scored many times.

    Equal texts are stored once.

    `BERTScorer.score` and `pairwise` of the same model take them in place of strings. They need 4
    bytes × hidden size for each token of the distinct texts and for some padding, in each layer;
    `nbytes` is the total.
    """

    embeddings: TokenEmbeddings
    """The distinct texts."""

    rows: Int64Array
    """The index of each text among the distinct ones, (texts,)."""

    counts: Int64Array
    """How many texts each item has, (items,): 1, or the number of references where an item was a
    list of them.
    """

    model: str
    """The name of the model that encoded them; only this model may score them."""

    is_truncated: BoolArray
    """Which of the distinct texts are longer than the model's maximum, (distinct texts,)."""

    unknown: Float64Array
    """The share of tokens that are unknown to the model, in each of the distinct texts, (distinct
    texts,).
    """

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.counts)

    def __getitem__(self, items: slice) -> "EncodedTexts":
        """Return some of the items, without copying embeddings."""
        counts = self.counts[items]
        texts = joined_ranges(starts_of(self.counts)[items], counts)  # (some texts,)
        return self.part(texts, counts)

    def part(self, texts: slice | Int64Array, counts: Int64Array) -> "EncodedTexts":
        """Return some of the texts, given how many each item has."""
        return replace(self, rows=self.rows[texts], counts=counts)

    @property
    def documents(self) -> list[Int64Array]:
        """The ids of each text, (tokens,), in which idf counts tokens."""
        documents = self.embeddings.documents or self.embeddings.sequences
        return [documents[row] for row in self.rows]

    @property
    def nbytes(self) -> int:
        """The memory that the embeddings take, in bytes."""
        return self.embeddings.vectors.nbytes

    def __repr__(self) -> str:
        """Show the size rather than the content."""
        return f"EncodedTexts({len(self)} items, {self.nbytes / 1e6:.1f} MB, {self.model})"


def match_pairs(
    candidates: EncodedTexts,
    references: EncodedTexts,
    weights: TokenWeights,
    threads: Threads,
    beta: float = 1.0,
    on_device: Callable[["PairMatching"], bool] | None = None,
) -> tuple[PRF[Float32Array], dict[str, BoolArray]]:
    """Match the two sides of each pair, in each layer.

    The score of a pair does not depend on other pairs.

    Returns P, R and F, (layers, pairs), and which pairs have nothing to match, by the reasons that
    `TextStats` has. `on_device` matches the pairs where their vectors are, or returns that it
    cannot. Raises an IdfError if the weights lack a token that occurs, and an EncodingError if a
    vector is not finite.
    """
    pairs = PairMatching(candidates, references, weights)
    if on_device is None or not on_device(pairs):
        pairs.match_on_host(threads)
    is_scorable = pairs.is_filled & pairs.has_weight
    scores = PRF(*finite_scores(pairs.precision, pairs.recall, is_scorable, beta))
    reasons = {
        "empty": ~pairs.is_filled & ~pairs.is_excluded,
        "zero_weight": pairs.is_filled & ~pairs.has_weight,
        "excluded": pairs.is_excluded,
    }
    return scores, reasons


def count_unscored(reasons: Mapping[str, BoolArray], counts: Int64Array) -> dict[str, int]:
    """Count the candidates that have nothing to match, by the reason.

    That is so with each of their references; the reason is that for the first.
    """
    if not len(counts):
        return {}
    starts = starts_of(counts)  # (candidates,)
    is_unscored = np.logical_and.reduceat(np.logical_or.reduce(list(reasons.values())), starts)
    return {reason: int((has_it[starts] & is_unscored).sum()) for reason, has_it in reasons.items()}


def finite_scores(
    precision: Float32Array,
    recall: Float32Array,
    is_scorable: BoolArray,
    beta: float,
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Return P, R and F as `with_f_measure` does.

    A vector that is not finite makes them NaN, which is an error.
    """
    scores = with_f_measure(precision, recall, is_scorable, beta)
    if np.isnan(scores[2].sum()):
        raise EncodingError(UNDEFINED_VECTORS)
    return scores


def weigh(
    sides: Sequence[tuple[TokenEmbeddings, Int64Array]], weights: TokenWeights
) -> tuple[Float32Array, BoolArray, Int64Array, Int64Array]:
    """Weigh the tokens of texts, one text after the other.

    Return the weight of each token, and whether it makes its text non-empty, (tokens,); the length
    of each text, and where it begins, (texts,).
    """
    lengths = np.concatenate([table.lengths[texts] for table, texts in sides])  # (texts,)
    begins = starts_of(lengths)
    ids = joined(table.sequences[text] for table, texts in sides for text in texts)  # (tokens,)
    token_weights = weights.of(ids)
    is_word = weights.is_word[ids]
    start = 0
    for table, texts in sides:
        if table.num_weightless is not None:
            tokens = joined_ranges(begins[start : start + len(texts)], table.num_weightless[texts])
            token_weights[tokens] = 0
            is_word[tokens] = False
        start += len(texts)
    return token_weights, is_word, lengths, begins


class PairMatching:
    """The greedy matching of some pairs, batch by batch; threads may share it.

    The candidates of all pairs and then their references are one list of texts, whose tokens follow
    each other.
    """

    def __init__(
        self, candidates: EncodedTexts, references: EncodedTexts, weights: TokenWeights
    ) -> None:
        sides = [(side.embeddings, side.rows) for side in (candidates, references)]
        self.vectors = candidates.embeddings.vectors, references.embeddings.vectors
        token_weights, is_word, lengths, begins = weigh(sides, weights)
        totals = np.add.reduceat(token_weights, begins)  # (2 * pairs,)
        has_words = np.logical_or.reduceat(is_word, begins)  # (2 * pairs,)
        # (tokens,), normalised
        self.weights = token_weights / np.repeat(np.where(totals > 0, totals, 1), lengths)
        self.lengths = lengths.reshape(2, -1)
        self.begins = begins.reshape(2, -1)
        # (2, pairs), in the tables
        self.rows = np.stack([table.starts[texts] for table, texts in sides])
        self.widths: Int64Array = self.lengths.max(axis=0)
        """The tokens of the longer side, (pairs,)."""
        shape = len(self.vectors[0]), len(self.widths)
        self.precision: Float32Array = np.zeros(shape, dtype=np.float32)
        """Scores of the pairs matched so far, (layers, pairs), as `recall`."""
        self.recall: Float32Array = np.zeros(shape, dtype=np.float32)
        self.is_filled: BoolArray = np.logical_and.reduce(has_words.reshape(2, -1))
        """Whether both sides have a token that is not special, (pairs,)."""
        self.has_weight: BoolArray = np.logical_and.reduce(totals.reshape(2, -1) > 0)
        """Whether both sides have a token whose weight is not 0, (pairs,)."""
        self.is_excluded: BoolArray = np.zeros(len(self.widths), dtype=np.bool_)
        """Whether all tokens of a side are excluded by the matching, (pairs,)."""
        for table, texts in sides:
            if table.is_excluded is not None:
                self.is_excluded |= table.is_excluded[texts]

    @cached_property
    def _on_host(self) -> tuple[Float32Array, Float32Array]:
        """The vectors of both sides on the host."""
        return np.asarray(self.vectors[0]), np.asarray(self.vectors[1])

    def match_on_host(self, threads: Threads) -> None:
        """Match all pairs in threads."""
        batches = list(plan_batches(self.widths, BATCH_TOKENS))
        if len(batches) == 1:  # not worth a thread switch
            self.match(batches[0])
        else:
            deque(threads.map(self.match, batches), maxlen=0)

    def match(self, batch: Int64Array) -> None:
        """Match a few pairs, (batch,).

        The similarities of all pairs lie in one array, which is then reduced at once: each numpy
        call that releases Python's lock ends with waiting for it, and several threads match.
        """
        lengths = self.lengths[:, batch]  # (2, batch)
        # (tokens,)
        weights = self.weights[joined_ranges(self.begins[:, batch].ravel(), lengths.ravel())]
        candidate_weights, reference_weights = np.split(weights, [lengths[0].sum()])
        rows = self.rows[:, batch]
        ranges = np.stack([rows, rows + lengths], axis=2).tolist()  # (2, batch, 2)
        similarity = None
        if self.widths[batch[0]] <= BLOCK_TOKENS:  # else the batch is one long pair
            similarity = np.empty((len(batch), *lengths.max(axis=1)), dtype=np.float32)
        with blas_gate:
            for layer, (candidates, references) in enumerate(zip(*self._on_host, strict=True)):
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
                self.precision[layer, batch] = _weighted_means(
                    similarity.max(axis=2), lengths[0], candidate_weights
                )
                self.recall[layer, batch] = _weighted_means(
                    similarity.max(axis=1), lengths[1], reference_weights
                )


def _weighted_means(
    nearest: Float32Array, lengths: Int64Array, weights: Float32Array
) -> Float32Array:
    """Return weighted means, (texts,), of the best similarity of each token, (texts, width)."""
    is_token = np.arange(nearest.shape[1]) < lengths[:, None]  # (texts, width)
    return np.add.reduceat(nearest[is_token] * weights, starts_of(lengths))
