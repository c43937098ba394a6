"""Pads the token ids of a few texts to one width."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import TokenizerError


def pad_texts(
    sequences: Sequence[NDArray[np.int64]], manifest: Manifest, multiple: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Pad texts to the longest of them, or to a multiple of this many tokens that the model still takes.

    Args:
        sequences: the ids of each text, (tokens,); at least one text, with at least one id each.
        manifest: the model's.
        multiple: what the width is to be a multiple of.

    Returns:
        The ids, (texts, tokens), and which of them are real tokens, (texts, tokens).

    Raises:
        TokenizerError: an id is none of the model's.
    """
    lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
    longest = int(lengths.max())
    rounded = -(-longest // multiple) * multiple
    width = max(longest, min(rounded, manifest.max_length or rounded))
    mask = np.arange(width) < lengths[:, None]  # (texts, tokens)
    input_ids = np.full(mask.shape, manifest.pad_id, dtype=np.int64)  # (texts, tokens)
    input_ids[mask] = np.concatenate(sequences)
    if (largest := input_ids.max()) >= manifest.vocab_size:
        raise TokenizerError(
            f"The tokenizer of {manifest.model_id} gives the id {largest}, and the model has {manifest.vocab_size} "
            "ids. Export the model again."
        )
    return input_ids, mask
