"""Pads the token ids of a few texts to one width."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import TokenizerError


def padded_width(longest: int, manifest: Manifest, multiple: int) -> int:
    """Return the tokens to pad texts to: a multiple of this many, where the model takes as many.

    Args:
        longest: the tokens of the longest of them.
        manifest: the model's.
        multiple: what the provider likes the width to be a multiple of.
    """
    rounded = -(-longest // multiple) * multiple
    return max(longest, min(rounded, manifest.max_length or rounded))


def pad_texts(
    sequences: Sequence[NDArray[np.int64]], manifest: Manifest, width: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Pad texts to one width.

    Args:
        sequences: the ids of each text, (tokens,); at least one text, with at least one id each.
        manifest: the model's.
        width: as many tokens as the longest has, or more.

    Returns:
        The ids, (texts, width), and which of them are real tokens, (texts, width).

    Raises:
        TokenizerError: an id is none of the model's.
    """
    lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)  # (texts,)
    mask = np.arange(width) < lengths[:, None]  # (texts, width)
    input_ids = np.full(mask.shape, manifest.pad_id, dtype=np.int64)  # (texts, width)
    input_ids[mask] = np.concatenate(sequences)
    if (largest := input_ids.max()) >= manifest.vocab_size:
        raise TokenizerError(
            f"The tokenizer of {manifest.model_id} gives the id {largest}, and the model has {manifest.vocab_size} "
            "ids. Export the model again."
        )
    return input_ids, mask
