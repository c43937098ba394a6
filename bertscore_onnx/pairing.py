"""Token embeddings and weights to the precision and recall of pairs; a pair with nothing to match scores 0."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.batching import plan_batches
from bertscore_onnx.embeddings import TokenEmbeddings
from bertscore_onnx.matching import greedy_match, match_in_blocks
from bertscore_onnx.notices import Notices
from bertscore_onnx.products import product_gate
from bertscore_onnx.threads import WorkerThreads
from bertscore_onnx.weighting import TokenWeights

MAX_MATCH_TOKENS = 4096
"""Padded tokens of either side in one batch of the matching; a pair with a longer side is matched in blocks."""

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
    pairs: TokenPairs, weights: TokenWeights, special_ids: Sequence[int], threads: WorkerThreads, notices: Notices
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Match the two sides of each pair, in each layer.

    Args:
        pairs: what to match.
        weights: what the tokens weigh.
        special_ids: the ids that do not make a text non-empty.
        threads: where to match, batch by batch.
        notices: counts the pairs that score 0.

    Returns:
        Precision and recall, (layers, pairs) each; 0 and 0 where a side is empty or weighs nothing.

    Raises:
        IdfError: the weights say nothing of a token that occurs.
    """
    candidates, references = pairs.candidates, pairs.references
    precision, recall = np.zeros((2, len(candidates.vectors), len(pairs.candidate)), dtype=np.float32)
    scorable = _scorable(pairs, weights, special_ids, notices)  # (scorable,)
    candidate, reference = pairs.candidate[scorable], pairs.reference[scorable]

    @product_gate.closed()
    def match(batch: NDArray[np.int64]) -> None:
        for layer in range(len(precision)):
            precision[layer, scorable[batch]], recall[layer, scorable[batch]] = greedy_match(
                *candidates.padded(layer, candidate[batch], weights.table),
                *references.padded(layer, reference[batch], weights.table),
            )

    @product_gate.closed()
    def match_long(pair: np.int64) -> None:
        for layer in range(len(precision)):
            precision[layer, scorable[pair]], recall[layer, scorable[pair]] = match_in_blocks(
                *candidates.one(layer, candidate[pair], weights.table),
                *references.one(layer, reference[pair], weights.table),
                block=BLOCK_TOKENS,
            )

    lengths = np.maximum(candidates.lengths[candidate], references.lengths[reference])
    is_long = lengths > MAX_MATCH_TOKENS  # (scorable,)
    short = np.flatnonzero(~is_long)
    batches = [short[batch] for batch in plan_batches(lengths[short], MAX_MATCH_TOKENS)]
    deque(threads.map(match_long, np.flatnonzero(is_long)), maxlen=0)
    if len(batches) == 1:  # not worth the way to another thread
        match(batches[0])
    else:
        deque(threads.map(match, batches), maxlen=0)
    return precision, recall


def weigh_texts(
    table: TokenEmbeddings, texts: NDArray[np.int64], weights: TokenWeights, special_ids: Sequence[int]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which texts have a token that is not special, and which have one that weighs something, (texts,) each.

    Raises:
        IdfError: the weights say nothing of a token that occurs.
    """
    ids, begins = table.flat_ids(texts)  # (tokens,) and (texts,)
    is_word = np.ones(len(weights.table), dtype=np.bool_)  # (vocab_size,)
    is_word[special_ids] = False
    has_words = np.logical_or.reduceat(is_word[ids], begins)
    has_weight = np.logical_or.reduceat(weights.of(ids) > 0, begins)
    return has_words, has_weight


def _scorable(
    pairs: TokenPairs, weights: TokenWeights, special_ids: Sequence[int], notices: Notices
) -> NDArray[np.int64]:
    """Return which pairs have something to match on both sides, and count the others."""
    filled, scorable = np.ones((2, len(pairs.candidate)), dtype=np.bool_)  # (pairs,) each
    for table, text in ((pairs.candidates, pairs.candidate), (pairs.references, pairs.reference)):
        has_words, has_weight, occurs = np.zeros((3, len(table.lengths)), dtype=np.bool_)  # (texts,) each
        occurs[text] = True
        has_words[occurs], has_weight[occurs] = weigh_texts(table, np.flatnonzero(occurs), weights, special_ids)
        filled &= has_words[text]
        scorable &= (has_words & has_weight)[text]
    notices.empty += int((~filled).sum())
    notices.weightless += int((filled & ~scorable).sum())
    return np.flatnonzero(scorable)
