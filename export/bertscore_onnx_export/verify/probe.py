"""Learns by running a model what the table of families says of the tested ones."""

from typing import Any

from transformers import PreTrainedModel

from bertscore_onnx_export.model.families import Family, after_padding
from bertscore_onnx_export.verify.vectors import HARMLESS, sample_ids, unit_vectors


def max_tokens(model: PreTrainedModel, config: Any, family: Family) -> int | None:
    """Return the most tokens that a model can take; None where it has no bound.

    For a family outside the table it is what the configuration gives, if the model runs at that length, or else what
    RoBERTa's way of counting leaves of it.
    """
    longest = family.max_tokens(config)
    if family.is_tested or longest is None:
        return longest
    try:
        unit_vectors(model, *sample_ids(model, longest))
    except (IndexError, RuntimeError):
        return after_padding(config)
    return longest


def takes_padding(model: PreTrainedModel, family: Family) -> bool:
    """Return whether padding leaves the vectors of the real tokens alone."""
    if family.is_tested:
        return family.padding
    alone, padded = unit_vectors(model, *sample_ids(model, 9)), unit_vectors(model, *sample_ids(model, 9, padding=7))
    return bool((alone - padded[..., :9, :]).abs().max() < HARMLESS)
