"""Every candidate against every reference: P, R and F as matrices."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.encoding.embeddings import EncodedTexts, TokenEmbeddings
from bertscore_onnx.matching.greedy import BLOCK_TOKENS, greedy_match, match_all
from bertscore_onnx.matching.pairs import finite_scores
from bertscore_onnx.matching.weights import TokenWeights

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
