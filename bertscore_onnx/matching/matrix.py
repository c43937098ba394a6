"""Matches every candidate with every reference, in blocks."""

from collections.abc import Iterator

import numpy as np

from bertscore_onnx.arrays import BoolArray, Float32Array, Int64Array, joined_ranges
from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.encoding.encoder import TokenEmbeddings
from bertscore_onnx.matching.greedy import BLOCK_TOKENS, greedy_match, match_all
from bertscore_onnx.matching.pairs import EncodedTexts, finite_scores, weigh
from bertscore_onnx.matching.weights import TokenWeights

Flat = tuple[Float32Array, Float32Array, Int64Array]
"""Some texts one after the other: vectors (tokens, hidden), weights (tokens,), and where each
begins, (texts,).
"""


def match_matrix(
    candidates: EncodedTexts, references: EncodedTexts, weights: TokenWeights, beta: float = 1.0
) -> tuple[Float32Array, Float32Array, Float32Array]:
    """Match every candidate with every reference, in each layer.

    Returns P, R and F, (layers, cands, refs) each; 0 if a side is empty or has weight 0. Errors:
    see `match_pairs`.
    """
    rows, row_of_candidate = np.unique(candidates.rows, return_inverse=True)
    columns, column_of_reference = np.unique(references.rows, return_inverse=True)
    left_scorable = _is_scorable(candidates.embeddings, rows, weights)  # (rows,)
    # (rows, columns)
    is_scorable = left_scorable[:, None] & _is_scorable(references.embeddings, columns, weights)
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


def _is_scorable(table: TokenEmbeddings, texts: Int64Array, weights: TokenWeights) -> BoolArray:
    """Return which texts have a token that is not special and one of positive weight, (texts,)."""
    token_weights, is_word, _, begins = weigh([(table, texts)], weights)
    is_scorable = np.logical_or.reduceat(is_word, begins)
    is_scorable &= np.logical_or.reduceat(token_weights > 0, begins)
    return is_scorable


def _flat(table: TokenEmbeddings, layer: int, texts: Int64Array, weights: TokenWeights) -> Flat:
    token_weights, _, _, begins = weigh([(table, texts)], weights)
    rows = joined_ranges(table.starts[texts], table.lengths[texts])
    return table.vectors[layer, rows], token_weights, begins


def _match(left: Flat, right: Flat) -> tuple[Float32Array, Float32Array]:
    """Match two blocks.

    A block of a single long text is matched text by text, so that memory stays bounded.
    """
    if max(len(left[0]), len(right[0])) <= BLOCK_TOKENS:
        return match_all(*left, *right)
    scores = []
    for candidate in _each(left):
        scores.append([greedy_match(*candidate, *reference) for reference in _each(right)])
    precision, recall = np.moveaxis(np.array(scores, dtype=np.float32), 2, 0)  # (cands, refs) each
    return precision, recall


def _each(block: Flat) -> Iterator[tuple[Float32Array, Float32Array]]:
    """Yield the embeddings and the token weights of each text of a block.

    Embeddings are (tokens, hidden), and weights, (tokens,), are normalised.
    """
    vectors, weights, starts = block
    texts = np.split(vectors, starts[1:])
    weights_of_texts = np.split(weights, starts[1:])
    for text, text_weights in zip(texts, weights_of_texts, strict=True):
        total = text_weights.sum()
        yield text, text_weights / total if total else text_weights


def _blocks(table: TokenEmbeddings, texts: Int64Array) -> list[tuple[slice, Int64Array]]:
    """Cut texts into blocks of at most `BLOCK_TOKENS`, or one text.

    Return the range and the texts of each.
    """
    blocks = []
    start = 0
    ends = np.cumsum(table.lengths[texts])  # (texts,)
    while start < len(texts):
        before = ends[start] - table.lengths[texts[start]]
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_TOKENS, side="right")))
        blocks.append((slice(start, stop), texts[start:stop]))
        start = stop
    return blocks
