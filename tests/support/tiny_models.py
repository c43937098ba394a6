"""Tiny random models of every architecture and tiny tokenizers of every kind, saved as transformers
saves them.

The weights are drawn large, so that a wrong mask, position or layer shows in every vector. The
tokenizers are trained here, on the sample texts, as real ones need the Hub.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModel,
    BertConfig,
    BertModel,
    PreTrainedTokenizer,
    PreTrainedTokenizerFast,
)

from bertscore_onnx_export.model.positions import max_positions
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS
from tests.support.scores import WORDS

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
_ROBERTA = _BERT | {
    "max_position_embeddings": POSITIONS + 2,
    "type_vocab_size": 1,
    "pad_token_id": 1,
}
_DEBERTA = _BERT | {
    "type_vocab_size": 0,
    "relative_attention": True,
    "max_relative_positions": -1,
    "position_biased_input": False,
    "pos_att_type": ["c2p", "p2c"],
}
_DEBERTA_V3 = _DEBERTA | {
    "position_buckets": 16,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
}
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


_MODERNBERT = _without(_BERT, "type_vocab_size") | {
    "bos_token_id": 1,
    "cls_token_id": 1,
    "eos_token_id": 2,
    "sep_token_id": 2,
    "local_attention": 8,
    "global_attn_every_n_layers": 3,
}
_QWEN3 = _without(_BERT, "type_vocab_size") | {"num_key_value_heads": 2, "head_dim": 16}
_GEMMA = _QWEN3 | {
    "sliding_window": 10,
    "query_pre_attn_scalar": 16,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}

ONLY_IN_5: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "embedding-gemma2": (
        "embedding_gemma2_text",
        _QWEN3
        | {
            "hidden_size_per_layer_input": 8,
            "embedding_dim": 24,
            "global_head_dim": 32,
            "sliding_window": 5,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
        },
    ),
    "eurobert": ("eurobert", _QWEN3 | {"bos_token_id": 2, "eos_token_id": 3}),
    "gte": ("gte", _ROBERTA),
    "jina-embeddings-v3": ("jina_embeddings_v3", _ROBERTA),
    "nomic-bert": ("nomic_bert", _BERT | {"head_dim": 8}),
    "ultrabert": (
        "ultrabert",
        _QWEN3
        | {
            "bos_token_id": 2,
            "eos_token_id": 3,
            "sliding_window": 5,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
}
"""As `SETTINGS`; models that transformers 4.57 lacks."""

IN_TRANSFORMERS_5 = [
    pytest.mark.transformers5,
    pytest.mark.skipif(
        transformers.__version__.startswith("4."), reason="transformers 4 lacks these families"
    ),
]
"""Marks of tests of `ONLY_IN_5`."""

SETTINGS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "albert": ("albert", _BERT | {"embedding_size": 16}),
    "bart": ("bart", _BART),
    "bert": ("bert", _BERT),
    "bert-relative-key": ("bert", _BERT | {"position_embedding_type": "relative_key"}),
    "bert-relative-key-query": ("bert", _BERT | {"position_embedding_type": "relative_key_query"}),
    "bigbird": ("big_bird", _BERT | {"block_size": 4, "num_random_blocks": 1, "use_bias": True}),
    "blenderbot": (
        "blenderbot",
        _BART | {"pad_token_id": 0, "bos_token_id": 1, "scale_embedding": True},
    ),
    "blenderbot-small": ("blenderbot-small", _BART | {"pad_token_id": 0, "bos_token_id": 1}),
    "byt5": ("t5", _T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "camembert": ("camembert", _ROBERTA),
    "convbert": ("convbert", _BERT | {"embedding_size": 16, "head_ratio": 2, "num_groups": 1}),
    "convbert-groups": (
        "convbert",
        _BERT | {"embedding_size": 32, "head_ratio": 2, "num_groups": 2},
    ),
    "data2vec": ("data2vec-text", _ROBERTA),
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
    "embeddinggemma": ("gemma3_text", _GEMMA | {"use_bidirectional_attention": True}),
    "ernie": ("ernie", _BERT),
    "flaubert": ("flaubert", _XLM),
    "gemma3": ("gemma3_text", _GEMMA),
    "ibert": ("ibert", _ROBERTA),
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
    "luke": ("luke", _ROBERTA | {"entity_vocab_size": 10, "entity_emb_size": 8}),
    "mbart": ("mbart", _BART | {"scale_embedding": True}),
    "modernbert": ("modernbert", _MODERNBERT),
    "mmbert": (
        "modernbert",
        _MODERNBERT | {"local_rope_theta": 160000.0, "global_attn_every_n_layers": 2},
    ),
    "megatron-bert": ("megatron-bert", _BERT),
    "mobilebert": (
        "mobilebert",
        _BERT | {"embedding_size": 16, "intra_bottleneck_size": 16, "num_feedforward_networks": 2},
    ),
    "mpnet": ("mpnet", _without(_ROBERTA, "type_vocab_size")),
    "mt5": ("mt5", _T5 | {"feed_forward_proj": "gated-gelu"}),
    "nystromformer": ("nystromformer", _BERT | {"conv_kernel_size": 9}),
    "pegasus": (
        "pegasus",
        _BART | {"pad_token_id": 0, "eos_token_id": 1, "scale_embedding": True},
    ),
    "prophetnet": ("prophetnet", _PROPHETNET | {"pad_token_id": 0}),
    "qwen3": ("qwen3", _QWEN3),
    "qwen3-embedding": ("qwen3", _QWEN3 | {"tie_word_embeddings": True}),
    "rembert": ("rembert", _BERT | {"input_embedding_size": 16, "output_embedding_size": 24}),
    "roberta": ("roberta", _ROBERTA),
    "roberta-prelayernorm": ("roberta-prelayernorm", _ROBERTA),
    "roc-bert": ("roc_bert", _BERT | {"pronunciation_embed_dim": 8, "shape_embed_dim": 8}),
    "roformer": ("roformer", _BERT | {"embedding_size": 16}),
    "squeezebert": (
        "squeezebert",
        _BERT
        | {"embedding_size": 32}
        | dict.fromkeys(
            ["q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups"], 2
        ),
    ),
    "t5": ("t5", _T5),
    "xlm": ("xlm", _XLM | {"n_langs": 1}),
    "xlm-languages": ("xlm", _XLM | {"n_langs": 100, "use_lang_emb": False}),
    "xlm-prophetnet": ("xlm-prophetnet", _PROPHETNET | {"pad_token_id": 1}),
    "xlm-roberta": ("xlm-roberta", _ROBERTA),
    "xlm-roberta-xl": ("xlm-roberta-xl", _ROBERTA),
    "xlnet": (
        "xlnet",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "n_layer": LAYERS,
            "n_head": 4,
            "d_inner": 48,
            "pad_token_id": 5,
        },
    ),
    "xmod": ("xmod", _ROBERTA | {"languages": ["en_XX", "de_DE"], "default_language": "de_DE"}),
}
"""Name to architecture and configuration."""


def save_tiny_model(
    model_type: str, settings: Mapping[str, Any], folder: Path, seed: int = 0
) -> None:
    gain = _GAINS.get(model_type, 1.5)
    torch.manual_seed(seed)
    model = AutoModel.from_config(AutoConfig.for_model(model_type, **settings))
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.requires_grad:  # sinusoids stay
                    _scale_for(module, name, parameter, gain)(parameter)
    model.save_pretrained(folder)


_GAINS = {"mobilebert": 0.7}
"""Type to a smaller scale of its matrices: without norms, vectors grow by 15 a layer until fp32
itself is inexact.
"""


def _scale_for(
    module: torch.nn.Module, name: str, parameter: torch.Tensor, gain: float
) -> Callable[[torch.Tensor], object]:
    if parameter.dim() == 1 and name == "weight":  # a norm
        return lambda weight: weight.normal_(1, 0.2)
    if parameter.dim() == 1:
        return lambda bias: bias.normal_(0, 0.2)
    if isinstance(module, torch.nn.Embedding):
        return lambda table: table.normal_(0, 0.7)
    return lambda matrix: matrix.normal_(0, gain / math.sqrt(matrix[0].numel()))


TRAINING_TEXTS = [
    line
    for text in (*PLAIN_TEXTS, *EDGE_CASE_TEXTS)
    for line in text[:500].split("\n")
    if line.strip()
]
_T5_IDS = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
_BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[X_SEP]"]
_MPNET_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]

Make = Callable[[Path], PreTrainedTokenizer]


def _unigram(
    kind: type[PreTrainedTokenizer], *, rule: str = "nmt_nfkc", options: Any = None, **training: Any
) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*TRAINING_TEXTS * 3, *["000 0000 167 0"] * 9]),
            model_prefix=str(folder / "trained"),
            vocab_size=600,
            hard_vocab_limit=False,
            normalization_rule_name=rule,
            minloglevel=2,
            **training,
        )
        return kind(str(folder / "trained.model"), **(options or {}))

    return make


def _wordpiece(kind: type[PreTrainedTokenizer], special_tokens: list[str], **options: Any) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        characters = sorted(
            {one for text in TRAINING_TEXTS for one in text + text.lower() if not one.isspace()}
        )
        words = sorted(
            {word.lower() for text in TRAINING_TEXTS for word in text.split() if word.isalpha()}
        )
        pieces = [
            *characters,
            *(f"##{one}" for one in characters),
            *words[::2],
            *(f"##{word[2:]}" for word in words),
        ]
        names = dict.fromkeys([*special_tokens, *pieces])
        file = folder / "words.txt"
        file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        return kind(str(file), **options)

    return make


def _byte_bpe(kind: type[PreTrainedTokenizer], special_tokens: list[str], **options: Any) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=700,
            special_tokens=special_tokens,
            initial_alphabet=alphabet,
            show_progress=False,
        )
        vocab, merges = _trained_bpe(trainer, byte_level)
        return kind(
            *_write_bpe(folder, vocab, ["#version: 0.2", *map(" ".join, merges)]), **options
        )

    return make


def fast_byte_bpe(folder: Path) -> PreTrainedTokenizerFast:
    """Make a tokenizer as ModernBERT's, which has no slow one: byte-level BPE with BERT's special
    tokens.
    """
    tokenizer = _trained_byte_bpe(_BERT_TOKENS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    names = {f"{name[1:-1].lower()}_token": name for name in _BERT_TOKENS[:5]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _trained_byte_bpe(special_tokens: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=special_tokens,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING_TEXTS, trainer)
    return tokenizer


_END_OF_TEXT = "<|endoftext|>"


def _fast_qwen(folder: Path) -> PreTrainedTokenizerFast:
    """Make a tokenizer as Qwen's, with no special token around a text."""
    tokenizer = _trained_byte_bpe([_END_OF_TEXT, "<|im_start|>", "<|im_end|>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_END_OF_TEXT,
        eos_token="<|im_end|>",
        padding_side="left",
    )


def _fast_qwen_embedding(folder: Path) -> PreTrainedTokenizerFast:
    """Make a tokenizer as Qwen3-Embedding's, which ends each text."""
    tokenizer = _fast_qwen(folder)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {_END_OF_TEXT}", special_tokens=[(_END_OF_TEXT, 0)]
    )
    return tokenizer


def _fast_gemma(folder: Path) -> PreTrainedTokenizerFast:
    """Make a tokenizer as Gemma's: BPE with a mark for spaces and bytes for unknown characters."""
    special_tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=[*special_tokens, *bytes_], show_progress=False
    )
    tokenizer.train_from_iterator(TRAINING_TEXTS[:40], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>", special_tokens=[("<bos>", 2), ("<eos>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{name[1:-1]}_token": name for name in special_tokens},
        padding_side="left",
    )


def _trained_bpe(
    trainer: trainers.BpeTrainer, words: pre_tokenizers.PreTokenizer
) -> tuple[dict[str, int], list[Any]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = words
    tokenizer.train_from_iterator(
        [one for text in TRAINING_TEXTS for one in (text, text.lower())], trainer
    )
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def _write_bpe(folder: Path, vocab: dict[str, int], merges: list[str]) -> tuple[str, str]:
    files = folder / "vocab.json", folder / "merges.txt"
    files[0].write_text(json.dumps(vocab), encoding="utf-8")
    files[1].write_text("".join(f"{line}\n" for line in merges), encoding="utf-8")
    return str(files[0]), str(files[1])


def _word_symbols() -> tuple[list[str], list[Any]]:
    """Return symbols of a BPE within words, some left out, and its merges."""
    trainer = trainers.BpeTrainer(vocab_size=700, end_of_word_suffix="</w>", show_progress=False)
    vocab, merges = _trained_bpe(trainer, pre_tokenizers.WhitespaceSplit())
    return [
        symbol for place, symbol in enumerate(vocab) if place % 17 and symbol.isprintable()
    ], merges


def _continued(symbol: str) -> str:
    return symbol.removesuffix("</w>") if symbol.endswith("</w>") else f"{symbol}@@"


def _bertweet(folder: Path) -> PreTrainedTokenizer:
    symbols, merges = _word_symbols()
    files = folder / "words.txt", folder / "codes.txt"
    files[0].write_text(
        "".join(f"{_continued(symbol)} 1\n" for symbol in symbols), encoding="utf-8"
    )
    files[1].write_text(
        "".join(f"{first} {second} 1\n" for first, second in merges), encoding="utf-8"
    )
    return transformers.BertweetTokenizer(*map(str, files))


def _blenderbot_small(folder: Path) -> PreTrainedTokenizer:
    symbols, merges = _word_symbols()
    names = dict.fromkeys(
        ["__null__", "__start__", "__end__", "__unk__", *map(_continued, symbols)]
    )
    vocab = {name: place for place, name in enumerate(names)}
    files = _write_bpe(folder, vocab, ["#version: 0.2", *map(" ".join, merges)])
    return transformers.BlenderbotSmallTokenizer(*files)


def _xlm(kind: type[PreTrainedTokenizer] = transformers.XLMTokenizer, **options: Any) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        symbols, merges = _word_symbols()
        names = [
            "<s>",
            "</s>",
            "<pad>",
            "<unk>",
            *(f"<special{place}>" for place in range(10)),
            *symbols,
        ]
        vocab = {name: place for place, name in enumerate(names)}
        return kind(
            *_write_bpe(folder, vocab, [" ".join([*pair, "1"]) for pair in merges]), **options
        )

    return make


def _xlm_prophetnet(folder: Path) -> PreTrainedTokenizer:
    # not in transformers 5
    from transformers.models.deprecated.xlm_prophetnet import tokenization_xlm_prophetnet

    return _unigram(tokenization_xlm_prophetnet.XLMProphetNetTokenizer)(folder)


def _mt5(folder: Path) -> PreTrainedTokenizer:
    kind = transformers.MT5Tokenizer  # not in transformers 5
    return _unigram(kind, **_T5_IDS, byte_fallback=True, options={"extra_ids": 0})(folder)


def _luke(folder: Path) -> PreTrainedTokenizer:
    _byte_bpe(transformers.RobertaTokenizer, _ROBERTA_TOKENS)(folder)
    entities = folder / "entities.json"
    entities.write_text(
        json.dumps({name: place for place, name in enumerate(_ENTITIES)}), encoding="utf-8"
    )
    return transformers.LukeTokenizer(
        str(folder / "vocab.json"), str(folder / "merges.txt"), str(entities)
    )


def _roc_bert(folder: Path) -> PreTrainedTokenizer:
    bert = _wordpiece(transformers.BertTokenizer, _BERT_TOKENS)(folder)
    for kind in ("shapes", "sounds"):
        (folder / f"{kind}.json").write_text(
            json.dumps(dict.fromkeys(bert.vocab, 1)), encoding="utf-8"
        )
    return transformers.RoCBertTokenizer(
        *(str(folder / name) for name in ("words.txt", "shapes.json", "sounds.json"))
    )


_ENTITIES = ["[PAD]", "[UNK]", "[MASK]", "[MASK2]"]
_CONTROL = {
    "control_symbols": "[CLS],[SEP],[MASK]",
    "pad_id": 0,
    "unk_id": 1,
    "bos_id": -1,
    "eos_id": -1,
}
_ROBERTA_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]

KINDS: dict[str, Make] = {
    "albert": _unigram(
        transformers.AlbertTokenizer,
        **_CONTROL,
        user_defined_symbols=["(", ")", ".", "-", "£", "€"],
    ),
    "albert-accents": _unigram(
        transformers.AlbertTokenizer,
        **_CONTROL,
        options={"keep_accents": True, "do_lower_case": False},
    ),
    "bart": _byte_bpe(transformers.BartTokenizer, _ROBERTA_TOKENS),
    "bert": _wordpiece(transformers.BertTokenizer, _BERT_TOKENS),
    "bert-cased": _wordpiece(transformers.BertTokenizer, _BERT_TOKENS, do_lower_case=False),
    "bert-accents": _wordpiece(transformers.BertTokenizer, _BERT_TOKENS, strip_accents=False),
    "bertweet": _bertweet,
    "bigbird": _unigram(transformers.BigBirdTokenizer, **_CONTROL),
    "bigbird-bpe": _unigram(
        transformers.BigBirdTokenizer,
        **_CONTROL,
        model_type="bpe",
        byte_fallback=True,
        user_defined_symbols=["(", "ab", "<n>"],
    ),
    "bigbird-bpe-plain": _unigram(
        transformers.BigBirdTokenizer,
        rule="identity",
        remove_extra_whitespaces=False,
        model_type="bpe",
        options={"cls_token": "<s>", "sep_token": "</s>"},
    ),
    "bigbird-characters": _unigram(transformers.BigBirdTokenizer, **_CONTROL, model_type="char"),
    "bigbird-suffix": _unigram(
        transformers.BigBirdTokenizer, **_CONTROL, treat_whitespace_as_suffix=True
    ),
    "bigbird-words": _unigram(transformers.BigBirdTokenizer, **_CONTROL, model_type="word"),
    "blenderbot": _byte_bpe(
        transformers.BlenderbotTokenizer, _ROBERTA_TOKENS, add_prefix_space=True
    ),
    "blenderbot-small": _blenderbot_small,
    "byt5": lambda folder: transformers.ByT5Tokenizer(),
    "camembert": _unigram(transformers.CamembertTokenizer),
    "convbert": _wordpiece(transformers.ConvBertTokenizer, _BERT_TOKENS),
    "deberta": _byte_bpe(transformers.DebertaTokenizer, _BERT_TOKENS),
    "deberta-v2": _unigram(transformers.DebertaV2Tokenizer, **_CONTROL, byte_fallback=True),
    "deberta-v2-marks": _unigram(
        transformers.DebertaV2Tokenizer,
        **_CONTROL,
        options={"split_by_punct": True, "do_lower_case": True},
    ),
    "distilbert": _wordpiece(transformers.DistilBertTokenizer, _BERT_TOKENS),
    "electra": _wordpiece(transformers.ElectraTokenizer, _BERT_TOKENS),
    "flaubert": _xlm(transformers.FlaubertTokenizer),
    "flaubert-uncased": _xlm(transformers.FlaubertTokenizer, do_lowercase=True),
    "led": _byte_bpe(transformers.LEDTokenizer, _ROBERTA_TOKENS),
    "longformer": _byte_bpe(transformers.LongformerTokenizer, _ROBERTA_TOKENS),
    "luke": _luke,
    "mbart": _unigram(transformers.MBartTokenizer),
    "mbart50": _unigram(transformers.MBart50Tokenizer),
    "mobilebert": _wordpiece(transformers.MobileBertTokenizer, _BERT_TOKENS),
    "mpnet": _wordpiece(transformers.MPNetTokenizer, _MPNET_TOKENS),
    "mt5": _mt5,
    "pegasus": _unigram(transformers.PegasusTokenizer, **_T5_IDS),
    "prophetnet": _wordpiece(transformers.ProphetNetTokenizer, _BERT_TOKENS),
    "rembert": _unigram(
        transformers.RemBertTokenizer,
        **(_CONTROL | {"control_symbols": "[CLS],[SEP],[MASK],[PAD],[UNK]"}),
    ),
    "roberta": _byte_bpe(transformers.RobertaTokenizer, _ROBERTA_TOKENS),
    "roc-bert": _roc_bert,
    "squeezebert": _wordpiece(transformers.SqueezeBertTokenizer, _BERT_TOKENS),
    "t5": _unigram(transformers.T5Tokenizer, **_T5_IDS),
    "t5-short": _unigram(transformers.T5Tokenizer, **_T5_IDS, options={"model_max_length": 12}),
    "xlm": _xlm(),
    "xlm-cased": _xlm(do_lowercase_and_remove_accent=False),
    "xlm-prophetnet": _xlm_prophetnet,
    "xlm-roberta": _unigram(transformers.XLMRobertaTokenizer),
    "xlm-roberta-folded": _unigram(transformers.XLMRobertaTokenizer, rule="nmt_nfkc_cf"),
    "xlm-roberta-plain": _unigram(
        transformers.XLMRobertaTokenizer,
        rule="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["½", "e\u0301", "<eop>"],
    ),
    "xlnet": _unigram(
        transformers.XLNetTokenizer,
        control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>,<eop>",
        user_defined_symbols=["£", "€"],
    ),
}
"""By a name for the test's report."""

UNBOUNDED_LENGTH = 72
"""The maximum length of the tokenizers of models that have no bound."""

_KIND_OF = {
    "bert-relative-key": "bert",
    "bert-relative-key-query": "bert-cased",
    "bort": "roberta",
    "data2vec": "roberta",
    "convbert-groups": "convbert",
    "deberta-absolute": "deberta",
    "deberta-v3": "deberta-v2",
    "electra-same-size": "electra",
    "ernie": "bert",
    "ibert": "roberta",
    "mbart-50": "mbart50",
    "megatron-bert": "bert",
    "nystromformer": "albert",
    "roberta-prelayernorm": "roberta",
    "roformer": "bert",
    "xlm-languages": "xlm-cased",
    "xlm-roberta-xl": "xlm-roberta",
    "xmod": "xlm-roberta",
}
"""Model to the kind of its tokenizer, if that has another name."""

_WIDE = {
    **dict.fromkeys(("hidden_size", "d_model", "dim", "emb_dim"), 192),
    **dict.fromkeys(("intermediate_size", "d_ff", "d_inner", "hidden_dim", "encoder_ffn_dim"), 768),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_heads", "n_head"), 6),
    **dict.fromkeys(("encoder_attention_heads", "num_encoder_attention_heads"), 6),
    **dict.fromkeys(("d_kv", "attention_head_size", "head_dim"), 32),
    "intra_bottleneck_size": 96,
    **dict.fromkeys(("max_position_embeddings", "max_encoder_position_embeddings"), 160),
}
"""Sizes at which ONNX Runtime sums products in several blocks, as in real models."""

FAST = {
    **dict.fromkeys(ONLY_IN_5, fast_byte_bpe),
    "embedding-gemma2": _fast_gemma,
    "embeddinggemma": _fast_gemma,
    "gemma3": _fast_gemma,
    "mmbert": _fast_gemma,
    "modernbert": fast_byte_bpe,
    "qwen3": _fast_qwen,
    "qwen3-embedding": _fast_qwen_embedding,
}
"""Models without a slow tokenizer, to the function that makes the fast one."""

_SETTINGS_OF = {"bertweet": "roberta", "bort": "bert", "mbart-50": "mbart"}
"""Model to its architecture, if that has another name; bert-score takes any name with "t5" for a
T5.
"""

TINY_MODELS = sorted({*SETTINGS, *_SETTINGS_OF})

EVERY_CUT = {
    "albert",  # one layer that is run again and again
    "bart",  # the encoder of two halves
    "bert",  # a list of layers, with a pooler to leave out
    "convbert",  # padding that leaks
    "deberta-v3",  # relative positions beside a mask of two axes
    "longformer",  # attention that is replaced, and positions after the padding
    "modernbert",  # a fast tokenizer alone
    "t5",  # blocks that are dropped after loading, and no bound
    "xlm",  # a number of layers in the model
    "xlnet",  # layers of the model itself, and padding before the text
}
"""One model for each way to cut and to export; the others differ from these in data."""

EVERY_INPUT = {"bert", "convbert", "modernbert", "t5", "xlnet"}
"""One model for each way that texts become the input of a graph: special tokens, their places, and
padding.
"""


def each_family(names: Iterable[str], quick: Set[str] = EVERY_CUT) -> list[Any]:
    """Return the names as parameters of a test; those that are not among the quick are left to
    `make test-families`.
    """
    return [
        name if name in quick else pytest.param(name, marks=pytest.mark.families) for name in names
    ]


def save_model_and_tokenizer(
    name: str, folder: Path, *, is_wide: bool = False, seed: int = 0
) -> Path:
    """Save a model and its tokenizer in a folder; both know the same ids and the same maximum
    length.
    """
    (folder / "training").mkdir(parents=True)
    make_tokenizer = FAST[name] if name in FAST else KINDS[_KIND_OF.get(name, name)]
    tokenizer = make_tokenizer(folder / "training")
    model_type, settings = {**SETTINGS, **ONLY_IN_5}[_SETTINGS_OF.get(name, name)]
    settings = {**settings, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if is_wide:
        if settings.get("embedding_size") == settings.get("hidden_size"):
            settings["embedding_size"] = _WIDE["hidden_size"]
        settings |= {key: size for key, size in _WIDE.items() if key in settings}
    if "block_size" in settings:
        # longer than the texts: bert-score goes block-sparse until a short batch comes
        settings["block_size"] = 64
    if "pad_index" in settings:
        settings["pad_index"] = tokenizer.pad_token_id
    config = AutoConfig.for_model(model_type, **settings)
    tokenizer.model_max_length = max_positions(config) or UNBOUNDED_LENGTH
    tokenizer.save_pretrained(folder)
    save_tiny_model(model_type, settings, folder, seed)
    return folder


def save_tiny_bert(folder: Path, num_layers: int = 3) -> None:
    folder.mkdir()
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *WORDS.split(),
        *".,!?",
        "##s",
        "##ing",
    ]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    transformers.BertTokenizer(folder / "vocab.txt", model_max_length=32).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=num_layers,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    BertModel(config).save_pretrained(folder)
