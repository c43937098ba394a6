"""The table of architectures, with what each needs to be exported exactly.

A new family is a new row.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForTextEncoding, PreTrainedModel
from transformers.models.led.modeling_led import LEDEncoderSelfAttention
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.model.decoders import use_own_masks
from bertscore_onnx_export.model.versions import drop_absolute_positions

ALL_LAYERS = 1_000
"""More layers than any model has."""


@dataclass(frozen=True, slots=True)
class Family:
    """One architecture."""

    name: str
    """Its name in the catalogue and in manifests."""

    model_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments for loading it: parts to leave out since no token vector depends on them, and the
    code to run.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its configuration that make it exportable."""

    loader: Any = AutoModel
    """The class of transformers that finds and loads the model's class."""

    least_layers: int = 0
    """The fewest layers that its class can be built with, or `ALL_LAYERS` if its weights fit no
    other number; `adapt` must drop those beyond the requested number."""

    adapt: Callable[[PreTrainedModel, int], None] = lambda model, num_layers: None
    """Turns a loaded model into an equivalent model that can be exported, with this number of
    layers.
    """

    final_norm: str = ""
    """The name of the module after the last layer, which an export of all layers applies to each of
    them.
    """

    padding: bool = True
    """Whether padding leaves the vectors of the real tokens unchanged."""

    is_tested: bool = True
    """Whether tests compare it with bert-score's vectors."""


def _drop_blocks(model: Any, num_layers: int) -> None:
    """Drop layers of T5, whose class reads a weight of the first layer and needs at least that."""
    model.encoder.block = model.encoder.block[:num_layers]


def _drop_layers(model: Any, num_layers: int) -> None:
    """Drop layers of ModernBERT.

    transformers 5 cannot build it without any.
    """
    model.layers = model.layers[:num_layers]


def _drop_layers_and_their_inputs(model: Any, num_layers: int) -> None:
    """Drop layers of EmbeddingGemma 2, and their inputs.

    The inputs are rows of the matrix that computes an input for each layer.

    The projection after its norm becomes part of the norm, and the size of the vectors that of its
    result.
    """
    model.layers = model.layers[:num_layers]
    inputs = model.ple
    inputs.num_hidden_layers = num_layers
    projection = inputs.per_layer_model_projection
    num_rows = num_layers * inputs.hidden_size_per_layer_input
    projection.weight.data = projection.weight.data[:num_rows]
    model.norm = nn.Sequential(model.norm, model.embedding_projection)
    model.embedding_projection = nn.Identity()
    model.config.hidden_size = model.config.embedding_dim


class _ConvolutionByProducts(nn.Module):
    """A convolution over tokens, as products with constant matrices.

    ONNX Runtime's own convolution sums in an order that depends on the number of tokens, and so on
    the padding.
    """

    def __init__(self, original: nn.Conv1d) -> None:
        super().__init__()
        self.width = original.kernel_size[0]
        self.reach = int(original.padding[0])
        self.products = nn.ModuleList()
        biases = torch.zeros(original.out_channels)
        if original.bias is not None:
            biases = original.bias.detach()
        # (out / groups, in / groups, width) each
        weights = original.weight.detach().chunk(original.groups)
        for weight, bias in zip(weights, biases.chunk(original.groups), strict=True):
            product = nn.Linear(weight[0].numel(), len(weight))
            product.weight.data = weight.transpose(1, 2).flatten(1).contiguous()
            product.bias.data = bias.clone()
            self.products.append(product)

    def forward(self, vectors: Tensor) -> Tensor:
        """Convolve vectors, (batch, channels, tokens)."""
        tokens = vectors.shape[2]
        padded = nn.functional.pad(vectors, (self.reach, self.reach)).transpose(1, 2)
        windows = []
        for group in padded.chunk(len(self.products), dim=-1):
            shifted = [group[:, start : start + tokens] for start in range(self.width)]
            windows.append(torch.cat(shifted, -1))
        convolved = []
        for product, window in zip(self.products, windows, strict=True):
            convolved.append(product(window))
        return torch.cat(convolved, -1).transpose(1, 2)


def use_products(model: PreTrainedModel, num_layers: int) -> None:
    """Replace the convolutions over tokens of a model by products.

    Those of single channels stay, which sum little.
    """
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, nn.Conv1d) and layer.groups < layer.in_channels:
                setattr(parent, name, _ConvolutionByProducts(layer))


class _BandAttention(nn.Module):
    """Longformer's sliding-window attention in an exportable form: dense, with a band as mask."""

    # The original (Beltagy et al., 2020, section 3) cuts the sequence into chunks, whose number a
    # trace would fix. Without global tokens, which are not used here, it is ordinary attention in
    # which a token sees those at most half a window away. Dense attention takes memory quadratic
    # in the length, as in all other families.

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.query = original.query
        self.key = original.key
        self.value = original.value
        self.num_heads: int = original.num_heads
        self.reach: int = original.one_sided_attn_window_size

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor, **unused: Any
    ) -> tuple[Tensor]:
        """Compute the attention.

        In `attention_mask`, (batch, tokens), real tokens are 0.
        """
        query, key, value = (
            self._heads(layer(hidden_states)) for layer in (self.query, self.key, self.value)
        )
        position = torch.arange(hidden_states.shape[1], device=hidden_states.device)
        far = (position[None, :] - position[:, None]).abs() > self.reach  # (tokens, tokens)
        hidden = far | (attention_mask != 0)[:, None, None, :]  # (batch, 1, tokens, tokens)
        # (batch, heads, tokens, tokens)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(dim=-1)
        return ((weights @ value).transpose(1, 2).flatten(2),)  # (batch, tokens, hidden)

    def _heads(self, vectors: Tensor) -> Tensor:
        """Split vectors into heads.

        Vectors are (batch, tokens, hidden), and heads (batch, heads, tokens, hidden / heads).
        """
        return vectors.view(*vectors.shape[:2], self.num_heads, -1).transpose(1, 2)


def use_band_attention(model: PreTrainedModel, num_layers: int) -> None:
    """Replace the window attention of a Longformer or LED encoder.

    Also disable its padding to whole windows.
    """
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, LongformerSelfAttention | LEDEncoderSelfAttention):
                setattr(parent, name, _BandAttention(layer))
    model._pad_to_window_size = _pad_nothing


def use_float_mask(model: PreTrainedModel, num_layers: int) -> None:
    """Let a model take its mask as a float.

    ProphetNet and XLNet subtract it from 1.0, as `torch.export` needs.
    """
    forward = model.forward

    def encode(input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Any:
        return forward(input_ids, attention_mask=attention_mask.float(), **options)

    model.forward = encode


def _pad_nothing(*, pad_token_id: int, **inputs: Tensor | None) -> tuple[int | Tensor | None, ...]:
    return 0, *inputs.values()


def use_one_language(model: PreTrainedModel, num_layers: int) -> None:
    """Leave out the adapters of an X-MOD but the default language's.

    The choice among them by text is left out too.

    The original (Pfeiffer et al., 2022) splits a batch by language, and a trace would fix its size.
    """
    language = model.config.default_language
    languages = model.config.languages
    if language not in languages:
        raise ExportError(
            f"The configuration of {model.config.name_or_path} has {language!r} as "
            f"default_language; expected one of {', '.join(languages)}, whose adapters are then "
            "exported. Set it in config.json."
        )
    for layer in model.encoder.layer:
        layer.output.lang_adapter = partial(
            _adapt_language, layer.output, layer.output.adapter_modules[language]
        )


def _adapt_language(
    output: Any, adapter: nn.Module, lang_ids: Tensor, hidden_states: Tensor
) -> Tensor:
    """Do as `XmodOutput.lang_adapter` with one adapter for all texts."""
    normed = hidden_states
    if output.adapter_layer_norm is not None:
        normed = output.adapter_layer_norm(hidden_states)
    elif output.adapter_reuse_layer_norm:
        normed = output.LayerNorm(hidden_states)
    return adapter(normed) + (normed if output.ln_before_adapter else hidden_states)


_NO_POOLER = {"add_pooling_layer": False}
# otherwise a model may use flash attention, if that is installed
_SDPA = {"attn_implementation": "sdpa"}
_T5 = Family(
    "t5",
    loader=AutoModelForTextEncoding,
    least_layers=1,
    adapt=_drop_blocks,
    final_norm="encoder.final_layer_norm",
)

FAMILIES: Mapping[str, Family] = {
    "albert": Family("albert", model_arguments=_NO_POOLER),
    "bart": Family("bart"),
    "bert": Family("bert", model_arguments=_NO_POOLER, adapt=drop_absolute_positions),
    # Past 704 tokens bert-score starts block-sparse, then goes full with the first short batch, for
    # good.
    "big_bird": Family(
        "bigbird", model_arguments=_NO_POOLER, settings={"attention_type": "original_full"}
    ),
    "blenderbot": Family("blenderbot", final_norm="layer_norm"),
    "blenderbot-small": Family("blenderbot-small"),
    "camembert": Family("camembert", _NO_POOLER),
    # its convolutions reach into the padding
    "convbert": Family("convbert", adapt=use_products, padding=False),
    "data2vec-text": Family("data2vec", _NO_POOLER),
    "deberta": Family("deberta"),
    "deberta-v2": Family("deberta-v2", adapt=use_products),
    "distilbert": Family("distilbert"),
    "electra": Family("electra"),
    "embedding_gemma2_text": Family(
        "embedding-gemma2",
        model_arguments=_SDPA,
        least_layers=ALL_LAYERS,
        adapt=_drop_layers_and_their_inputs,
        final_norm="norm",
    ),
    "ernie": Family("ernie", _NO_POOLER),
    "eurobert": Family("eurobert", model_arguments=_SDPA, final_norm="norm"),
    "flaubert": Family("flaubert"),
    "gemma3_text": Family("gemma3", model_arguments=_SDPA, adapt=use_own_masks, final_norm="norm"),
    "gte": Family("gte", model_arguments=_NO_POOLER),
    "ibert": Family("ibert", _NO_POOLER),
    "jina_embeddings_v3": Family("jina-embeddings-v3", model_arguments=_NO_POOLER),
    "led": Family("led", adapt=use_band_attention),
    "longformer": Family("longformer", _NO_POOLER, adapt=use_band_attention),
    "luke": Family("luke", _NO_POOLER),
    "mbart": Family("mbart", final_norm="layer_norm"),
    "megatron-bert": Family("megatron-bert", _NO_POOLER, final_norm="encoder.ln"),
    # each token sees the embeddings beside it
    "mobilebert": Family("mobilebert", _NO_POOLER, padding=False),
    "modernbert": Family(
        "modernbert",
        model_arguments=_SDPA,
        settings={"reference_compile": False},
        least_layers=1,
        adapt=_drop_layers,
        final_norm="final_norm",
    ),
    "mpnet": Family("mpnet", _NO_POOLER),
    "mt5": replace(_T5, name="mt5"),
    "nomic_bert": Family("nomic-bert"),
    # its convolutions reach into the padding
    "nystromformer": Family("nystromformer", padding=False),
    "pegasus": Family("pegasus", final_norm="layer_norm"),
    "prophetnet": Family("prophetnet", adapt=use_float_mask),
    "qwen3": Family("qwen3", model_arguments=_SDPA, adapt=use_own_masks, final_norm="norm"),
    "rembert": Family("rembert", model_arguments=_NO_POOLER),
    "roberta": Family("roberta", _NO_POOLER),
    "roberta-prelayernorm": Family("roberta-prelayernorm", _NO_POOLER, final_norm="LayerNorm"),
    "roc_bert": Family("roc-bert", _NO_POOLER),
    "roformer": Family("roformer"),
    "squeezebert": Family("squeezebert", adapt=use_products),
    "t5": _T5,
    "ultrabert": Family("ultrabert", model_arguments=_SDPA, final_norm="norm"),
    "umt5": replace(_T5, name="umt5", is_tested=False),  # bert-score wrongly loads it as a T5
    "xlm": Family("xlm"),
    "xlm-prophetnet": Family("xlm-prophetnet", adapt=use_float_mask),
    "xlm-roberta": Family("xlm-roberta", _NO_POOLER),
    "xlm-roberta-xl": Family("xlm-roberta-xl", _NO_POOLER, final_norm="encoder.LayerNorm"),
    "xlnet": Family("xlnet", adapt=use_float_mask),
    "xmod": Family("xmod", _NO_POOLER, adapt=use_one_language),
}
"""By the `model_type` of a configuration of transformers."""

_UNKNOWN = Family("", is_tested=False)


def family_of(config: Any) -> Family:
    """Return the family of a configuration of transformers.

    An untested one without special treatment by default.
    """
    return FAMILIES.get(config.model_type) or replace(_UNKNOWN, name=config.model_type)
