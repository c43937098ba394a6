"""Facts about a model that the table gives for the families in it, and that running the model gives for others."""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from bertscore_onnx_export.families import Family, after_padding

_HARMLESS = 1e-4
"""Padding that moves a coordinate of a unit vector by less leaves the vector alone."""


def max_tokens(model: PreTrainedModel, config: Any, family: Family) -> int | None:
    """Return the most tokens that a model can take; None where it has no bound.

    For a family outside the table it is what the configuration gives, if the model runs at that length, or else what
    RoBERTa's way of counting leaves of it.
    """
    longest = family.max_tokens(config)
    if family.proved or longest is None:
        return longest
    try:
        _encode(model, tokens=longest, padding=0)
    except (IndexError, RuntimeError):
        return after_padding(config)
    return longest


def takes_padding(model: PreTrainedModel, family: Family) -> bool:
    """Return whether padding leaves the vectors of the real tokens alone."""
    if family.proved:
        return family.padding
    alone, padded = _encode(model, tokens=9, padding=0), _encode(model, tokens=9, padding=7)
    return bool((alone - padded).abs().max() < _HARMLESS)


def _encode(model: PreTrainedModel, *, tokens: int, padding: int) -> Tensor:
    """Return the unit vectors of some tokens, (tokens, hidden), with so much padding behind them."""
    middle = model.config.vocab_size // 2  # away from special tokens; RoBERTa does not count padding as positions
    ids = middle + torch.arange(tokens) % 5
    mask = torch.ones_like(ids)
    ids, mask = (torch.nn.functional.pad(row, (0, padding))[None] for row in (ids, mask))
    with torch.no_grad():
        vectors: Tensor = model(ids, attention_mask=mask).last_hidden_state[0, :tokens]
    return vectors / vectors.norm(dim=-1, keepdim=True)
