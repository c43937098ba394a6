"""Embeddings and weights to the precision and recall of pairs, in batches; a pair with nothing to match scores 0."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.batching import plan_batches
from bertscore_onnx.embeddings import TokenEmbeddings
from bertscore_onnx.matching import greedy_match
from bertscore_onnx.notices import notice
from bertscore_onnx.weighting import TokenWeights

MAX_MATCH_TOKENS = 4096
"""Padded tokens of either side in one batch of the matching."""


def match_pairs(
    embeddings: TokenEmbeddings,
    candidate: NDArray[np.int64],
    reference: NDArray[np.int64],
    weights: TokenWeights,
    special_ids: Sequence[int],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Score texts of one table paired up, in each of its layers.

    Args:
        embeddings: the texts.
        candidate: which text is the candidate of each pair, (pairs,).
        reference: which text is the reference of each pair, (pairs,).
        weights: what the tokens weigh.
        special_ids: the ids that do not make a text non-empty.

    Returns:
        Precision and recall, (layers, pairs) each; 0 and 0 where a side is empty or weighs nothing.

    Raises:
        IdfError: the weights say nothing of a token that occurs.

    Warns:
        UserWarning: how many pairs score 0, and why.
    """
    weights.check_covers(embeddings.ids)
    precision, recall = np.zeros((2, len(embeddings.vectors), len(candidate)), dtype=np.float32)
    content = embeddings.count(~np.isin(embeddings.ids, special_ids)) > 0  # (texts,)
    weighty = embeddings.count(weights.table[embeddings.ids] > 0) > 0  # (texts,)
    filled = content[candidate] & content[reference]  # (pairs,)
    scorable = filled & weighty[candidate] & weighty[reference]  # (pairs,)
    _warn_of_zeros(int((~filled).sum()), "a side is empty")
    _warn_of_zeros(int((filled & ~scorable).sum()), "every token of a side weighs 0")
    lengths = np.maximum(embeddings.lengths[candidate], embeddings.lengths[reference])
    for batch in plan_batches(lengths, MAX_MATCH_TOKENS):
        for layer in range(len(embeddings.vectors)):
            precision[layer, batch], recall[layer, batch] = greedy_match(
                *embeddings.padded(layer, candidate[batch], weights.table),
                *embeddings.padded(layer, reference[batch], weights.table),
            )
    return np.where(scorable, precision, np.float32(0)), np.where(scorable, recall, np.float32(0))


def _warn_of_zeros(count: int, reason: str) -> None:
    if count:
        scored = "1 pair scores" if count == 1 else f"{count} pairs score"
        notice(f"{scored} 0 because {reason}.", stacklevel=4)
