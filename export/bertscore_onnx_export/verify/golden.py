"""The scores of the golden pairs, and of a long pair, in PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from bertscore_onnx.bundle.manifest import GoldenPair
from bertscore_onnx.errors import VerificationError
from bertscore_onnx_export.model.source import first_line
from bertscore_onnx_export.verify.bundle import LONGEST, LongPair
from bertscore_onnx_export.verify.sample_texts import GOLDEN_PAIRS
from bertscore_onnx_export.verify.vectors import unit_vectors

Tokenize = Callable[[str, int | None], list[int]]
"""From a text and the most tokens, None for any number, to its ids."""


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


def score_long_pair(
    model: PreTrainedModel, ids_of: Tokenize, max_length: int | None, zero_weight_ids: Sequence[int]
) -> LongPair:
    """Score a long pair with PyTorch; raise a VerificationError if the model itself cannot take its text."""
    most = min(max_length or _beyond_positions(model.config), LONGEST)
    text, other = GOLDEN_PAIRS[0]
    repeated = " ".join([text] * most)  # at least a token each
    candidate, reference = ids_of(repeated, most), ids_of(other, most)
    try:
        scores = _score(model, candidate, reference, zero_weight_ids)
    except (IndexError, RuntimeError) as error:
        raise VerificationError(
            f"The model fails in PyTorch on a text of {len(candidate)} tokens: {first_line(error).rstrip('.')}. State "
            "its maximum as model_max_length in tokenizer_config.json."
        ) from error
    return LongPair(candidate, reference, scores[:2].numpy())


def _beyond_positions(config: Any) -> int:
    """Return more tokens than a trace could have fixed, for a model whose maximum is not stated."""
    positions = getattr(config, "max_position_embeddings", None)
    return (positions if type(positions) is int and positions > 0 else 512) * 5 // 4


def _score(
    model: PreTrainedModel, candidate: Sequence[int], reference: Sequence[int], zero_weight_ids: Sequence[int]
) -> Tensor:
    """Return P, R and F of a pair, (3, layers) (Zhang et al., ICLR 2020, section 3)."""

    def embed(tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
        ids = torch.tensor([[*tokens]])
        vectors = unit_vectors(model, ids, torch.ones_like(ids))
        weights = (~torch.isin(ids[0], torch.tensor(zero_weight_ids))).float()  # (tokens,)
        return vectors.reshape(-1, *vectors.shape[-2:]), weights / weights.sum()  # (layers, tokens, hidden), (tokens,)

    (candidate_vectors, candidate_weights), (reference_vectors, reference_weights) = embed(candidate), embed(reference)
    similarity = candidate_vectors @ reference_vectors.transpose(1, 2)  # (layers, cand_tokens, ref_tokens)
    precision = similarity.amax(dim=2) @ candidate_weights  # (layers,)
    recall = similarity.amax(dim=1) @ reference_weights  # (layers,)
    return torch.stack([precision, recall, 2 * precision * recall / (precision + recall)])


def _undefined(model: PreTrainedModel) -> str:
    damaged = next((name for name, weight in model.named_parameters() if not weight.isfinite().all()), None)
    cause = "its vectors are zero or overflow" if damaged is None else f"{damaged} has weights that are not finite"
    return f"The model's own scores are undefined in PyTorch: {cause}. Download or save the model again."
