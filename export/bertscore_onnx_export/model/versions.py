"""Differences of transformers 4.57 and 5.

They are BERT's relative positions (Huang et al., 2020), and code to be traced.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel, masking_utils
from transformers.models.bert import modeling_bert
from transformers.models.deberta import modeling_deberta
from transformers.models.deberta_v2 import modeling_deberta_v2

from bertscore_onnx.errors import UnsupportedFamilyError

IS_TRANSFORMERS_5 = not transformers.__version__.startswith("4.")


class _RelativeAttention(nn.Module):
    """BERT's attention with a vector for each distance, added to keys, or to keys and queries."""

    def __init__(self, config: Any, *unused: Any, **also_unused: Any) -> None:
        super().__init__()
        size = config.hidden_size // config.num_attention_heads
        self.num_heads = config.num_attention_heads
        self.last = config.max_position_embeddings - 1
        # the parameters of a model that was saved with transformers 4
        self.query, self.key, self.value = (
            nn.Linear(config.hidden_size, config.hidden_size) for _ in range(3)
        )
        self.distance_embedding = nn.Embedding(2 * config.max_position_embeddings - 1, size)
        self.is_for_queries_too = config.position_embedding_type == "relative_key_query"

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None, **unused: Any
    ) -> tuple[Tensor, None]:
        """Compute the attention.

        In `attention_mask`, (batch, 1, tokens or 1, tokens), real tokens are true.
        """
        query, key, value = (
            self._heads(layer(hidden_states)) for layer in (self.query, self.key, self.value)
        )
        place = torch.arange(hidden_states.shape[1], device=hidden_states.device)
        # (tokens, tokens, size)
        by_distance = self.distance_embedding(place[:, None] - place[None, :] + self.last)
        scores = query @ key.transpose(-1, -2)  # (batch, heads, tokens, tokens)
        scores = scores + torch.einsum("bhld,lrd->bhlr", query, by_distance)
        if self.is_for_queries_too:
            scores = scores + torch.einsum("bhrd,lrd->bhlr", key, by_distance)
        scores = scores / math.sqrt(query.shape[-1])
        if attention_mask is not None:
            scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
        # (batch, tokens, hidden)
        return (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2), None

    def _heads(self, vectors: Tensor) -> Tensor:
        """Split vectors into heads.

        Vectors are (batch, tokens, hidden), and heads (batch, heads, tokens, hidden / heads).
        """
        return vectors.view(*vectors.shape[:2], self.num_heads, -1).transpose(1, 2)


@contextlib.contextmanager
def traceable() -> Iterator[None]:
    """Replace code that a trace cannot follow.

    Such code computes DeBERTa's lengths, and the masks of attention in transformers 4.57.
    """
    if IS_TRANSFORMERS_5:
        with patch.object(modeling_deberta, "compute_attention_span", _attention_span, create=True):
            yield
        return

    def broadcast(sees: Callable[..., Tensor], bh_indices: bool = True) -> Callable[..., Tensor]:
        def mask(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            places = batch[:, None, None, None], head[:, None, None], query[:, None], key
            return sees(*places).expand(
                *(indices.shape[0] for indices in (batch, head, query, key))
            )

        return mask

    # 4.57 uses `vmap`, and 5 broadcasting
    indexing = patch.object(masking_utils, "TransformGetItemToIndex", contextlib.nullcontext)
    masks = patch.object(masking_utils, "_vmap_for_bhqkv", broadcast)
    # An encoder has as many keys as queries. DeBERTa asks in every layer, by an `If` in the graph,
    # which OpenVINO does not run.
    first_version = patch.multiple(
        modeling_deberta,
        build_rpos=lambda queries, keys, distances: distances,
        uneven_size_corrected=lambda scores, *lengths: scores,
    )
    second_version = patch.object(
        modeling_deberta_v2, "build_rpos", lambda queries, keys, distances, *buckets: distances
    )
    with masks, indexing, first_version, second_version:
        yield


def _attention_span(query_layer: Tensor, key_layer: Tensor, max_relative_positions: int) -> Any:
    """Return the number of tokens, or of distances if that is less.

    transformers 5 takes Python's `min`, whose result is fixed.
    """
    tokens = query_layer.shape[-2]
    if isinstance(tokens, torch.SymInt):  # in `torch.export`, where a tensor would be fixed
        return torch.sym_min(tokens, max_relative_positions)
    return torch.as_tensor(tokens).clamp(max=max_relative_positions)


def _has_relative_keys(config: Any) -> bool:
    return str(getattr(config, "position_embedding_type", "")).startswith("relative_key")


@contextlib.contextmanager
def relative_keys_loaded(config: Any) -> Iterator[None]:
    """Let a BERT with relative keys be built with them in transformers 5.

    Refuse such models of other families.
    """
    if not (IS_TRANSFORMERS_5 and _has_relative_keys(config)):
        yield
        return
    if config.model_type != "bert":
        raise UnsupportedFamilyError(
            f"transformers {transformers.__version__} ignores the relative positions of models of "
            f"the type {config.model_type!r} (`position_embedding_type` is "
            f"{config.position_embedding_type!r}). Export this one with transformers 4.57."
        )
    config._attn_implementation = "sdpa"  # whose masks are true and false
    with patch.object(modeling_bert, "BertSelfAttention", _RelativeAttention):
        yield


def drop_absolute_positions(model: PreTrainedModel, num_layers: int) -> None:
    """Leave the absolute positions out of a BERT with relative ones.

    transformers 5 adds them.
    """
    if IS_TRANSFORMERS_5 and _has_relative_keys(model.config):
        nn.init.zeros_(model.embeddings.position_embeddings.weight)
