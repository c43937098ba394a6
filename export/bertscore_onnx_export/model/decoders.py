"""Decoders as encoders: the masks of their attention, built in a form that can be exported."""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel


def use_own_masks(model: PreTrainedModel, num_layers: int) -> None:
    """Let a model take ids and a mask, and give its layers what each kind of attention sees.

    transformers 4.57 builds these by `vmap`, which cannot be traced, and both versions skip them
    where they change nothing, which a trace would fix.
    """
    forward, config = model.forward, model.config

    def encode(input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Any:
        return forward(
            input_ids=input_ids,
            attention_mask=_masks(config, attention_mask),
            use_cache=False,
            **options,
        )

    model.forward = encode


def _masks(config: Any, mask: Tensor) -> dict[str, Tensor]:
    """Return which tokens each token sees, (batch, 1, tokens, tokens), by the name of a layer's
    attention.
    """
    place = torch.arange(mask.shape[1], device=mask.device)
    distance = place[:, None] - place[None, :]  # (tokens, tokens), of what sees to what is seen
    is_causal = not getattr(config, "use_bidirectional_attention", False)
    seen = (distance >= 0 if is_causal else distance == distance)[None, None] & (mask != 0)[
        :, None, None, :
    ]
    window = getattr(config, "sliding_window", None)
    return {
        "full_attention": seen,
        "sliding_attention": seen
        if window is None
        else seen & (distance.abs() < window)[None, None],
    }
