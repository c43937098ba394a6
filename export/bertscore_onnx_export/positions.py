"""How many tokens a model can take."""

from typing import Any

import torch
from transformers import PreTrainedModel

from bertscore_onnx_export.families import Family, after_padding


def max_tokens(model: PreTrainedModel, config: Any, family: Family) -> int | None:
    """Return the most tokens that a model can take; None where it has no bound.

    The table says so for the families in it. For others it is what the configuration gives, if the model runs at that
    length, or else what RoBERTa's way of counting leaves of it.
    """
    longest = family.max_tokens(config)
    if family.proved or longest is None or _runs(model, longest):
        return longest
    return after_padding(config)


def _runs(model: PreTrainedModel, tokens: int) -> bool:
    ids = torch.full((1, tokens), model.config.vocab_size // 2)  # hardly the padding id, which counts as no position
    try:
        with torch.no_grad():
            model(ids, attention_mask=torch.ones_like(ids))
    except (IndexError, RuntimeError):
        return False
    return True
