"""The scores of the golden pairs, and the vectors of a long text.

Both are PyTorch's.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from bertscore_onnx.bundle.manifest import GoldenPair
from bertscore_onnx.errors import VerificationError
from bertscore_onnx_export.model.source import first_line
from bertscore_onnx_export.verify.bundle import LongText
from bertscore_onnx_export.verify.sample_texts import GOLDEN_PAIRS
from bertscore_onnx_export.verify.vectors import unit_vectors

Tokenize = Callable[[str, int | None], list[int]]
"""From a text and the most tokens, None for any number, to its ids."""

_MOST_WEIGHTS = 1 << 26
"""The weights of attention, (heads, tokens, tokens), of the long text: few enough for any memory.
With 12 heads they are those of 2,364 tokens."""


def score_golden_pairs(
    model: PreTrainedModel, ids_of: Tokenize, max_length: int | None, zero_weight_ids: Sequence[int]
) -> list[GoldenPair]:
    """Score the golden pairs with PyTorch, one pair at a time."""
    pairs = []
    for texts in GOLDEN_PAIRS:
        candidate, reference = (ids_of(text, max_length) for text in texts)
        scores = _score(model, candidate, reference, zero_weight_ids)
        if not scores.isfinite().all():
            raise VerificationError(_undefined(model))
        pairs.append(GoldenPair(*texts, *scores.tolist()))
    return pairs


def encode_long_text(model: PreTrainedModel, ids_of: Tokenize, max_length: int | None) -> LongText:
    """Encode a long text with PyTorch.

    Raise a VerificationError if the model itself cannot take it.
    """
    heads = getattr(model.config, "num_attention_heads", 16)
    length = max_length or _beyond_positions(model.config)
    length = min(length, math.isqrt(_MOST_WEIGHTS // heads))
    ids = ids_of(" ".join([GOLDEN_PAIRS[0][0]] * length), length)  # at least a token each
    row = torch.tensor([ids])
    try:
        vectors = unit_vectors(model, row, torch.ones_like(row))
    except (IndexError, RuntimeError) as error:
        raise VerificationError(
            f"The model fails in PyTorch on a text of {len(ids)} tokens: "
            f"{first_line(error).rstrip('.')}. State its maximum as model_max_length in "
            "tokenizer_config.json."
        ) from error
    return LongText(ids, vectors.reshape(-1, *vectors.shape[-2:]).numpy())


def _beyond_positions(config: Any) -> int:
    """Return more tokens than a trace could have fixed.

    The maximum of the model is not stated.
    """
    positions = getattr(config, "max_position_embeddings", None)
    if type(positions) is not int or positions <= 0:
        positions = 512
    return positions * 5 // 4


def _score(
    model: PreTrainedModel,
    candidate: Sequence[int],
    reference: Sequence[int],
    zero_weight_ids: Sequence[int],
) -> Tensor:
    """Return P, R and F of a pair, (3, layers).

    The equations are those of Zhang et al., ICLR 2020, section 3.
    """

    def embed(tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
        ids = torch.tensor([list(tokens)])
        vectors = unit_vectors(model, ids, torch.ones_like(ids))
        weights = (~torch.isin(ids[0], torch.tensor(zero_weight_ids))).float()  # (tokens,)
        # (layers, tokens, hidden), (tokens,)
        return vectors.reshape(-1, *vectors.shape[-2:]), weights / weights.sum()

    candidate_vectors, candidate_weights = embed(candidate)
    reference_vectors, reference_weights = embed(reference)
    # (layers, cand_tokens, ref_tokens)
    similarity = candidate_vectors @ reference_vectors.transpose(1, 2)
    precision = similarity.amax(dim=2) @ candidate_weights  # (layers,)
    recall = similarity.amax(dim=1) @ reference_weights  # (layers,)
    return torch.stack([precision, recall, 2 * precision * recall / (precision + recall)])


def _undefined(model: PreTrainedModel) -> str:
    cause = "its vectors are zero or overflow"
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            cause = f"{name} has weights that are not finite"
            break
    return (
        f"The model's own scores are undefined in PyTorch: {cause}. Download or save the model "
        "again."
    )
