"""The scores of the golden pairs in PyTorch."""

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel

from bertscore_onnx.bundle.manifest import GoldenPair
from bertscore_onnx.errors import VerificationError
from bertscore_onnx_export.verify.sample_texts import GOLDEN_PAIRS
from bertscore_onnx_export.verify.vectors import unit_vectors


def score_golden_pairs(
    model: PreTrainedModel, ids_of: Callable[[str], Sequence[int]], zero_weight_ids: Sequence[int]
) -> list[GoldenPair]:
    """Score the golden pairs with PyTorch, one pair at a time (Zhang et al., ICLR 2020, section 3)."""

    def embed(text: str) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.tensor([ids_of(text)])
        vectors = unit_vectors(model, ids, torch.ones_like(ids))
        weights = (~torch.isin(ids[0], torch.tensor(zero_weight_ids))).float()  # (tokens,)
        return vectors.reshape(-1, *vectors.shape[-2:]), weights / weights.sum()  # (layers, tokens, hidden), (tokens,)

    pairs = []
    for candidate, reference in GOLDEN_PAIRS:
        candidate_vectors, candidate_weights = embed(candidate)
        reference_vectors, reference_weights = embed(reference)
        similarity = candidate_vectors @ reference_vectors.transpose(1, 2)  # (layers, cand_tokens, ref_tokens)
        precision = similarity.amax(dim=2) @ candidate_weights  # (layers,)
        recall = similarity.amax(dim=1) @ reference_weights  # (layers,)
        f1 = 2 * precision * recall / (precision + recall)
        if not f1.isfinite().all():
            raise VerificationError(_undefined(model))
        pairs.append(GoldenPair(candidate, reference, precision.tolist(), recall.tolist(), f1.tolist()))
    return pairs


def _undefined(model: PreTrainedModel) -> str:
    damaged = next((name for name, weight in model.named_parameters() if not weight.isfinite().all()), None)
    cause = "its vectors are zero or overflow" if damaged is None else f"{damaged} has weights that are not finite"
    return f"The model's own scores are undefined in PyTorch: {cause}. Download or save the model again."
