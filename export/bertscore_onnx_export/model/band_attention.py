"""Longformer's sliding-window attention in a form that exports: dense, with a band for a mask.

The original (Beltagy et al., 2020, section 3) cuts the sequence into chunks, whose number a trace would fix. Without
global tokens, which are not used here, it is ordinary attention in which a token sees those at most half a window
away. Dense costs memory in the square of the length, as every other family does.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.led.modeling_led import LEDEncoderSelfAttention
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention


class _BandAttention(nn.Module):
    """Takes the place of a window attention layer, with its weights."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.query, self.key, self.value = original.query, original.key, original.value
        self.num_heads: int = original.num_heads
        self.reach: int = original.one_sided_attn_window_size

    def forward(self, hidden_states: Tensor, attention_mask: Tensor, **unused: Any) -> tuple[Tensor]:
        """Attend; in `attention_mask`, (batch, tokens), real tokens are 0."""
        query, key, value = (self._heads(layer(hidden_states)) for layer in (self.query, self.key, self.value))
        position = torch.arange(hidden_states.shape[1], device=hidden_states.device)
        far = (position[None, :] - position[:, None]).abs() > self.reach  # (tokens, tokens)
        hidden = far | (attention_mask != 0)[:, None, None, :]  # (batch, 1, tokens, tokens)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])  # (batch, heads, tokens, tokens)
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(dim=-1)
        return ((weights @ value).transpose(1, 2).flatten(2),)  # (batch, tokens, hidden)

    def _heads(self, vectors: Tensor) -> Tensor:
        """Split vectors, (batch, tokens, hidden), among the heads, (batch, heads, tokens, hidden / heads)."""
        return vectors.view(*vectors.shape[:2], self.num_heads, -1).transpose(1, 2)


def use_band_attention(model: PreTrainedModel, num_layers: int) -> None:
    """Replace every window attention of a Longformer or an LED encoder, and its padding to whole windows."""
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, LongformerSelfAttention | LEDEncoderSelfAttention):
                setattr(parent, name, _BandAttention(layer))
    model._pad_to_window_size = _pad_nothing


def _pad_nothing(*, pad_token_id: int, **inputs: Tensor | None) -> tuple[int | Tensor | None, ...]:
    return 0, *inputs.values()
