"""Verifies a bundle: PyTorch, the runtime and the scoring graph must give the golden pairs the same scores."""

from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.bundle.manifest import GoldenPair
from bertscore_onnx.errors import EncodingError, GraphError, VerificationError
from bertscore_onnx.scoring.golden import (
    GOLDEN_TOLERANCES,
    difference_by_pairs,
    golden_difference,
    golden_pipeline,
    golden_tolerance,
)
from bertscore_onnx_export.tokenizer.write import TokenizerFacts, original_ids
from bertscore_onnx_export.verify.sample_texts import GOLDEN_PAIRS
from bertscore_onnx_export.verify.vectors import unit_vectors


def score_golden_pairs(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, facts: TokenizerFacts
) -> list[GoldenPair]:
    """Score the golden pairs with PyTorch, one pair at a time (Zhang et al., ICLR 2020, section 3)."""

    def embed(text: str) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.tensor([original_ids(tokenizer, text, facts.max_length)])
        vectors = unit_vectors(model, ids, torch.ones_like(ids))
        weights = (~torch.isin(ids[0], torch.tensor(facts.zero_weight_ids))).float()  # (tokens,)
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


def verify_bundle(folder: Path) -> float:
    """Return the largest difference between the runtime's scores of a bundle's golden pairs and PyTorch's.

    Raises a VerificationError above the tolerance of the bundle's precision.
    """
    with golden_pipeline(folder, device="cpu") as pipeline:
        precision = pipeline.manifest.precision
        try:
            difference, tolerance = golden_difference(pipeline), golden_tolerance(pipeline)
        except EncodingError as error:
            raise VerificationError(
                f"The exported graph gives infinite or undefined vectors in {precision}. The bundle was not kept. fp32 "
                "has a larger range than fp16, but does not help if the model's weights are damaged."
            ) from error
    if not difference <= tolerance:
        raise VerificationError(
            f"The exported graph differs from the PyTorch model by {difference:.1e} on the golden pairs; at most "
            f"{tolerance:.0e} is accepted in {precision}. The bundle was not kept."
        )
    return difference


def verify_scoring_graph(folder: Path) -> float:
    """Return the largest difference between the scores of the scoring graph and of the runtime for the golden pairs.

    Raises a VerificationError above the tolerance of the bundle's precision.
    """
    bundle = open_bundle(folder, verify=True)
    try:
        difference, tolerance = difference_by_pairs(bundle, device="cpu"), GOLDEN_TOLERANCES[bundle.manifest.precision]
    except (EncodingError, GraphError) as error:
        raise VerificationError(
            f"The scoring graph cannot be used: {error} The bundle was not kept; export without --scoring-graph."
        ) from error
    if not difference <= tolerance:
        raise VerificationError(
            f"The scores of the scoring graph differ from the runtime's by {difference:.1e} on the golden pairs; at "
            f"most {tolerance:.0e} is accepted. The bundle was not kept; export without --scoring-graph."
        )
    return difference
