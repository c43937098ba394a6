"""Tiny random models of every architecture, saved as transformers saves them; no tokenizers.

Their weights are drawn large, so that a wrong mask, position or layer shows in every vector.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel

LAYERS = 3
POSITIONS = 48
VOCABULARY = 120
FIRST_ORDINARY_ID = 10
"""No special token of any of these models has this id or a larger one."""

_BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": POSITIONS,
    "type_vocab_size": 2,
    "pad_token_id": 0,
}
_ROBERTA = _BERT | {"max_position_embeddings": POSITIONS + 2, "type_vocab_size": 1, "pad_token_id": 1}
_DEBERTA = _BERT | {
    "type_vocab_size": 0,
    "relative_attention": True,
    "max_relative_positions": -1,
    "position_biased_input": False,
    "pos_att_type": ["c2p", "p2c"],
}
_DEBERTA_V3 = _DEBERTA | {"position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True}
_BART = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": LAYERS,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": LAYERS,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
}
_XLM = {
    "vocab_size": VOCABULARY,
    "emb_dim": 32,
    "n_layers": LAYERS,
    "n_heads": 4,
    "max_position_embeddings": POSITIONS,
    "pad_index": 2,
    "pad_token_id": 2,
}
_PROPHETNET = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_encoder_layers": LAYERS,
    "num_decoder_layers": 1,
    "num_encoder_attention_heads": 4,
    "num_decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": POSITIONS,
}


def _without(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != name}


SETTINGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "albert": ("albert", _BERT | {"embedding_size": 16}),
    "bart": ("bart", _BART),
    "bert": ("bert", _BERT),
    "bert-relative-key": ("bert", _BERT | {"position_embedding_type": "relative_key"}),
    "bert-relative-key-query": ("bert", _BERT | {"position_embedding_type": "relative_key_query"}),
    "bigbird": ("big_bird", _BERT | {"block_size": 4, "num_random_blocks": 1, "use_bias": True}),
    "blenderbot": ("blenderbot", _BART | {"pad_token_id": 0, "bos_token_id": 1, "scale_embedding": True}),
    "blenderbot-small": ("blenderbot-small", _BART | {"pad_token_id": 0, "bos_token_id": 1}),
    "byt5": ("t5", _T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "camembert": ("camembert", _ROBERTA),
    "convbert": ("convbert", _BERT | {"embedding_size": 16, "head_ratio": 2, "num_groups": 1}),
    "convbert-groups": ("convbert", _BERT | {"embedding_size": 32, "head_ratio": 2, "num_groups": 2}),
    "deberta": ("deberta", _DEBERTA),
    "deberta-absolute": ("deberta", _DEBERTA | {"position_biased_input": True}),
    "deberta-v2": (
        "deberta-v2",
        _DEBERTA_V3 | {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 8},
    ),
    "deberta-v3": ("deberta-v2", _DEBERTA_V3),
    "distilbert": (
        "distilbert",
        {
            "vocab_size": VOCABULARY,
            "dim": 32,
            "n_layers": LAYERS,
            "n_heads": 4,
            "hidden_dim": 48,
            "max_position_embeddings": POSITIONS,
        },
    ),
    "electra": ("electra", _BERT | {"embedding_size": 16}),
    "electra-same-size": ("electra", _BERT | {"embedding_size": 32}),
    "led": (
        "led",
        _without(_BART, "max_position_embeddings")
        | {
            "max_encoder_position_embeddings": POSITIONS,
            "max_decoder_position_embeddings": POSITIONS,
            "attention_window": [8, 4, 16],
        },
    ),
    "longformer": ("longformer", _ROBERTA | {"attention_window": [8, 4, 16]}),
    "mbart": ("mbart", _BART | {"scale_embedding": True}),
    "modernbert": (
        "modernbert",
        _without(_BERT, "type_vocab_size")
        | {
            "bos_token_id": 1,
            "cls_token_id": 1,
            "eos_token_id": 2,
            "sep_token_id": 2,
            "local_attention": 8,
            "global_attn_every_n_layers": 3,
        },
    ),
    "mpnet": ("mpnet", _without(_ROBERTA, "type_vocab_size")),
    "mt5": ("mt5", _T5 | {"feed_forward_proj": "gated-gelu"}),
    "pegasus": (
        "pegasus",
        _BART | {"pad_token_id": 0, "eos_token_id": 1, "scale_embedding": True},
    ),
    "prophetnet": ("prophetnet", _PROPHETNET | {"pad_token_id": 0}),
    "roberta": ("roberta", _ROBERTA),
    "squeezebert": (
        "squeezebert",
        _BERT
        | {"embedding_size": 32}
        | dict.fromkeys(["q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups"], 2),
    ),
    "t5": ("t5", _T5),
    "xlm": ("xlm", _XLM | {"n_langs": 1}),
    "xlm-languages": ("xlm", _XLM | {"n_langs": 100, "use_lang_emb": False}),
    "xlm-prophetnet": ("xlm-prophetnet", _PROPHETNET | {"pad_token_id": 1}),
    "xlm-roberta": ("xlm-roberta", _ROBERTA),
    "xlnet": (
        "xlnet",
        {"vocab_size": VOCABULARY, "d_model": 32, "n_layer": LAYERS, "n_head": 4, "d_inner": 48, "pad_token_id": 5},
    ),
}
"""Name to architecture and configuration."""


def save_tiny_model(model_type: str, settings: Mapping[str, Any], folder: Path) -> None:
    """Draw a model from its configuration and save it."""
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(model_type, **settings))
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.requires_grad:  # sinusoids stay
                    _scale_for(module, name, parameter)(parameter)
    model.save_pretrained(folder)


def _scale_for(module: torch.nn.Module, name: str, parameter: torch.Tensor) -> Callable[[torch.Tensor], object]:
    if parameter.dim() == 1 and name == "weight":  # a norm
        return lambda weight: weight.normal_(1, 0.2)
    if parameter.dim() == 1:
        return lambda bias: bias.normal_(0, 0.2)
    if isinstance(module, torch.nn.Embedding):
        return lambda table: table.normal_(0, 0.7)
    return lambda matrix: matrix.normal_(0, 1.5 / math.sqrt(matrix[0].numel()))
