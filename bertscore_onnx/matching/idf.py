"""Inverse document frequency: Zhang et al., "BERTScore", ICLR 2020, section 3, with plus-one smoothing.

A weight table is one float per vocabulary id, so that weighing a text is one indexing operation.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def document_frequency(documents: Sequence[NDArray[np.int64]], vocab_size: int) -> NDArray[np.int64]:
    """Count, for every id, the documents it occurs in; special tokens count like any other.

    Args:
        documents: the token ids of each reference as it is encoded (special tokens in, truncated); at least one.
        vocab_size: how many ids there are; every id is below it.

    Returns:
        Counts, (vocab_size,).
    """
    document = np.repeat(np.arange(len(documents)), [len(ids) for ids in documents])  # (tokens,)
    occurrences = np.unique(document * vocab_size + np.concatenate(documents))  # one per document and id
    return np.bincount(occurrences % vocab_size, minlength=vocab_size)


def idf_weights(frequency: NDArray[np.int64], num_documents: int) -> NDArray[np.float32]:
    """Turn document frequencies into weights, log((N + 1) / (df + 1)) (bert-score, `utils.py:get_idf_dict`).

    Args:
        frequency: documents each id occurs in, (vocab_size,).
        num_documents: N, duplicates counted.

    Returns:
        Weights in [0, log(N + 1)], (vocab_size,); an id that never occurs gets the highest.
    """
    return np.log((num_documents + 1) / (frequency + 1)).astype(np.float32)


def uniform_weights(vocab_size: int, zero_ids: Sequence[int]) -> NDArray[np.float32]:
    """Weigh every id 1 but `zero_ids`, which weigh 0; (vocab_size,)."""
    weights = np.ones(vocab_size, dtype=np.float32)
    weights[list(zero_ids)] = 0
    return weights
