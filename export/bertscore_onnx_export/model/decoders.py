"""Decoders as encoders: the masks of their attention.

They are built in a form that can be exported.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel


def use_own_masks(model: PreTrainedModel, num_layers: int) -> None:
    """Let a model take ids and a mask, and build its attention's masks here.

    Its layers get what each kind of attention sees.

    transformers 4.57 builds these masks by `vmap`, which cannot be traced, and both versions skip
    them where they change nothing, which a trace would fix.
    """
    forward = model.forward
    config = model.config

    def encode(input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Any:
        return forward(
            input_ids=input_ids,
            attention_mask=_masks(config, attention_mask),
            use_cache=False,
            **options,
        )

    model.forward = encode


def _masks(config: Any, mask: Tensor) -> dict[str, Tensor]:
    """Return which tokens each token sees, (batch, 1, tokens, tokens).

    The masks are by the name of a layer's attention.
    """
    place = torch.arange(mask.shape[1], device=mask.device)
    distance = place[:, None] - place[None, :]  # (tokens, tokens), of what sees to what is seen
    # Bidirectional attention has a mask of the same shape, which is true everywhere.
    is_bidirectional = getattr(config, "use_bidirectional_attention", False)
    is_in_reach = distance == distance if is_bidirectional else distance >= 0
    is_seen = is_in_reach[None, None] & (mask != 0)[:, None, None, :]
    window = getattr(config, "sliding_window", None)
    if window is None:
        return {"full_attention": is_seen, "sliding_attention": is_seen}
    is_near = is_seen & (distance.abs() < window)[None, None]
    return {"full_attention": is_seen, "sliding_attention": is_near}
